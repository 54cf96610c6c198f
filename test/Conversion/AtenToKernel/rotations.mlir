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
