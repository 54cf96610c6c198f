// RUN: spmd-opt %s | spmd-opt | FileCheck %s

// Ops of a tensor and a number that no capture of ours has.

// CHECK-LABEL: @numbers
func.func @numbers(%x: tensor<3xf32>, %i: tensor<3xi64>) {
  // CHECK: aten.xlogy.Scalar_Self %{{.*}} {self = 2.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  %0 = aten.xlogy.Scalar_Self %x {self = 2.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: aten.xlogy.Scalar_Other %{{.*}} {other = 2.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  %1 = aten.xlogy.Scalar_Other %x {other = 2.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: aten.copysign.Scalar %{{.*}} {other = -1.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  %2 = aten.copysign.Scalar %x {other = -1.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: aten.fmod.Scalar %{{.*}} {other = 2.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  %3 = aten.fmod.Scalar %x {other = 2.000000e+00 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: aten.div.Scalar_mode %{{.*}} {other = 2.000000e+00 : f64, rounding_mode = "floor"} : (tensor<3xf32>) -> tensor<3xf32>
  %4 = aten.div.Scalar_mode %x {other = 2.000000e+00 : f64, rounding_mode = "floor"} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: aten.bitwise_xor.Scalar %{{.*}} {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %5 = aten.bitwise_xor.Scalar %i {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  // CHECK: aten.bitwise_right_shift.Tensor_Scalar %{{.*}} {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %6 = aten.bitwise_right_shift.Tensor_Scalar %i {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  // CHECK: aten.bitwise_or.Scalar %{{.*}} {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %7 = aten.bitwise_or.Scalar %i {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  // CHECK: aten.bitwise_left_shift.Tensor_Scalar %{{.*}} {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %8 = aten.bitwise_left_shift.Tensor_Scalar %i {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  // CHECK: aten.bitwise_and.Scalar %{{.*}} {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %9 = aten.bitwise_and.Scalar %i {other = 1 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  return
}
