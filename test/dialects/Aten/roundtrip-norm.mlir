// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenNorm.td.

// CHECK-LABEL: @rms_norm(
// CHECK: aten.rms_norm %arg0, %arg1 {eps = 1.000000e-05 : f64, normalized_shape = array<i64: 6>} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>)
func.func @rms_norm(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>) {
  %0:2 = aten.rms_norm %arg0, %arg1 {eps = 1.000000e-05 : f64, normalized_shape = array<i64: 6>} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<4x1xf32>
}

// CHECK-LABEL: @rms_norm__1(
// CHECK: aten.rms_norm %arg0 {eps = 1.000000e-05 : f64, normalized_shape = array<i64: 6>} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>)
func.func @rms_norm__1(%arg0: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>) {
  %0:2 = aten.rms_norm %arg0 {eps = 1.000000e-05 : f64, normalized_shape = array<i64: 6>} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<4x1xf32>
}

// CHECK-LABEL: @rms_norm_backward(
// CHECK: aten.rms_norm_backward %arg0, %arg1, %arg2, %arg3 {normalized_shape = array<i64: 6>, output_mask = array<i1: true, true>, resultSegmentSizes = array<i32: 1, 1>} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x1xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @rms_norm_backward(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x1xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten.rms_norm_backward %arg0, %arg1, %arg2, %arg3 {normalized_shape = array<i64: 6>, output_mask = array<i1: true, true>, resultSegmentSizes = array<i32: 1, 1>} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x1xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}
