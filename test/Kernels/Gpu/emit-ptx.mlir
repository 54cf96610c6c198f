// RUN: spmd-opt %s --spmd-emit-ptx=chip=sm_90 -o /dev/null > %t.ptx
// RUN: FileCheck %s < %t.ptx
// RUN: FileCheck %s --check-prefix=NEVER < %t.ptx
// RUN: spmd-opt %s --spmd-emit-ptx='chip=sm_90 path=%t.2.ptx' | spmd-opt | FileCheck %s --check-prefix=UNCHANGED
// RUN: cmp %t.ptx %t.2.ptx
// RUN: spmd-opt %s --spmd-emit-ptx=chip=sm_100 -o /dev/null | FileCheck %s --check-prefix=SM100

// One header for all kernels; what CUDA 11.8's driver reads.
// CHECK: .version 7.8
// CHECK: .target sm_90
// CHECK: .address_size 64
// CHECK-NOT: .version
// SM100: .version 8.6
// SM100: .target sm_100

// No approximation, no library, nothing flushed to zero, no multiply-add but those asked for.
// NEVER-NOT: {{approx|\.ftz|call|__nv|mul\.f32|add\.f32|sub\.f32}}
// NEVER: fma.rn.f32
// NEVER-NOT: {{approx|\.ftz|call|__nv|mul\.f32|add\.f32|sub\.f32}}

// UNCHANGED: gpu.func @arithmetic

gpu.module @kernels {
  // CHECK: .visible .entry arithmetic(
  // CHECK: .param .u64 .ptr .global .align 16 arithmetic_param_0,
  // CHECK: .param .u64 .ptr .global .align 16 arithmetic_param_1
  // CHECK: .maxntid 256
  // CHECK: ld.global.v4.b32
  // CHECK-COUNT-4: mul.rn.f32
  // CHECK-COUNT-4: add.rn.f32
  // CHECK-NOT: fma
  // CHECK-COUNT-4: sqrt.rn.f32
  // CHECK-COUNT-4: div.rn.f32
  // CHECK-COUNT-4: fma.rn.f32
  // CHECK: st.global.v4.b32
  // CHECK: ret;
  gpu.func @arithmetic(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 8, 1, 1>} {
    %four = arith.constant 4 : i64
    %threads = arith.constant 256 : i64
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %t = arith.index_cast %thread : index to i64
    %b = arith.index_cast %block : index to i64
    %first = arith.muli %b, %threads overflow<nsw, nuw> : i64
    %number = arith.addi %first, %t overflow<nsw, nuw> : i64
    %i = arith.muli %number, %four overflow<nsw, nuw> : i64
    %from = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %v = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %product = arith.mulf %v, %v : vector<4xf32>
    %sum = arith.addf %product, %v : vector<4xf32>
    %root = math.sqrt %sum : vector<4xf32>
    %quotient = arith.divf %root, %v : vector<4xf32>
    %fused = math.fma %quotient, %v, %v : vector<4xf32>
    %to = llvm.getelementptr inbounds %y[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %fused, %to {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    gpu.return
  }

  // Math is expanded to the same arithmetic as on CPUs; maxima keep NaN; coordinates come after the pointers.
  // CHECK: .visible .entry math(
  // CHECK: .param .u64 .ptr .global .align 16 math_param_0,
  // CHECK: .param .u64 math_param_1
  // CHECK: fma.rn.f32
  // CHECK: max.NaN.f32
  gpu.func @math(%x: !llvm.ptr<1>, %c: i64) kernel {
    %from = llvm.getelementptr %x[%c] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %v = llvm.load %from {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %e = math.exp %v : f32
    %t = math.tanh %e : f32
    %p = math.erf %t : f32
    %m = arith.maximumf %p, %v : f32
    llvm.store %m, %from {alignment = 4 : i64} : f32, !llvm.ptr<1>
    gpu.return
  }

  // What threads of a block share, and a constant table.
  // CHECK-DAG: .extern .shared .align 16 .b8 shares_shared[];
  // CHECK-DAG: .global .align 4 .b8 shares_table0[16]
  // CHECK: .visible .entry shares(
  // CHECK: shfl.sync.bfly.b32 {{.*}}, 1, 31, -1;
  // CHECK: st.shared.b32
  // CHECK: bar.sync 0;
  // CHECK: ld.shared.b32
  llvm.mlir.global external @shares_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @shares_table0(dense<[7, 5, 3, 1]> : tensor<4xi32>)
      {addr_space = 1 : i32, alignment = 4 : i64} : !llvm.array<4 x i32>
  gpu.func @shares(%x: !llvm.ptr<1>) kernel
      attributes {known_block_size = array<i32: 4, 1, 1>, spmd.shared_bytes = 16 : i64} {
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %thread = gpu.thread_id x
    %t = arith.index_cast %thread : index to i64
    %table = llvm.mlir.addressof @shares_table0 : !llvm.ptr<1>
    %entry = llvm.getelementptr %table[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %v = llvm.load %entry {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    %other, %valid = gpu.shuffle xor %v, %one, %width : i32
    %shared = llvm.mlir.addressof @shares_shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
    llvm.store %other, %mine {alignment = 4 : i64} : i32, !llvm.ptr<3>
    gpu.barrier
    %first = llvm.load %shared {alignment = 4 : i64} : !llvm.ptr<3> -> i32
    %to = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    llvm.store %first, %to {alignment = 4 : i64} : i32, !llvm.ptr<1>
    gpu.return
  }
}
