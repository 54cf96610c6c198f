// Rows of matrices that only GEMMs and clusters use begin at multiples of 16 bytes; the interpreter, to which what lies between rows is NaN, sees no difference.
// RUN: spmd-opt %s --spmd-pad-leading-dims -o %t.mlir && FileCheck %s < %t.mlir
// RUN: spmd-interpret %t.mlir --compare=%s
// RUN: spmd-opt %t.mlir --spmd-pad-leading-dims | FileCheck %s
// RUN: spmd-opt %s --spmd-pad-leading-dims=alignment=1 | FileCheck %s --check-prefix=NONE
// RUN: spmd-opt %s --spmd-pad-leading-dims=alignment=64 | FileCheck %s --check-prefix=LINES
// RUN: not spmd-opt %s --spmd-pad-leading-dims=alignment=24 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: spmd-pad-leading-dims: alignment=24: expected a power of two up to 128
// NONE-NOT: ldc

// CHECK-LABEL: func.func @step
// LINES-LABEL: func.func @step
func.func @step(%x: tensor<4x16xf32> {spmd.arg = #spmd.batch<"x", dim = none>}, %w: tensor<7x16xf32> {spmd.arg = #spmd.batch<"w", dim = none>},
                %bias: tensor<7xf32> {spmd.arg = #spmd.batch<"bias", dim = none>})
    -> (tensor<4x16xf32> {spmd.result = #spmd.output<"0">}, tensor<7x16xf32> {spmd.result = #spmd.output<"1">},
        tensor<2x7x7xf32> {spmd.result = #spmd.output<"2">}, tensor<4x7xf32> {spmd.result = #spmd.output<"3">},
        tensor<7xf32> {spmd.result = #spmd.output<"4">}) {
  // The GEMM's own rows; what is computed in their place lies alike; a cluster over all elements is one over rows.
  // CHECK: %[[P:.*]] = kernel.gemm m 4 n 7 k 16 {{.*}} ldc 8 -> tensor<4x8xf32>
  // LINES: kernel.gemm m 4 n 7 k 16 {{.*}} -> tensor<4x7xf32>
  %p = kernel.gemm m 4 n 7 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>) -> tensor<4x7xf32>
  // CHECK: %[[Q:.*]] = kernel.cluster dims [4, 7] parallel 1
  // CHECK-NEXT: ins(%{{.*}} = %[[P]] at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>)
  // CHECK-NEXT: outs(at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>)
  // CHECK: %[[ROW:.*]] = kernel.index 0
  // CHECK: %[[COLUMN:.*]] = kernel.index 1
  // CHECK: %[[FIRST:.*]] = arith.muli %[[ROW]], %c7 : index
  // CHECK: arith.addi %[[FIRST]], %[[COLUMN]] : index
  %q = kernel.cluster dims [28] parallel 1 ins(%e = %p at (d0) -> (d0) : tensor<4x7xf32>)
      outs(at (d0) -> (d0) : tensor<4x7xf32>) {
    %i = kernel.index 0
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %0 = arith.addf %e, %f : f32
    kernel.yield %0 : f32
  }
  // A column of sums is none of their rows.
  // CHECK: %[[R:.*]]:2 = kernel.cluster dims [4, 7] parallel 1
  // CHECK-NEXT: ins(%{{.*}} = %[[Q]] at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>)
  // CHECK-NEXT: outs(at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>,
  // CHECK-NEXT:      at (d0, d1) -> (d0) : tensor<4xf32>)
  %r, %most = kernel.cluster dims [4, 7] parallel 1 ins(%e = %q at (d0, d1) -> (d0 * 7 + d1) : tensor<4x7xf32>)
      outs(at (d0, d1) -> (d0 * 7 + d1) : tensor<4x7xf32>, at (d0, d1) -> (d0) : tensor<4xf32>) {
    %m = kernel.reduce <max> %e over [1] : f32
    %0 = arith.subf %e, %m : f32
    kernel.yield %0, %m : f32, f32
  }
  // CHECK: kernel.gemm m 4 n 16 k 7 a(%[[R]]#0 ld 8 : tensor<4x8xf32>)
  %y = kernel.gemm m 4 n 16 k 7 a(%r ld 7 : tensor<4x7xf32>) b(%w ld 16 : tensor<7x16xf32>) -> tensor<4x16xf32>
  // CHECK: kernel.gemm m 7 n 16 k 4 a(%[[R]]#0 ld 8 trans : tensor<4x8xf32>)
  %z = kernel.gemm m 7 n 16 k 4 a(%r ld 7 trans : tensor<4x7xf32>) b(%x ld 16 : tensor<4x16xf32>) -> tensor<7x16xf32>

  // Views: rows 2 and 3, columns 1 to 5; two matrices of a batch.
  // CHECK: kernel.gemm m 2 n 16 k 5 a(%[[R]]#0 ld 8 offset 17 : tensor<4x8xf32>)
  %v = kernel.gemm m 2 n 16 k 5 a(%r ld 7 offset 15 : tensor<4x7xf32>) b(%w ld 16 : tensor<7x16xf32>) -> tensor<2x16xf32>
  // CHECK: %[[B:.*]] = kernel.gemm m 7 n 7 k 2 batch 2 a(%[[R]]#0 ld 8 stride 16 trans : tensor<4x8xf32>) b(%[[R]]#0 ld 8 stride 16 : tensor<4x8xf32>) -> tensor<2x7x7xf32>
  %b = kernel.gemm m 7 n 7 k 2 batch 2 a(%r ld 7 stride 14 trans : tensor<4x7xf32>) b(%r ld 7 stride 14 : tensor<4x7xf32>)
      -> tensor<2x7x7xf32>

  // Residual, result and pre_activation lie alike; a bias has no rows.
  // CHECK: %[[S:.*]] = kernel.gemm m 4 n 7 k 16 {{.*}} ldc 8 -> tensor<4x8xf32>
  // CHECK: %[[T:.*]], %[[PRE:.*]] = kernel.gemm m 4 n 7 k 16 {{.*}} bias(%arg2 : tensor<7xf32>) residual(%[[S]] : tensor<4x8xf32>) activation relu ldc 8 -> tensor<4x8xf32>, pre_activation tensor<4x8xf32>
  %s = kernel.gemm m 4 n 7 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>) -> tensor<4x7xf32>
  %t, %pre = kernel.gemm m 4 n 7 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>)
      bias(%bias : tensor<7xf32>) residual(%s : tensor<4x7xf32>) activation relu
      -> tensor<4x7xf32>, pre_activation tensor<4x7xf32>
  // So does what a gradient is taken at.
  // CHECK: %[[U:.*]] = kernel.gemm m 4 n 7 k 16 {{.*}} activation gelu_tanh_backward pre_activation(%[[S]] : tensor<4x8xf32>) ldc 8 -> tensor<4x8xf32>
  // CHECK: kernel.gemm m 4 n 16 k 7 a(%[[U]] ld 8 : tensor<4x8xf32>)
  %ds = kernel.gemm m 4 n 7 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>)
      activation gelu_tanh_backward pre_activation(%s : tensor<4x7xf32>) -> tensor<4x7xf32>
  %dsw = kernel.gemm m 4 n 16 k 7 a(%ds ld 7 : tensor<4x7xf32>) b(%w ld 16 : tensor<7x16xf32>) -> tensor<4x16xf32>
  // CHECK: kernel.cluster dims [4, 7] parallel 0
  // CHECK-NEXT: ins(%{{.*}} = %[[T]] at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>,
  // CHECK-NEXT: %{{.*}} = %[[PRE]] at (d0, d1) -> (d0 * 8 + d1) : tensor<4x8xf32>,
  // CHECK-NEXT: %{{.*}} = %{{.*}} at (d0, d1) -> (d0 * 16 + d1) guarded : tensor<2x16xf32>)
  %sum = kernel.cluster dims [4, 7] parallel 0 ins(%e = %t at (d0, d1) -> (d0 * 7 + d1) : tensor<4x7xf32>,
      %f = %pre at (d0, d1) -> (d0 * 7 + d1) : tensor<4x7xf32>, %g = %v at (d0, d1) -> (d0 * 16 + d1)  guarded : tensor<2x16xf32>)
      outs(at (d0, d1) -> (d1) : tensor<7xf32>) {
    %0 = arith.mulf %e, %f : f32
    %1 = arith.addf %0, %g : f32
    %2 = kernel.reduce <add> %1 over [0] : f32
    kernel.yield %2 : f32
  }

  // What the step returns lies as it is, and so does what would have to lie like it.
  // CHECK: %[[U:.*]] = kernel.gemm m 4 n 7 k 16 {{.*}} trans : tensor<7x16xf32>) -> tensor<4x7xf32>
  // CHECK: kernel.gemm m 4 n 7 k 16 {{.*}} residual(%[[U]] : tensor<4x7xf32>) -> tensor<4x7xf32>
  %u = kernel.gemm m 4 n 7 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>) -> tensor<4x7xf32>
  %result = kernel.gemm m 4 n 7 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>)
      residual(%u : tensor<4x7xf32>) -> tensor<4x7xf32>
  return %y, %z, %b, %result, %sum : tensor<4x16xf32>, tensor<7x16xf32>, tensor<2x7x7xf32>, tensor<4x7xf32>, tensor<7xf32>
}

// Rows of 4 KiB and more begin at cache lines of 128 bytes; those shorter than a vector, one row, and those that a
// cluster reads across are left.
// CHECK-LABEL: func.func @widths
func.func @widths(%x: tensor<4x16xbf16>, %w: tensor<2051x16xbf16>) -> (tensor<4x16xbf16>, tensor<3x16xbf16>, tensor<1x16xbf16>, tensor<28xbf16>) {
  // CHECK: kernel.gemm m 4 n 2051 {{.*}} ldc 2112 -> tensor<4x2112xbf16>
  // CHECK: a(%{{.*}} ld 2112 : tensor<4x2112xbf16>)
  %0 = kernel.gemm m 4 n 2051 k 16 a(%x ld 16 : tensor<4x16xbf16>) b(%w ld 16 trans : tensor<2051x16xbf16>) -> tensor<4x2051xbf16>
  %1 = kernel.gemm m 4 n 16 k 2051 a(%0 ld 2051 : tensor<4x2051xbf16>) b(%w ld 16 : tensor<2051x16xbf16>) -> tensor<4x16xbf16>
  // CHECK: kernel.gemm m 4 n 3 {{.*}} -> tensor<4x3xbf16>
  %2 = kernel.gemm m 4 n 3 k 16 a(%x ld 16 : tensor<4x16xbf16>) b(%w ld 16 trans : tensor<2051x16xbf16>) -> tensor<4x3xbf16>
  %3 = kernel.gemm m 3 n 16 k 4 a(%2 ld 3 trans : tensor<4x3xbf16>) b(%x ld 16 : tensor<4x16xbf16>) -> tensor<3x16xbf16>
  // CHECK: kernel.gemm m 1 n 9 {{.*}} -> tensor<1x9xbf16>
  %4 = kernel.gemm m 1 n 9 k 16 a(%x ld 16 : tensor<4x16xbf16>) b(%w ld 16 trans : tensor<2051x16xbf16>) -> tensor<1x9xbf16>
  %5 = kernel.gemm m 1 n 16 k 9 a(%4 ld 9 : tensor<1x9xbf16>) b(%w ld 16 : tensor<2051x16xbf16>) -> tensor<1x16xbf16>
  // CHECK: %[[ACROSS:.*]] = kernel.gemm m 4 n 14 {{.*}} -> tensor<4x14xbf16>
  // CHECK: = %[[ACROSS]] at (d0, d1) -> (d0 * 2 + d1) : tensor<4x14xbf16>
  %6 = kernel.gemm m 4 n 14 k 16 a(%x ld 16 : tensor<4x16xbf16>) b(%w ld 16 trans : tensor<2051x16xbf16>) -> tensor<4x14xbf16>
  %7 = kernel.cluster dims [28, 2] parallel 1 ins(%e = %6 at (d0, d1) -> (d0 * 2 + d1) : tensor<4x14xbf16>)
      outs(at (d0, d1) -> (d0) : tensor<28xbf16>) {
    %8 = kernel.reduce <max> %e over [1] : bf16
    kernel.yield %8 : bf16
  }
  return %1, %3, %5, %7 : tensor<4x16xbf16>, tensor<3x16xbf16>, tensor<1x16xbf16>, tensor<28xbf16>
}

// An argument that a gradient is taken at lies as it does, and so the gradient does.
// CHECK-LABEL: func.func @gradient_at_an_argument
func.func @gradient_at_an_argument(%x: tensor<4x16xf32>, %w: tensor<7x16xf32>, %h: tensor<4x7xf32>) -> tensor<4x16xf32> {
  // CHECK: kernel.gemm m 4 n 7 k 16 {{.*}} pre_activation(%arg2 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %0 = kernel.gemm m 4 n 7 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%w ld 16 trans : tensor<7x16xf32>)
      activation gelu_tanh_backward pre_activation(%h : tensor<4x7xf32>) -> tensor<4x7xf32>
  %1 = kernel.gemm m 4 n 16 k 7 a(%0 ld 7 : tensor<4x7xf32>) b(%w ld 16 : tensor<7x16xf32>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}
