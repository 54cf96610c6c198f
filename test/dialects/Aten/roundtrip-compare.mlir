// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenCompare.td.

// CHECK-LABEL: @eq_Scalar(
// CHECK: aten.eq.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
func.func @eq_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %0 = aten.eq.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @eq_Tensor(
// CHECK: aten.eq.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
func.func @eq_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xi1> {
  %0 = aten.eq.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @ne_Scalar(
// CHECK: aten.ne.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
func.func @ne_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %0 = aten.ne.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @ne_Tensor(
// CHECK: aten.ne.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
func.func @ne_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xi1> {
  %0 = aten.ne.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @lt_Scalar(
// CHECK: aten.lt.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
func.func @lt_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %0 = aten.lt.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @lt_Tensor(
// CHECK: aten.lt.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
func.func @lt_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xi1> {
  %0 = aten.lt.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @le_Scalar(
// CHECK: aten.le.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
func.func @le_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %0 = aten.le.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @le_Tensor(
// CHECK: aten.le.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
func.func @le_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xi1> {
  %0 = aten.le.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @gt_Scalar(
// CHECK: aten.gt.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
func.func @gt_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %0 = aten.gt.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @gt_Tensor(
// CHECK: aten.gt.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
func.func @gt_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xi1> {
  %0 = aten.gt.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @ge_Scalar(
// CHECK: aten.ge.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
func.func @ge_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %0 = aten.ge.Scalar %arg0 {other = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @ge_Tensor(
// CHECK: aten.ge.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
func.func @ge_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xi1> {
  %0 = aten.ge.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @logical_not(
// CHECK: aten.logical_not %arg0 : (tensor<4x6xf32>) -> tensor<4x6xi1>
func.func @logical_not(%arg0: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %0 = aten.logical_not %arg0 : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @logical_and(
// CHECK: aten.logical_and %arg0, %arg1 : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
func.func @logical_and(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xi1>) -> tensor<4x6xi1> {
  %0 = aten.logical_and %arg0, %arg1 : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @bitwise_not(
// CHECK: aten.bitwise_not %arg0 : (tensor<4x6xi1>) -> tensor<4x6xi1>
func.func @bitwise_not(%arg0: tensor<4x6xi1>) -> tensor<4x6xi1> {
  %0 = aten.bitwise_not %arg0 : (tensor<4x6xi1>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @bitwise_and_Tensor(
// CHECK: aten.bitwise_and.Tensor %arg0, %arg1 : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
func.func @bitwise_and_Tensor(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xi1>) -> tensor<4x6xi1> {
  %0 = aten.bitwise_and.Tensor %arg0, %arg1 : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
  return %0 : tensor<4x6xi1>
}

// CHECK-LABEL: @where_self(
// CHECK: aten.where.self %arg0, %arg1, %arg2 : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
func.func @where_self(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xf32>, %arg2: tensor<f32>) -> tensor<4x6xf32> {
  %0 = aten.where.self %arg0, %arg1, %arg2 : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @masked_fill_Scalar(
// CHECK: aten.masked_fill.Scalar %arg0, %arg1 {value = 0xFFF0000000000000 : f64} : (tensor<4x6xf32>, tensor<4x6xi1>) -> tensor<4x6xf32>
func.func @masked_fill_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xi1>) -> tensor<4x6xf32> {
  %0 = aten.masked_fill.Scalar %arg0, %arg1 {value = 0xFFF0000000000000 : f64} : (tensor<4x6xf32>, tensor<4x6xi1>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
