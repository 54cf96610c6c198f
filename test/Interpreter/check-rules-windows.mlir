// Rules of convolutions, pools, windows, rms norm and random numbers by execution: the batch cut in 2 and 3 (and channels,
// where windows do not mix them), with padded rows; weight gradients are sums over the batch.
// RUN: spmd-interpret %S/../dialects/Aten/roundtrip-window.mlir --check-rules | FileCheck %s --check-prefix=WINDOW
// RUN: spmd-interpret %S/../dialects/Aten/roundtrip-norm.mlir --check-rules | FileCheck %s --check-prefix=NORM
// RUN: spmd-interpret %S/../dialects/Aten/roundtrip-random.mlir --check-rules | FileCheck %s --check-prefix=RANDOM

// WINDOW-DAG: aten.convolution: 2 factors
// WINDOW-DAG: aten.convolution_backward: 1 factors
// WINDOW-DAG: aten.max_pool2d_with_indices: 2 factors
// WINDOW-DAG: aten.max_pool2d_with_indices_backward: 2 factors
// WINDOW-DAG: aten.max_pool3d_with_indices: 2 factors
// WINDOW-DAG: aten.max_pool3d_with_indices_backward: 2 factors
// WINDOW-DAG: aten.im2col: 1 factors
// WINDOW-DAG: aten.col2im: 1 factors
// NORM-DAG: aten.rms_norm: 2 factors
// NORM-DAG: aten.rms_norm_backward: 1 factors
// RANDOM: aten.philox_uniform: 3 factors

// Groups, dilation and uneven sizes.
// RUN: spmd-interpret %s --check-rules | FileCheck %s
// CHECK-DAG: aten.convolution_backward: 1 factors
// CHECK-DAG: aten.convolution: 1 factors
func.func @grouped(%x: tensor<5x4x7x6xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>, %g: tensor<5x6x3x2xf32>) -> (tensor<5x6x3x2xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) {
  %0 = aten.convolution %x, %w, %b {dilation = array<i64: 2, 2>, groups = 2 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<5x4x7x6xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<5x6x3x2xf32>
  %1:2 = aten.convolution_backward %g, %x, %w {bias_sizes = array<i64: 6>, dilation = array<i64: 2, 2>, groups = 2 : i64, output_mask = array<i1: false, true, true>, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, resultSegmentSizes = array<i32: 0, 1, 1>, stride = array<i64: 2, 2>} : (tensor<5x6x3x2xf32>, tensor<5x4x7x6xf32>, tensor<6x2x3x3xf32>) -> (tensor<6x2x3x3xf32>, tensor<6xf32>)
  return %0, %1#0, %1#1 : tensor<5x6x3x2xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>
}
