// RUN: spmd-opt %s --spmd-mutate-gpu-kernels=only=drop-barrier,change-comparison,shift-index,drop-store | FileCheck %s

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
// CHECK-NOT: gpu.func @k0
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

// Of products of matrices.
// RUN: spmd-opt %s --spmd-mutate-gpu-kernels=only=shift-fragment,transpose-fragment,exchange-fragments | FileCheck %s --check-prefix=LOAD
// RUN: spmd-opt %s --spmd-mutate-gpu-kernels=only=exchange-rows,exchange-parts,exchange-operands,drop-accumulator,exchange-accumulators,drop-product | FileCheck %s --check-prefix=MMA
// LOAD: gpu.func @k1_m0
// LOAD-SAME: spmd.mutant = "shift-fragment
// LOAD: %[[LATER:.*]] = llvm.getelementptr %arg1[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// LOAD: nvvm.ldmatrix %[[LATER]] {{.*}}mma_layout<row>
// LOAD: gpu.func @k1_m1
// LOAD-SAME: spmd.mutant = "transpose-fragment
// LOAD: nvvm.ldmatrix %arg1 {{.*}}mma_layout<col>
// LOAD: gpu.func @k1_m2
// LOAD-SAME: spmd.mutant = "exchange-fragments
// LOAD: %[[A:.*]] = llvm.extractvalue %{{.*}}[0]
// LOAD: %[[B:.*]] = llvm.extractvalue %{{.*}}[2]
// LOAD: %[[C:.*]] = llvm.extractvalue %{{.*}}[1]
// LOAD: %[[D:.*]] = llvm.extractvalue %{{.*}}[3]
// LOAD: nvvm.mma.sync A[%[[A]], %[[B]], %[[C]], %[[D]]]{{ +}}B[%arg2, %arg3]{{ +}}C[%arg4, %arg5, %arg6, %arg7]
// LOAD-NOT: gpu.func

// MMA: gpu.func @k1_m0
// MMA-SAME: spmd.mutant = "exchange-rows
// MMA: %[[A:.*]] = llvm.extractvalue %{{.*}}[0]
// MMA: %[[B:.*]] = llvm.extractvalue %{{.*}}[1]
// MMA: %[[C:.*]] = llvm.extractvalue %{{.*}}[2]
// MMA: %[[D:.*]] = llvm.extractvalue %{{.*}}[3]
// MMA: nvvm.mma.sync A[%[[A]], %[[C]], %[[B]], %[[D]]]{{ +}}B[%arg2, %arg3]{{ +}}C[%arg4, %arg5, %arg6, %arg7]
// MMA: gpu.func @k1_m1
// MMA-SAME: spmd.mutant = "exchange-parts
// MMA: nvvm.mma.sync {{.*}}B[%arg3, %arg2]{{ +}}C[%arg4, %arg5, %arg6, %arg7]
// MMA: gpu.func @k1_m2
// MMA-SAME: spmd.mutant = "exchange-operands
// MMA: %[[A:.*]] = llvm.extractvalue %{{.*}}[0]
// MMA: %[[B:.*]] = llvm.extractvalue %{{.*}}[1]
// MMA: %[[C:.*]] = llvm.extractvalue %{{.*}}[2]
// MMA: %[[D:.*]] = llvm.extractvalue %{{.*}}[3]
// MMA: nvvm.mma.sync A[%arg2, %[[B]], %arg3, %[[D]]]{{ +}}B[%[[A]], %[[C]]]{{ +}}C[%arg4, %arg5, %arg6, %arg7]
// MMA: gpu.func @k1_m3
// MMA-SAME: spmd.mutant = "drop-accumulator
// MMA: %[[ZERO:.*]] = arith.constant 0.0
// MMA: nvvm.mma.sync {{.*}}C[%[[ZERO]], %[[ZERO]], %[[ZERO]], %[[ZERO]]]
// MMA: gpu.func @k1_m4
// MMA-SAME: spmd.mutant = "exchange-accumulators
// MMA: nvvm.mma.sync {{.*}}C[%arg6, %arg7, %arg4, %arg5]
// MMA: gpu.func @k1_m5
// MMA-SAME: spmd.mutant = "drop-product
// MMA: nvvm.ldmatrix
// MMA-NOT: mma.sync
// MMA: llvm.store %arg4
// MMA-NOT: gpu.func
gpu.module @products {
  gpu.func @k1(%to: !llvm.ptr<1>, %row: !llvm.ptr<3>, %b0: i32, %b1: i32, %c0: f32, %c1: f32, %c2: f32, %c3: f32) kernel {
    %words = nvvm.ldmatrix %row {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %a0 = llvm.extractvalue %words[0] : !llvm.struct<(i32, i32, i32, i32)>
    %a1 = llvm.extractvalue %words[1] : !llvm.struct<(i32, i32, i32, i32)>
    %a2 = llvm.extractvalue %words[2] : !llvm.struct<(i32, i32, i32, i32)>
    %a3 = llvm.extractvalue %words[3] : !llvm.struct<(i32, i32, i32, i32)>
    %sums = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %first = llvm.extractvalue %sums[0] : !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %first, %to : f32, !llvm.ptr<1>
    gpu.return
  }
}
