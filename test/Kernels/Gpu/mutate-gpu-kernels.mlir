// RUN: spmd-opt %s --spmd-mutate-gpu-kernels | FileCheck %s

// One copy for each place where a mistake can be made, in program order, and nothing else.
// CHECK: gpu.module @kernels
// CHECK-NEXT: gpu.func @k0_m0
// CHECK-SAME: spmd.mutant = "drop-barrier at op 4, gpu.barrier"
// CHECK-NOT: gpu.barrier
// CHECK: arith.cmpi slt
// CHECK: llvm.store
// CHECK: gpu.func @k0_m1
// CHECK-SAME: spmd.mutant = "change-comparison
// CHECK: gpu.barrier
// CHECK: arith.cmpi sle
// CHECK: gpu.func @k0_m2
// CHECK-SAME: spmd.mutant = "shift-index
// CHECK: %[[NEXT:.*]] = arith.addi
// CHECK: llvm.getelementptr %{{.*}}[%[[NEXT]]]
// CHECK: gpu.func @k0_m3
// CHECK-SAME: spmd.mutant = "drop-store at op 8, llvm.store
// CHECK-NOT: llvm.store
// CHECK: gpu.return
// CHECK-NOT: gpu.func
gpu.module @kernels {
  gpu.func @k0(%x: !llvm.ptr<1>) kernel {
    %c4 = arith.constant 4 : i64
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i64
    gpu.barrier
    %inside = arith.cmpi slt, %i, %c4 : i64
    scf.if %inside {
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
      llvm.store %i, %p {alignment = 8 : i64} : i64, !llvm.ptr<1>
    }
    gpu.return
  }
}
