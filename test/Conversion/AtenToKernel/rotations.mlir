// Parts of one tensor put together in another order are views; what is computed from a view of a light value is computed
// where it is read.
// RUN: spmd-opt %s --spmd-convert-aten-to-kernel --split-input-file | FileCheck %s

// Rotary positions: one kernel, which reads x twice, once with its halves the other way around.
// CHECK-LABEL: @rotary
// CHECK: kernel.cluster dims [3, 2, 16]
// CHECK-NEXT: %[[T:.*]] = %arg0 at (d0, d1, d2) -> (d0 * 32 - d1 * 16 + d2 + 16)
// CHECK: %{{.*}} = %arg0 at (d0, d1, d2) -> (d0 * 32 + d1 * 16 + d2)
// CHECK: outs(at (d0, d1, d2) -> (d0 * 32 + d1 * 16 + d2) : tensor<3x32xf32>)
// CHECK: kernel.index 1
// CHECK: arith.negf %[[T]]
// CHECK: arith.select
// CHECK-NOT: kernel.cluster
// CHECK-NOT: kernel.copy
func.func @rotary(%x: tensor<3x32xf32>, %cos: tensor<3x32xf32>, %sin: tensor<3x32xf32>) -> tensor<3x32xf32> {
  %0 = aten.slice.Tensor %x {dim = 1 : i64, end = 16 : i64, start = 0 : i64} : (tensor<3x32xf32>) -> tensor<3x16xf32>
  %1 = aten.slice.Tensor %x {dim = 1 : i64, end = 32 : i64, start = 16 : i64} : (tensor<3x32xf32>) -> tensor<3x16xf32>
  %2 = aten.neg %1 : (tensor<3x16xf32>) -> tensor<3x16xf32>
  %3 = aten.cat %2, %0 {dim = 1 : i64} : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x32xf32>
  %4 = aten.mul.Tensor %x, %cos : (tensor<3x32xf32>, tensor<3x32xf32>) -> tensor<3x32xf32>
  %5 = aten.mul.Tensor %3, %sin : (tensor<3x32xf32>, tensor<3x32xf32>) -> tensor<3x32xf32>
  %6 = aten.add.Tensor %4, %5 : (tensor<3x32xf32>, tensor<3x32xf32>) -> tensor<3x32xf32>
  return %6 : tensor<3x32xf32>
}

// -----

// Of neighbours (GPT-J): stack((-x[1::2], x[::2])).
// CHECK-LABEL: @pairs
// CHECK: kernel.cluster dims [48, 2]
// CHECK-NEXT: %arg0 at (d0, d1) -> (d0 * 2 - d1 + 1)
// CHECK-NOT: kernel.copy
func.func @pairs(%x: tensor<3x32xf32>) -> tensor<3x16x2xf32> {
  %0 = aten.slice.Tensor %x {dim = 1 : i64, end = 32 : i64, start = 0 : i64, step = 2 : i64} : (tensor<3x32xf32>) -> tensor<3x16xf32>
  %1 = aten.slice.Tensor %x {dim = 1 : i64, end = 32 : i64, start = 1 : i64, step = 2 : i64} : (tensor<3x32xf32>) -> tensor<3x16xf32>
  %2 = aten.neg %1 : (tensor<3x16xf32>) -> tensor<3x16xf32>
  %3 = aten.stack %2, %0 {dim = 2 : i64} : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16x2xf32>
  return %3 : tensor<3x16x2xf32>
}

// -----

// The gradient: what is multiplied by sines is read with its halves the other way around, so the product is computed
// there; and the sum, which the matrix product wants by token, is computed by token.
// CHECK-LABEL: @gradient
// CHECK: kernel.cluster dims [2, 4, 3, 2, 16]
// CHECK-NOT: kernel.cluster
// CHECK: kernel.gemm m 8 n 5 k 96
func.func @gradient(%g: tensor<2x3x4x32xf32>, %cos: tensor<4x32xf32>, %sin: tensor<4x32xf32>, %w: tensor<96x5xf32>) -> tensor<8x5xf32> {
  %0 = aten.mul.Tensor %g, %sin : (tensor<2x3x4x32xf32>, tensor<4x32xf32>) -> tensor<2x3x4x32xf32>
  %1 = aten.slice.Tensor %0 {dim = 3 : i64, end = 16 : i64, start = 0 : i64} : (tensor<2x3x4x32xf32>) -> tensor<2x3x4x16xf32>
  %2 = aten.slice.Tensor %0 {dim = 3 : i64, end = 32 : i64, start = 16 : i64} : (tensor<2x3x4x32xf32>) -> tensor<2x3x4x16xf32>
  %3 = aten.neg %1 : (tensor<2x3x4x16xf32>) -> tensor<2x3x4x16xf32>
  %4 = aten.cat %2, %3 {dim = 3 : i64} : (tensor<2x3x4x16xf32>, tensor<2x3x4x16xf32>) -> tensor<2x3x4x32xf32>
  %5 = aten.mul.Tensor %g, %cos : (tensor<2x3x4x32xf32>, tensor<4x32xf32>) -> tensor<2x3x4x32xf32>
  %6 = aten.add.Tensor %4, %5 : (tensor<2x3x4x32xf32>, tensor<2x3x4x32xf32>) -> tensor<2x3x4x32xf32>
  %7 = aten.permute %6 {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x32xf32>) -> tensor<2x4x3x32xf32>
  %8 = aten.view %7 {size = array<i64: 8, 96>} : (tensor<2x4x3x32xf32>) -> tensor<8x96xf32>
  %9 = aten.mm %8, %w : (tensor<8x96xf32>, tensor<96x5xf32>) -> tensor<8x5xf32>
  return %9 : tensor<8x5xf32>
}

// -----

// A matrix and its transpose that have to be copied are one copy.
// CHECK-LABEL: @once
// CHECK: %[[COPY:.*]] = kernel.cluster
// CHECK-NOT: kernel.cluster
// CHECK: kernel.gemm m 8 n 5 k 96 a(%[[COPY]] ld 96
// CHECK: kernel.gemm m 96 n 5 k 8 a(%[[COPY]] ld 96 trans
func.func @once(%g: tensor<2x3x4x32xf32>, %w: tensor<96x5xf32>, %x: tensor<8x5xf32>) -> (tensor<8x5xf32>, tensor<96x5xf32>) {
  %0 = aten.permute %g {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x32xf32>) -> tensor<2x4x3x32xf32>
  %1 = aten.view %0 {size = array<i64: 8, 96>} : (tensor<2x4x3x32xf32>) -> tensor<8x96xf32>
  %2 = aten.mm %1, %w : (tensor<8x96xf32>, tensor<96x5xf32>) -> tensor<8x5xf32>
  %3 = aten.permute %1 {dims = array<i64: 1, 0>} : (tensor<8x96xf32>) -> tensor<96x8xf32>
  %4 = aten.mm %3, %x : (tensor<96x8xf32>, tensor<8x5xf32>) -> tensor<96x5xf32>
  return %2, %4 : tensor<8x5xf32>, tensor<96x5xf32>
}

// -----

// Parts of different size, or at uneven distances, are copied.
// CHECK-LABEL: @uneven
// CHECK: kernel.copy
// CHECK: kernel.copy
func.func @uneven(%x: tensor<3x32xf32>) -> (tensor<3x32xf32>, tensor<3x24xf32>) {
  %0 = aten.slice.Tensor %x {dim = 1 : i64, end = 20 : i64, start = 0 : i64} : (tensor<3x32xf32>) -> tensor<3x20xf32>
  %1 = aten.slice.Tensor %x {dim = 1 : i64, end = 32 : i64, start = 20 : i64} : (tensor<3x32xf32>) -> tensor<3x12xf32>
  %2 = aten.cat %1, %0 {dim = 1 : i64} : (tensor<3x12xf32>, tensor<3x20xf32>) -> tensor<3x32xf32>
  %3 = aten.slice.Tensor %x {dim = 1 : i64, end = 8 : i64, start = 0 : i64} : (tensor<3x32xf32>) -> tensor<3x8xf32>
  %4 = aten.slice.Tensor %x {dim = 1 : i64, end = 16 : i64, start = 8 : i64} : (tensor<3x32xf32>) -> tensor<3x8xf32>
  %5 = aten.slice.Tensor %x {dim = 1 : i64, end = 32 : i64, start = 24 : i64} : (tensor<3x32xf32>) -> tensor<3x8xf32>
  %6 = aten.cat %3, %4, %5 {dim = 1 : i64} : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x24xf32>
  return %2, %6 : tensor<3x32xf32>, tensor<3x24xf32>
}

// -----

// The same part again, and three parts at even distances: views.
// CHECK-LABEL: @views
// CHECK-NOT: kernel.copy
// CHECK-NOT: kernel.cluster
// CHECK: kernel.cluster
// CHECK-SAME: dims [3, 3, 4, 8]
// CHECK-NOT: kernel.cluster
func.func @views(%x: tensor<3x32xf32>) -> tensor<9x32xf32> {
  %0 = aten.slice.Tensor %x {dim = 1 : i64, end = 32 : i64, start = 24 : i64} : (tensor<3x32xf32>) -> tensor<3x8xf32>
  %1 = aten.slice.Tensor %x {dim = 1 : i64, end = 24 : i64, start = 16 : i64} : (tensor<3x32xf32>) -> tensor<3x8xf32>
  %2 = aten.slice.Tensor %x {dim = 1 : i64, end = 16 : i64, start = 8 : i64} : (tensor<3x32xf32>) -> tensor<3x8xf32>
  %3 = aten.slice.Tensor %x {dim = 1 : i64, end = 8 : i64, start = 0 : i64} : (tensor<3x32xf32>) -> tensor<3x8xf32>
  %4 = aten.cat %0, %1, %2, %3 {dim = 1 : i64} : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x32xf32>
  %5 = aten.cat %4, %4, %4 {dim = 0 : i64} : (tensor<3x32xf32>, tensor<3x32xf32>, tensor<3x32xf32>) -> tensor<9x32xf32>
  return %5 : tensor<9x32xf32>
}

// -----

// A value that a product reads is a tensor anyway, and so is read; runs of fewer than 16 elements are not worth it.
// CHECK-LABEL: @kept
// CHECK: kernel.cluster
// CHECK: kernel.cluster
func.func @kept(%x: tensor<4x64xf32>, %w: tensor<64x3xf32>) -> (tensor<4x3xf32>, tensor<4x64xf32>) {
  %0 = aten.neg %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = aten.mm %0, %w : (tensor<4x64xf32>, tensor<64x3xf32>) -> tensor<4x3xf32>
  %2 = aten.slice.Tensor %0 {dim = 1 : i64, end = 32 : i64, start = 0 : i64} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %3 = aten.slice.Tensor %0 {dim = 1 : i64, end = 64 : i64, start = 32 : i64} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %4 = aten.cat %3, %2 {dim = 1 : i64} : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x64xf32>
  return %1, %4 : tensor<4x3xf32>, tensor<4x64xf32>
}

// -----

// Two ways lead from each of 40 values to the one before: each is looked at once.
// CHECK-LABEL: @chain
// CHECK: kernel.cluster dims [8, 4, 64]
// CHECK-NOT: kernel.cluster
func.func @chain(%x: tensor<4x8x64xf32>, %w: tensor<8x4x64xf32>) -> tensor<8x4x64xf32> {
  %1 = aten.mul.Tensor %x, %x : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %2 = aten.mul.Tensor %1, %1 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %3 = aten.mul.Tensor %2, %2 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %4 = aten.mul.Tensor %3, %3 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %5 = aten.mul.Tensor %4, %4 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %6 = aten.mul.Tensor %5, %5 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %7 = aten.mul.Tensor %6, %6 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %8 = aten.mul.Tensor %7, %7 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %9 = aten.mul.Tensor %8, %8 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %10 = aten.mul.Tensor %9, %9 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %11 = aten.mul.Tensor %10, %10 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %12 = aten.mul.Tensor %11, %11 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %13 = aten.mul.Tensor %12, %12 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %14 = aten.mul.Tensor %13, %13 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %15 = aten.mul.Tensor %14, %14 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %16 = aten.mul.Tensor %15, %15 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %17 = aten.mul.Tensor %16, %16 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %18 = aten.mul.Tensor %17, %17 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %19 = aten.mul.Tensor %18, %18 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %20 = aten.mul.Tensor %19, %19 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %21 = aten.mul.Tensor %20, %20 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %22 = aten.mul.Tensor %21, %21 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %23 = aten.mul.Tensor %22, %22 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %24 = aten.mul.Tensor %23, %23 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %25 = aten.mul.Tensor %24, %24 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %26 = aten.mul.Tensor %25, %25 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %27 = aten.mul.Tensor %26, %26 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %28 = aten.mul.Tensor %27, %27 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %29 = aten.mul.Tensor %28, %28 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %30 = aten.mul.Tensor %29, %29 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %31 = aten.mul.Tensor %30, %30 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %32 = aten.mul.Tensor %31, %31 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %33 = aten.mul.Tensor %32, %32 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %34 = aten.mul.Tensor %33, %33 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %35 = aten.mul.Tensor %34, %34 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %36 = aten.mul.Tensor %35, %35 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %37 = aten.mul.Tensor %36, %36 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %38 = aten.mul.Tensor %37, %37 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %39 = aten.mul.Tensor %38, %38 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %40 = aten.mul.Tensor %39, %39 : (tensor<4x8x64xf32>, tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %41 = aten.permute %40 {dims = array<i64: 1, 0, 2>} : (tensor<4x8x64xf32>) -> tensor<8x4x64xf32>
  %42 = aten.mul.Tensor %41, %w : (tensor<8x4x64xf32>, tensor<8x4x64xf32>) -> tensor<8x4x64xf32>
  return %42 : tensor<8x4x64xf32>
}
