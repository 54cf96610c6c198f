// A convolution is the product of its weight with the windows of its input.
// RUN: spmd-opt %s --spmd-convert-aten-to-kernel --split-input-file | FileCheck %s

// Patches: the windows are a permutation of the image, nothing is compared or guarded. The rows of a patch lie side by
// side, so that patches are rows.
// CHECK-LABEL: @step
// CHECK: kernel.cluster dims [2, 2, 2, 3, 4, 4]
// CHECK-NEXT: at (d0, d1, d2, d3, d4, d5) -> (d0 * 192 + d1 * 32 + d2 * 4 + d3 * 64 + d4 * 8 + d5) : tensor<2x3x8x8xf32>)
// CHECK-NEXT: outs
// CHECK-NEXT: kernel.yield
// CHECK: kernel.gemm m 5 n 8 k 48 a({{.*}}) b(%{{.*}} ld 48 trans
func.func @step(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x4x4xf32>) -> tensor<2x5x2x2xf32> {
  %0 = aten.convolution %x, %w {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0>, stride = array<i64: 4, 4>} : (tensor<2x3x8x8xf32>, tensor<5x3x4x4xf32>) -> tensor<2x5x2x2xf32>
  return %0 : tensor<2x5x2x2xf32>
}

// -----

// Padding: an element outside of the image is read guarded, and one in another row or plane is compared away.
// CHECK-LABEL: @step
// CHECK: kernel.cluster dims [3, 3, 3, 2, 8, 8]
// CHECK-NEXT: -> (d0 * 64 + d1 * 8 + d2 + d3 * 192 + d4 * 8 + d5 - 9) guarded
// CHECK: arith.select
// CHECK: kernel.gemm m 5 n 128 k 27
// The bias fuses with what follows.
// CHECK: arith.addf
func.func @step(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x3x3xf32>, %b: tensor<5xf32>) -> tensor<2x5x8x8xf32> {
  %0 = aten.convolution %x, %w, %b {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<2x3x8x8xf32>, tensor<5x3x3x3xf32>, tensor<5xf32>) -> tensor<2x5x8x8xf32>
  return %0 : tensor<2x5x8x8xf32>
}

// -----

// Backward, depthwise and strided: one product per group; each image element adds what its kernel elements are in, in one
// kernel; the windows are made again for the gradient of the weight.
// CHECK-LABEL: @step
// CHECK: kernel.gemm m 9 n 32 k 1 batch 4
// CHECK: kernel.cluster dims [2, 4, 4, 2, 4, 2]
// CHECK-COUNT-9: guarded
// CHECK-NOT: kernel.cluster
// CHECK-COUNT-8: arith.addf
// CHECK: kernel.cluster dims [4, 3, 3, 2, 4, 4]
// CHECK: kernel.gemm m 1 n 9 k 32 batch 4
func.func @step(%g: tensor<2x4x4x4xf32>, %x: tensor<2x4x8x8xf32>, %w: tensor<4x1x3x3xf32>) -> (tensor<2x4x8x8xf32>, tensor<4x1x3x3xf32>) {
  %0:2 = aten.convolution_backward %g, %x, %w {bias_sizes = array<i64: 4>, dilation = array<i64: 1, 1>, groups = 4 : i64, output_mask = array<i1: true, true, false>, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, resultSegmentSizes = array<i32: 1, 1, 0>, stride = array<i64: 2, 2>} : (tensor<2x4x4x4xf32>, tensor<2x4x8x8xf32>, tensor<4x1x3x3xf32>) -> (tensor<2x4x8x8xf32>, tensor<4x1x3x3xf32>)
  return %0#0, %0#1 : tensor<2x4x8x8xf32>, tensor<4x1x3x3xf32>
}
