// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenWindow.td.

// CHECK-LABEL: @convolution(
// CHECK: aten.convolution %arg0, %arg1 {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>) -> tensor<4x5x6x6xf32>
func.func @convolution(%arg0: tensor<4x3x6x6xf32>, %arg1: tensor<5x3x3x3xf32>) -> tensor<4x5x6x6xf32> {
  %0 = aten.convolution %arg0, %arg1 {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>) -> tensor<4x5x6x6xf32>
  return %0 : tensor<4x5x6x6xf32>
}

// CHECK-LABEL: @convolution__1(
// CHECK: aten.convolution %arg0, %arg1, %arg2 {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>, transposed = true} : (tensor<4x3x6x6xf32>, tensor<3x5x2x2xf32>, tensor<5xf32>) -> tensor<4x5x12x12xf32>
func.func @convolution__1(%arg0: tensor<4x3x6x6xf32>, %arg1: tensor<3x5x2x2xf32>, %arg2: tensor<5xf32>) -> tensor<4x5x12x12xf32> {
  %0 = aten.convolution %arg0, %arg1, %arg2 {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>, transposed = true} : (tensor<4x3x6x6xf32>, tensor<3x5x2x2xf32>, tensor<5xf32>) -> tensor<4x5x12x12xf32>
  return %0 : tensor<4x5x12x12xf32>
}

// CHECK-LABEL: @convolution_backward(
// CHECK: aten.convolution_backward %arg0, %arg1, %arg2 {bias_sizes = array<i64: 5>, dilation = array<i64: 1, 1>, groups = 1 : i64, output_mask = array<i1: true, true, true>, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<4x5x6x6xf32>, tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>) -> (tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>, tensor<5xf32>)
func.func @convolution_backward(%arg0: tensor<4x5x6x6xf32>, %arg1: tensor<4x3x6x6xf32>, %arg2: tensor<5x3x3x3xf32>) -> (tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>, tensor<5xf32>) {
  %0:3 = aten.convolution_backward %arg0, %arg1, %arg2 {bias_sizes = array<i64: 5>, dilation = array<i64: 1, 1>, groups = 1 : i64, output_mask = array<i1: true, true, true>, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<4x5x6x6xf32>, tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>) -> (tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>, tensor<5xf32>)
  return %0#0, %0#1, %0#2 : tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>, tensor<5xf32>
}

// CHECK-LABEL: @max_pool2d_with_indices(
// CHECK: aten.max_pool2d_with_indices %arg0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>} : (tensor<4x3x6x6xf32>) -> (tensor<4x3x3x3xf32>, tensor<4x3x3x3xi64>)
func.func @max_pool2d_with_indices(%arg0: tensor<4x3x6x6xf32>) -> (tensor<4x3x3x3xf32>, tensor<4x3x3x3xi64>) {
  %0:2 = aten.max_pool2d_with_indices %arg0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>} : (tensor<4x3x6x6xf32>) -> (tensor<4x3x3x3xf32>, tensor<4x3x3x3xi64>)
  return %0#0, %0#1 : tensor<4x3x3x3xf32>, tensor<4x3x3x3xi64>
}

// CHECK-LABEL: @max_pool2d_with_indices_backward(
// CHECK: aten.max_pool2d_with_indices_backward %arg0, %arg1, %arg2 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>} : (tensor<4x3x3x3xf32>, tensor<4x3x6x6xf32>, tensor<4x3x3x3xi64>) -> tensor<4x3x6x6xf32>
func.func @max_pool2d_with_indices_backward(%arg0: tensor<4x3x3x3xf32>, %arg1: tensor<4x3x6x6xf32>, %arg2: tensor<4x3x3x3xi64>) -> tensor<4x3x6x6xf32> {
  %0 = aten.max_pool2d_with_indices_backward %arg0, %arg1, %arg2 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>} : (tensor<4x3x3x3xf32>, tensor<4x3x6x6xf32>, tensor<4x3x3x3xi64>) -> tensor<4x3x6x6xf32>
  return %0 : tensor<4x3x6x6xf32>
}

// CHECK-LABEL: @max_pool3d_with_indices(
// CHECK: aten.max_pool3d_with_indices %arg0 {dilation = array<i64: 1, 1, 1>, kernel_size = array<i64: 2, 2, 2>, padding = array<i64: 0, 0, 0>, stride = array<i64: 2, 2, 2>} : (tensor<4x3x6x6x6xf32>) -> (tensor<4x3x3x3x3xf32>, tensor<4x3x3x3x3xi64>)
func.func @max_pool3d_with_indices(%arg0: tensor<4x3x6x6x6xf32>) -> (tensor<4x3x3x3x3xf32>, tensor<4x3x3x3x3xi64>) {
  %0:2 = aten.max_pool3d_with_indices %arg0 {dilation = array<i64: 1, 1, 1>, kernel_size = array<i64: 2, 2, 2>, padding = array<i64: 0, 0, 0>, stride = array<i64: 2, 2, 2>} : (tensor<4x3x6x6x6xf32>) -> (tensor<4x3x3x3x3xf32>, tensor<4x3x3x3x3xi64>)
  return %0#0, %0#1 : tensor<4x3x3x3x3xf32>, tensor<4x3x3x3x3xi64>
}

// CHECK-LABEL: @max_pool3d_with_indices_backward(
// CHECK: aten.max_pool3d_with_indices_backward %arg0, %arg1, %arg2 {dilation = array<i64: 1, 1, 1>, kernel_size = array<i64: 2, 2, 2>, padding = array<i64: 0, 0, 0>, stride = array<i64: 2, 2, 2>} : (tensor<4x3x3x3x3xf32>, tensor<4x3x6x6x6xf32>, tensor<4x3x3x3x3xi64>) -> tensor<4x3x6x6x6xf32>
func.func @max_pool3d_with_indices_backward(%arg0: tensor<4x3x3x3x3xf32>, %arg1: tensor<4x3x6x6x6xf32>, %arg2: tensor<4x3x3x3x3xi64>) -> tensor<4x3x6x6x6xf32> {
  %0 = aten.max_pool3d_with_indices_backward %arg0, %arg1, %arg2 {dilation = array<i64: 1, 1, 1>, kernel_size = array<i64: 2, 2, 2>, padding = array<i64: 0, 0, 0>, stride = array<i64: 2, 2, 2>} : (tensor<4x3x3x3x3xf32>, tensor<4x3x6x6x6xf32>, tensor<4x3x3x3x3xi64>) -> tensor<4x3x6x6x6xf32>
  return %0 : tensor<4x3x6x6x6xf32>
}

// CHECK-LABEL: @im2col(
// CHECK: aten.im2col %arg0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 3, 3>, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<4x3x6x6xf32>) -> tensor<4x27x9xf32>
func.func @im2col(%arg0: tensor<4x3x6x6xf32>) -> tensor<4x27x9xf32> {
  %0 = aten.im2col %arg0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 3, 3>, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<4x3x6x6xf32>) -> tensor<4x27x9xf32>
  return %0 : tensor<4x27x9xf32>
}

// CHECK-LABEL: @col2im(
// CHECK: aten.col2im %arg0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 3, 3>, output_size = array<i64: 6, 6>, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<4x27x9xf32>) -> tensor<4x3x6x6xf32>
func.func @col2im(%arg0: tensor<4x27x9xf32>) -> tensor<4x3x6x6xf32> {
  %0 = aten.col2im %arg0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 3, 3>, output_size = array<i64: 6, 6>, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<4x27x9xf32>) -> tensor<4x3x6x6xf32>
  return %0 : tensor<4x3x6x6xf32>
}
