// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenReduce.td.

// CHECK-LABEL: @sum_dim_IntList(
// CHECK: aten.sum.dim_IntList %arg0 {dim = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<6xf32>
func.func @sum_dim_IntList(%arg0: tensor<4x6xf32>) -> tensor<6xf32> {
  %0 = aten.sum.dim_IntList %arg0 {dim = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL: @sum_dim_IntList__1(
// CHECK: aten.sum.dim_IntList %arg0 {dim = array<i64: 0>, dtype = f32, keepdim = true} : (tensor<4x6xbf16>) -> tensor<1x6xf32>
func.func @sum_dim_IntList__1(%arg0: tensor<4x6xbf16>) -> tensor<1x6xf32> {
  %0 = aten.sum.dim_IntList %arg0 {dim = array<i64: 0>, dtype = f32, keepdim = true} : (tensor<4x6xbf16>) -> tensor<1x6xf32>
  return %0 : tensor<1x6xf32>
}

// CHECK-LABEL: @mean_dim(
// CHECK: aten.mean.dim %arg0 {dim = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<f32>
func.func @mean_dim(%arg0: tensor<4x6xf32>) -> tensor<f32> {
  %0 = aten.mean.dim %arg0 {dim = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @amax(
// CHECK: aten.amax %arg0 {dim = array<i64: 1>, keepdim = true} : (tensor<4x6xf32>) -> tensor<4x1xf32>
func.func @amax(%arg0: tensor<4x6xf32>) -> tensor<4x1xf32> {
  %0 = aten.amax %arg0 {dim = array<i64: 1>, keepdim = true} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

// CHECK-LABEL: @linalg_vector_norm(
// CHECK: aten.linalg_vector_norm %arg0 {dim = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<f32>
func.func @linalg_vector_norm(%arg0: tensor<4x6xf32>) -> tensor<f32> {
  %0 = aten.linalg_vector_norm %arg0 {dim = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @linalg_vector_norm__1(
// CHECK: aten.linalg_vector_norm %arg0 {dim = array<i64: 1>, ord = 0x7FF0000000000000 : f64} : (tensor<4x6xf32>) -> tensor<4xf32>
func.func @linalg_vector_norm__1(%arg0: tensor<4x6xf32>) -> tensor<4xf32> {
  %0 = aten.linalg_vector_norm %arg0 {dim = array<i64: 1>, ord = 0x7FF0000000000000 : f64} : (tensor<4x6xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @var_mean_correction(
// CHECK: aten.var_mean.correction %arg0 {correction = 0 : i64, dim = array<i64: 1>, keepdim = true} : (tensor<4x6xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>)
func.func @var_mean_correction(%arg0: tensor<4x6xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %0:2 = aten.var_mean.correction %arg0 {correction = 0 : i64, dim = array<i64: 1>, keepdim = true} : (tensor<4x6xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>)
  return %0#0, %0#1 : tensor<4x1xf32>, tensor<4x1xf32>
}
