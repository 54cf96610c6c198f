// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of ops with a number for an operand.

// CHECK-LABEL: @scalars(
// CHECK: aten.bitwise_and.Scalar %arg1 {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
// CHECK: aten.bitwise_or.Scalar %arg1 {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
// CHECK: aten.bitwise_xor.Scalar %arg1 {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
// CHECK: aten.bitwise_left_shift.Tensor_Scalar %arg1 {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
// CHECK: aten.bitwise_right_shift.Tensor_Scalar %arg1 {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
// CHECK: aten.copysign.Scalar %arg0 {other = -1.000000e+00 : f64} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: aten.div.Scalar_mode %arg0 {other = 3 : i64, rounding_mode = "floor"} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: aten.fmod.Scalar %arg0 {other = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: aten.xlogy.Scalar_Other %arg0 {other = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: aten.xlogy.Scalar_Self %arg0 {self = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
func.func @scalars(%x: tensor<4xf32>, %i: tensor<4xi64>) {
  %0 = aten.bitwise_and.Scalar %i {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %1 = aten.bitwise_or.Scalar %i {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %2 = aten.bitwise_xor.Scalar %i {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %3 = aten.bitwise_left_shift.Tensor_Scalar %i {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %4 = aten.bitwise_right_shift.Tensor_Scalar %i {other = 3 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  %5 = aten.copysign.Scalar %x {other = -1.000000e+00 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = aten.div.Scalar_mode %x {other = 3 : i64, rounding_mode = "floor"} : (tensor<4xf32>) -> tensor<4xf32>
  %7 = aten.fmod.Scalar %x {other = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = aten.xlogy.Scalar_Other %x {other = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %9 = aten.xlogy.Scalar_Self %x {self = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
