// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenOptim.td, in list and in chunk form.

// CHECK-LABEL: @foreach_add_Scalar(
// CHECK: aten._foreach_add.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_add_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_add.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_add_ScalarList(
// CHECK: aten._foreach_add.ScalarList %arg0, %arg1 {scalars = [1.000000e-01, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_add_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_add.ScalarList %arg0, %arg1 {scalars = [1.000000e-01 : f64, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_add_List(
// CHECK: aten._foreach_add.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_add_List(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_add.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_sub_Scalar(
// CHECK: aten._foreach_sub.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_sub_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_sub.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_sub_ScalarList(
// CHECK: aten._foreach_sub.ScalarList %arg0, %arg1 {scalars = [1.000000e-01, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_sub_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_sub.ScalarList %arg0, %arg1 {scalars = [1.000000e-01 : f64, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_sub_List(
// CHECK: aten._foreach_sub.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_sub_List(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_sub.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_mul_Scalar(
// CHECK: aten._foreach_mul.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_mul_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_mul.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_mul_ScalarList(
// CHECK: aten._foreach_mul.ScalarList %arg0, %arg1 {scalars = [1.000000e-01, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_mul_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_mul.ScalarList %arg0, %arg1 {scalars = [1.000000e-01 : f64, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_mul_List(
// CHECK: aten._foreach_mul.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_mul_List(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_mul.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_div_Scalar(
// CHECK: aten._foreach_div.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_div_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_div.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_div_ScalarList(
// CHECK: aten._foreach_div.ScalarList %arg0, %arg1 {scalars = [1.000000e-01, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_div_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_div.ScalarList %arg0, %arg1 {scalars = [1.000000e-01 : f64, 2]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_div_List(
// CHECK: aten._foreach_div.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_div_List(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_div.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_add_List__1(
// CHECK: aten._foreach_add.List %arg0, %arg1 {alpha = -1 : i64, unit = @unit0} : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
func.func @foreach_add_List__1(%arg0: tensor<512xf32>, %arg1: tensor<512xf32>) -> tensor<512xf32> {
  %0 = aten._foreach_add.List %arg0, %arg1 {alpha = -1 : i64, unit = @unit0} : (tensor<512xf32>, tensor<512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// CHECK-LABEL: @foreach_add_Tensor(
// CHECK: aten._foreach_add.Tensor %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_add_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_add.Tensor %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_mul_Tensor(
// CHECK: aten._foreach_mul.Tensor %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_mul_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_mul.Tensor %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_div_Tensor(
// CHECK: aten._foreach_div.Tensor %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_div_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_div.Tensor %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_neg(
// CHECK: aten._foreach_neg %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_neg(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_neg %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_sqrt(
// CHECK: aten._foreach_sqrt %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_sqrt(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_sqrt %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_reciprocal(
// CHECK: aten._foreach_reciprocal %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_reciprocal(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_reciprocal %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_pow_ScalarAndTensor(
// CHECK: aten._foreach_pow.ScalarAndTensor %arg0, %arg1 {self = 9.000000e-01 : f64} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
func.func @foreach_pow_ScalarAndTensor(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = aten._foreach_pow.ScalarAndTensor %arg0, %arg1 {self = 9.000000e-01 : f64} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @foreach_pow_Scalar(
// CHECK: aten._foreach_pow.Scalar %arg0, %arg1 {exponent = 2 : i64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_pow_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_pow.Scalar %arg0, %arg1 {exponent = 2 : i64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_pow_ScalarList(
// CHECK: aten._foreach_pow.ScalarList %arg0, %arg1 {exponent = [2, 3]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_pow_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_pow.ScalarList %arg0, %arg1 {exponent = [2, 3]} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_pow_List(
// CHECK: aten._foreach_pow.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_pow_List(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_pow.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_lerp_Scalar(
// CHECK: aten._foreach_lerp.Scalar %arg0, %arg1, %arg2, %arg3 {weight = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_lerp_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_lerp.Scalar %arg0, %arg1, %arg2, %arg3 {weight = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_lerp_ScalarList(
// CHECK: aten._foreach_lerp.ScalarList %arg0, %arg1, %arg2, %arg3 {weight = [1.000000e-01, 1.000000e-01]} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_lerp_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_lerp.ScalarList %arg0, %arg1, %arg2, %arg3 {weight = [1.000000e-01 : f64, 1.000000e-01 : f64]} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_lerp_List(
// CHECK: aten._foreach_lerp.List %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_lerp_List(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_lerp.List %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_addcmul_Scalar(
// CHECK: aten._foreach_addcmul.Scalar %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {value = -1 : i64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_addcmul_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_addcmul.Scalar %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {value = -1 : i64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_addcmul_ScalarList(
// CHECK: aten._foreach_addcmul.ScalarList %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {scalars = [1, 2]} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_addcmul_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_addcmul.ScalarList %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {scalars = [1, 2]} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_addcmul_Tensor(
// CHECK: aten._foreach_addcmul.Tensor %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<2xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_addcmul_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>, %arg6: tensor<2xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_addcmul.Tensor %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<2xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_addcdiv_Scalar(
// CHECK: aten._foreach_addcdiv.Scalar %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {value = -1 : i64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_addcdiv_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_addcdiv.Scalar %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {value = -1 : i64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_addcdiv_ScalarList(
// CHECK: aten._foreach_addcdiv.ScalarList %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {scalars = [1, 2]} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_addcdiv_ScalarList(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_addcdiv.ScalarList %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {scalars = [1, 2]} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_addcdiv_Tensor(
// CHECK: aten._foreach_addcdiv.Tensor %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<2xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_addcdiv_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>, %arg6: tensor<2xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_addcdiv.Tensor %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<2xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_maximum_List(
// CHECK: aten._foreach_maximum.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_maximum_List(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_maximum.List %arg0, %arg1, %arg2, %arg3 : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_maximum_Scalar(
// CHECK: aten._foreach_maximum.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_maximum_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_maximum.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_minimum_Scalar(
// CHECK: aten._foreach_minimum.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_minimum_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_minimum.Scalar %arg0, %arg1 {scalar = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @foreach_norm_Scalar(
// CHECK: aten._foreach_norm.Scalar %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<f32>, tensor<f32>)
func.func @foreach_norm_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = aten._foreach_norm.Scalar %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @foreach_norm_Scalar__1(
// CHECK: aten._foreach_norm.Scalar %arg0, %arg1 {ord = 1 : i64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<f32>, tensor<f32>)
func.func @foreach_norm_Scalar__1(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = aten._foreach_norm.Scalar %arg0, %arg1 {ord = 1 : i64} : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @fused_adam(
// CHECK: aten._fused_adam %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10 {beta1 = array<f64: 9.000000e-01>, beta2 = array<f64: 9.000000e-01>, eps = array<f64: 9.000000e-01>, groups = array<i64: 0, 0>, operandSegmentSizes = array<i32: 2, 2, 2, 2, 0, 2, 1>, resultSegmentSizes = array<i32: 2, 2, 2, 0>, weight_decay = array<f64: 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
func.func @fused_adam(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>, %arg6: tensor<4x6xf32>, %arg7: tensor<6xf32>, %arg8: tensor<f32>, %arg9: tensor<f32>, %arg10: tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) {
  %0:6 = aten._fused_adam %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10 {beta1 = array<f64: 9.000000e-01>, beta2 = array<f64: 9.000000e-01>, eps = array<f64: 9.000000e-01>, groups = array<i64: 0, 0>, operandSegmentSizes = array<i32: 2, 2, 2, 2, 0, 2, 1>, resultSegmentSizes = array<i32: 2, 2, 2, 0>, weight_decay = array<f64: 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @fused_adam__1(
// CHECK: aten._fused_adam %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11 {amsgrad = true, beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1>, lr_values = array<f64: 9.000000e-01, 9.000000e-01>, maximize = true, operandSegmentSizes = array<i32: 2, 2, 2, 2, 2, 2, 0>, resultSegmentSizes = array<i32: 2, 2, 2, 2>, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
func.func @fused_adam__1(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>, %arg6: tensor<4x6xf32>, %arg7: tensor<6xf32>, %arg8: tensor<4x6xf32>, %arg9: tensor<6xf32>, %arg10: tensor<f32>, %arg11: tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) {
  %0:8 = aten._fused_adam %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11 {amsgrad = true, beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1>, lr_values = array<f64: 9.000000e-01, 9.000000e-01>, maximize = true, operandSegmentSizes = array<i32: 2, 2, 2, 2, 2, 2, 0>, resultSegmentSizes = array<i32: 2, 2, 2, 2>, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7 : tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @fused_adam__2(
// CHECK: aten._fused_adam %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1, 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2>, resultSegmentSizes = array<i32: 1, 1, 1, 0>, unit = @unit0, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<3xf32>, tensor<f64>, tensor<f64>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>)
func.func @fused_adam__2(%arg0: tensor<512xf32>, %arg1: tensor<512xf32>, %arg2: tensor<512xf32>, %arg3: tensor<512xf32>, %arg4: tensor<3xf32>, %arg5: tensor<f64>, %arg6: tensor<f64>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>) {
  %0:3 = aten._fused_adam %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1, 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2>, resultSegmentSizes = array<i32: 1, 1, 1, 0>, unit = @unit0, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<3xf32>, tensor<f64>, tensor<f64>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>)
  return %0#0, %0#1, %0#2 : tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
}

// CHECK-LABEL: @fused_adamw(
// CHECK: aten._fused_adamw %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10 {beta1 = array<f64: 9.000000e-01>, beta2 = array<f64: 9.000000e-01>, eps = array<f64: 9.000000e-01>, groups = array<i64: 0, 0>, operandSegmentSizes = array<i32: 2, 2, 2, 2, 0, 2, 1>, resultSegmentSizes = array<i32: 2, 2, 2, 0>, weight_decay = array<f64: 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
func.func @fused_adamw(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>, %arg6: tensor<4x6xf32>, %arg7: tensor<6xf32>, %arg8: tensor<f32>, %arg9: tensor<f32>, %arg10: tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) {
  %0:6 = aten._fused_adamw %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10 {beta1 = array<f64: 9.000000e-01>, beta2 = array<f64: 9.000000e-01>, eps = array<f64: 9.000000e-01>, groups = array<i64: 0, 0>, operandSegmentSizes = array<i32: 2, 2, 2, 2, 0, 2, 1>, resultSegmentSizes = array<i32: 2, 2, 2, 0>, weight_decay = array<f64: 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @fused_adamw__1(
// CHECK: aten._fused_adamw %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11 {amsgrad = true, beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1>, lr_values = array<f64: 9.000000e-01, 9.000000e-01>, maximize = true, operandSegmentSizes = array<i32: 2, 2, 2, 2, 2, 2, 0>, resultSegmentSizes = array<i32: 2, 2, 2, 2>, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
func.func @fused_adamw__1(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>, %arg6: tensor<4x6xf32>, %arg7: tensor<6xf32>, %arg8: tensor<4x6xf32>, %arg9: tensor<6xf32>, %arg10: tensor<f32>, %arg11: tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) {
  %0:8 = aten._fused_adamw %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11 {amsgrad = true, beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1>, lr_values = array<f64: 9.000000e-01, 9.000000e-01>, maximize = true, operandSegmentSizes = array<i32: 2, 2, 2, 2, 2, 2, 0>, resultSegmentSizes = array<i32: 2, 2, 2, 2>, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7 : tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @fused_adamw__2(
// CHECK: aten._fused_adamw %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1, 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2>, resultSegmentSizes = array<i32: 1, 1, 1, 0>, unit = @unit0, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<3xf32>, tensor<f64>, tensor<f64>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>)
func.func @fused_adamw__2(%arg0: tensor<512xf32>, %arg1: tensor<512xf32>, %arg2: tensor<512xf32>, %arg3: tensor<512xf32>, %arg4: tensor<3xf32>, %arg5: tensor<f64>, %arg6: tensor<f64>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>) {
  %0:3 = aten._fused_adamw %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {beta1 = array<f64: 9.000000e-01, 9.000000e-01>, beta2 = array<f64: 9.000000e-01, 9.000000e-01>, eps = array<f64: 9.000000e-01, 9.000000e-01>, groups = array<i64: 0, 1, 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2>, resultSegmentSizes = array<i32: 1, 1, 1, 0>, unit = @unit0, weight_decay = array<f64: 9.000000e-01, 9.000000e-01>} : (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<3xf32>, tensor<f64>, tensor<f64>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>)
  return %0#0, %0#1, %0#2 : tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
}

// CHECK-LABEL: @fused_sgd(
// CHECK: aten._fused_sgd %arg0, %arg1, %arg2, %arg3, %arg4 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0>, momentum = array<f64: 0.000000e+00>, operandSegmentSizes = array<i32: 2, 2, 0, 1>, resultSegmentSizes = array<i32: 2, 0>, weight_decay = array<f64: 0.000000e+00>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @fused_sgd(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._fused_sgd %arg0, %arg1, %arg2, %arg3, %arg4 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0>, momentum = array<f64: 0.000000e+00>, operandSegmentSizes = array<i32: 2, 2, 0, 1>, resultSegmentSizes = array<i32: 2, 0>, weight_decay = array<f64: 0.000000e+00>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @fused_sgd__1(
// CHECK: aten._fused_sgd %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0>, momentum = array<f64: 0.000000e+00>, nesterov = true, operandSegmentSizes = array<i32: 2, 2, 2, 1>, resultSegmentSizes = array<i32: 2, 2>, weight_decay = array<f64: 0.000000e+00>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
func.func @fused_sgd__1(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6xf32>, %arg4: tensor<4x6xf32>, %arg5: tensor<6xf32>, %arg6: tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>) {
  %0:4 = aten._fused_sgd %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0>, momentum = array<f64: 0.000000e+00>, nesterov = true, operandSegmentSizes = array<i32: 2, 2, 2, 1>, resultSegmentSizes = array<i32: 2, 2>, weight_decay = array<f64: 0.000000e+00>} : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<f64>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @fused_sgd__2(
// CHECK: aten._fused_sgd %arg0, %arg1, %arg2 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0, 0>, lr_values = array<f64: 1.000000e-01>, momentum = array<f64: 0.000000e+00>, operandSegmentSizes = array<i32: 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 1>, unit = @unit0, weight_decay = array<f64: 0.000000e+00>} : (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>)
func.func @fused_sgd__2(%arg0: tensor<512xf32>, %arg1: tensor<512xf32>, %arg2: tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  %0:2 = aten._fused_sgd %arg0, %arg1, %arg2 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0, 0>, lr_values = array<f64: 1.000000e-01>, momentum = array<f64: 0.000000e+00>, operandSegmentSizes = array<i32: 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 1>, unit = @unit0, weight_decay = array<f64: 0.000000e+00>} : (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>)
  return %0#0, %0#1 : tensor<512xf32>, tensor<512xf32>
}

// CHECK-LABEL: @foreach_map(
// CHECK: aten._foreach_map %arg0, %arg1, %arg2, %arg3 {op = "add.Tensor", options = {alpha = 2 : i64}} : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
func.func @foreach_map(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<f32>, %arg3: tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  %0:2 = aten._foreach_map %arg0, %arg1, %arg2, %arg3 {op = "add.Tensor", options = {alpha = 2 : i64}} : (tensor<4x6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}
