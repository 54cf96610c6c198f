// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenView.td.

// CHECK-LABEL: @view(
// CHECK: aten.view %arg0 {size = array<i64: 2, 12>} : (tensor<4x6xf32>) -> tensor<2x12xf32>
func.func @view(%arg0: tensor<4x6xf32>) -> tensor<2x12xf32> {
  %0 = aten.view %arg0 {size = array<i64: 2, 12>} : (tensor<4x6xf32>) -> tensor<2x12xf32>
  return %0 : tensor<2x12xf32>
}

// CHECK-LABEL: @unsqueeze(
// CHECK: aten.unsqueeze %arg0 {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
func.func @unsqueeze(%arg0: tensor<4x6xf32>) -> tensor<4x1x6xf32> {
  %0 = aten.unsqueeze %arg0 {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x1x6xf32>
  return %0 : tensor<4x1x6xf32>
}

// CHECK-LABEL: @squeeze_dim(
// CHECK: aten.squeeze.dim %arg0 {dim = 1 : i64} : (tensor<4x1x6xf32>) -> tensor<4x6xf32>
func.func @squeeze_dim(%arg0: tensor<4x1x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.squeeze.dim %arg0 {dim = 1 : i64} : (tensor<4x1x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @to_copy(
// CHECK: aten._to_copy %arg0 {dtype = bf16} : (tensor<4x6xf32>) -> tensor<4x6xbf16>
func.func @to_copy(%arg0: tensor<4x6xf32>) -> tensor<4x6xbf16> {
  %0 = aten._to_copy %arg0 {dtype = bf16} : (tensor<4x6xf32>) -> tensor<4x6xbf16>
  return %0 : tensor<4x6xbf16>
}

// CHECK-LABEL: @clone(
// CHECK: aten.clone %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @clone(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.clone %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @permute(
// CHECK: aten.permute %arg0 {dims = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
func.func @permute(%arg0: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %0 = aten.permute %arg0 {dims = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// CHECK-LABEL: @expand(
// CHECK: aten.expand %arg0 {size = array<i64: 4, 6>} : (tensor<4x1xf32>) -> tensor<4x6xf32>
func.func @expand(%arg0: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %0 = aten.expand %arg0 {size = array<i64: 4, 6>} : (tensor<4x1xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @slice_Tensor(
// CHECK: aten.slice.Tensor %arg0 {dim = 0 : i64, end = 3 : i64, start = 1 : i64} : (tensor<4x6xf32>) -> tensor<2x6xf32>
func.func @slice_Tensor(%arg0: tensor<4x6xf32>) -> tensor<2x6xf32> {
  %0 = aten.slice.Tensor %arg0 {dim = 0 : i64, end = 3 : i64, start = 1 : i64} : (tensor<4x6xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// CHECK-LABEL: @slice_Tensor__1(
// CHECK: aten.slice.Tensor %arg0 {dim = 0 : i64, end = 4 : i64, start = 0 : i64, step = 2 : i64} : (tensor<4x6xf32>) -> tensor<2x6xf32>
func.func @slice_Tensor__1(%arg0: tensor<4x6xf32>) -> tensor<2x6xf32> {
  %0 = aten.slice.Tensor %arg0 {dim = 0 : i64, end = 4 : i64, start = 0 : i64, step = 2 : i64} : (tensor<4x6xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// CHECK-LABEL: @select_int(
// CHECK: aten.select.int %arg0 {dim = 0 : i64, index = 3 : i64} : (tensor<4x6xf32>) -> tensor<6xf32>
func.func @select_int(%arg0: tensor<4x6xf32>) -> tensor<6xf32> {
  %0 = aten.select.int %arg0 {dim = 0 : i64, index = 3 : i64} : (tensor<4x6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL: @split_Tensor(
// CHECK: aten.split.Tensor %arg0 {dim = 1 : i64, split_size = 2 : i64} : (tensor<4x5xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x1xf32>)
func.func @split_Tensor(%arg0: tensor<4x5xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x1xf32>) {
  %0:3 = aten.split.Tensor %arg0 {dim = 1 : i64, split_size = 2 : i64} : (tensor<4x5xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x1xf32>)
  return %0#0, %0#1, %0#2 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x1xf32>
}

// CHECK-LABEL: @split_with_sizes(
// CHECK: aten.split_with_sizes %arg0 {dim = 0 : i64, split_sizes = array<i64: 1, 3>} : (tensor<4x6xf32>) -> (tensor<1x6xf32>, tensor<3x6xf32>)
func.func @split_with_sizes(%arg0: tensor<4x6xf32>) -> (tensor<1x6xf32>, tensor<3x6xf32>) {
  %0:2 = aten.split_with_sizes %arg0 {dim = 0 : i64, split_sizes = array<i64: 1, 3>} : (tensor<4x6xf32>) -> (tensor<1x6xf32>, tensor<3x6xf32>)
  return %0#0, %0#1 : tensor<1x6xf32>, tensor<3x6xf32>
}

// CHECK-LABEL: @cat(
// CHECK: aten.cat %arg0, %arg1 {dim = 0 : i64} : (tensor<1x6xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
func.func @cat(%arg0: tensor<1x6xf32>, %arg1: tensor<3x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.cat %arg0, %arg1 {dim = 0 : i64} : (tensor<1x6xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @stack(
// CHECK: aten.stack %arg0, %arg1 {dim = 0 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
func.func @stack(%arg0: tensor<6xf32>, %arg1: tensor<6xf32>) -> tensor<2x6xf32> {
  %0 = aten.stack %arg0, %arg1 {dim = 0 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// CHECK-LABEL: @slice_backward(
// CHECK: aten.slice_backward %arg0 {dim = 0 : i64, end = 3 : i64, input_sizes = array<i64: 4, 6>, start = 1 : i64, step = 1 : i64} : (tensor<2x6xf32>) -> tensor<4x6xf32>
func.func @slice_backward(%arg0: tensor<2x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.slice_backward %arg0 {dim = 0 : i64, end = 3 : i64, input_sizes = array<i64: 4, 6>, start = 1 : i64, step = 1 : i64} : (tensor<2x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @select_backward(
// CHECK: aten.select_backward %arg0 {dim = 0 : i64, index = 3 : i64, input_sizes = array<i64: 4, 6>} : (tensor<6xf32>) -> tensor<4x6xf32>
func.func @select_backward(%arg0: tensor<6xf32>) -> tensor<4x6xf32> {
  %0 = aten.select_backward %arg0 {dim = 0 : i64, index = 3 : i64, input_sizes = array<i64: 4, 6>} : (tensor<6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @slice_scatter(
// CHECK: aten.slice_scatter %arg0, %arg1 {dim = 0 : i64, end = 3 : i64, start = 1 : i64} : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
func.func @slice_scatter(%arg0: tensor<4x6xf32>, %arg1: tensor<2x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.slice_scatter %arg0, %arg1 {dim = 0 : i64, end = 3 : i64, start = 1 : i64} : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @select_scatter(
// CHECK: aten.select_scatter %arg0, %arg1 {dim = 0 : i64, index = 3 : i64} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
func.func @select_scatter(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xf32> {
  %0 = aten.select_scatter %arg0, %arg1 {dim = 0 : i64, index = 3 : i64} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @flip(
// CHECK: aten.flip %arg0 {dims = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @flip(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.flip %arg0 {dims = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @full(
// CHECK: aten.full {fill_value = 1.000000e+00 : f64, size = array<i64: 4, 6>} : () -> tensor<4x6xf32>
func.func @full() -> tensor<4x6xf32> {
  %0 = aten.full {fill_value = 1.000000e+00 : f64, size = array<i64: 4, 6>} : () -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @arange_start_step(
// CHECK: aten.arange.start_step {end = 7 : i64, start = 1 : i64, step = 2 : i64} : () -> tensor<3xi64>
func.func @arange_start_step() -> tensor<3xi64> {
  %0 = aten.arange.start_step {end = 7 : i64, start = 1 : i64, step = 2 : i64} : () -> tensor<3xi64>
  return %0 : tensor<3xi64>
}

// A truth value is the number 1.
// CHECK-LABEL: @arange_from_true(
// CHECK: aten.arange.start_step {end = 4 : i64, start = true, step = true} : () -> tensor<3xi64>
func.func @arange_from_true() -> tensor<3xi64> {
  %0 = aten.arange.start_step {end = 4 : i64, start = true, step = true} : () -> tensor<3xi64>
  return %0 : tensor<3xi64>
}

// CHECK-LABEL: @scalar_tensor(
// CHECK: aten.scalar_tensor {s = 2.000000e+00 : f64} : () -> tensor<f32>
func.func @scalar_tensor() -> tensor<f32> {
  %0 = aten.scalar_tensor {s = 2.000000e+00 : f64} : () -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @constant(
// CHECK: aten.constant dense<[3, 4]> : tensor<2xi64> : tensor<2xi64>
func.func @constant() -> tensor<2xi64> {
  %0 = aten.constant dense<[3, 4]> : tensor<2xi64> : tensor<2xi64>
  return %0 : tensor<2xi64>
}
