// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenPointwise.td.

// CHECK-LABEL: @add_Tensor(
// CHECK: aten.add.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
func.func @add_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xf32> {
  %0 = aten.add.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @add_Tensor__1(
// CHECK: aten.add.Tensor %arg0, %arg1 {alpha = 2.500000e+00 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @add_Tensor__1(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.add.Tensor %arg0, %arg1 {alpha = 2.500000e+00 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sub_Tensor(
// CHECK: aten.sub.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
func.func @sub_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>) -> tensor<4x6xf32> {
  %0 = aten.sub.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sub_Tensor__1(
// CHECK: aten.sub.Tensor %arg0, %arg1 {alpha = 2.500000e+00 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @sub_Tensor__1(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.sub.Tensor %arg0, %arg1 {alpha = 2.500000e+00 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @add_Scalar(
// CHECK: aten.add.Scalar %arg0 {alpha = 2 : i64, other = 1.500000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @add_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.add.Scalar %arg0 {alpha = 2 : i64, other = 1.500000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sub_Scalar(
// CHECK: aten.sub.Scalar %arg0 {alpha = 2 : i64, other = 1.500000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @sub_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.sub.Scalar %arg0 {alpha = 2 : i64, other = 1.500000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @rsub_Scalar(
// CHECK: aten.rsub.Scalar %arg0 {alpha = 2 : i64, other = 1.500000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @rsub_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.rsub.Scalar %arg0 {alpha = 2 : i64, other = 1.500000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @mul_Tensor(
// CHECK: aten.mul.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
func.func @mul_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %0 = aten.mul.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @div_Tensor(
// CHECK: aten.div.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
func.func @div_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %0 = aten.div.Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @maximum(
// CHECK: aten.maximum %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
func.func @maximum(%arg0: tensor<4x6xf32>, %arg1: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %0 = aten.maximum %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @minimum(
// CHECK: aten.minimum %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
func.func @minimum(%arg0: tensor<4x6xf32>, %arg1: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %0 = aten.minimum %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @mul_Scalar(
// CHECK: aten.mul.Scalar %arg0 {other = 2 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @mul_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.mul.Scalar %arg0 {other = 2 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @div_Scalar(
// CHECK: aten.div.Scalar %arg0 {other = 2 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @div_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.div.Scalar %arg0 {other = 2 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @neg(
// CHECK: aten.neg %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @neg(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.neg %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @exp(
// CHECK: aten.exp %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @exp(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.exp %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @log(
// CHECK: aten.log %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @log(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.log %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sqrt(
// CHECK: aten.sqrt %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @sqrt(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.sqrt %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @rsqrt(
// CHECK: aten.rsqrt %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @rsqrt(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.rsqrt %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @reciprocal(
// CHECK: aten.reciprocal %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @reciprocal(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.reciprocal %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @abs(
// CHECK: aten.abs %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @abs(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.abs %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @erf(
// CHECK: aten.erf %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @erf(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.erf %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @cos(
// CHECK: aten.cos %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @cos(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.cos %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sin(
// CHECK: aten.sin %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @sin(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.sin %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @tanh(
// CHECK: aten.tanh %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @tanh(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.tanh %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sigmoid(
// CHECK: aten.sigmoid %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @sigmoid(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.sigmoid %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @silu(
// CHECK: aten.silu %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @silu(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.silu %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @relu(
// CHECK: aten.relu %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @relu(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.relu %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @gelu(
// CHECK: aten.gelu %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @gelu(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.gelu %arg0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @gelu__1(
// CHECK: aten.gelu %arg0 {approximate = "tanh"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @gelu__1(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.gelu %arg0 {approximate = "tanh"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @tanh_backward(
// CHECK: aten.tanh_backward %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @tanh_backward(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.tanh_backward %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sigmoid_backward(
// CHECK: aten.sigmoid_backward %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @sigmoid_backward(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.sigmoid_backward %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @silu_backward(
// CHECK: aten.silu_backward %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @silu_backward(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.silu_backward %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @gelu_backward(
// CHECK: aten.gelu_backward %arg0, %arg1 {approximate = "tanh"} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @gelu_backward(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.gelu_backward %arg0, %arg1 {approximate = "tanh"} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @threshold_backward(
// CHECK: aten.threshold_backward %arg0, %arg1 {threshold = 0 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @threshold_backward(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.threshold_backward %arg0, %arg1 {threshold = 0 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @pow_Tensor_Scalar(
// CHECK: aten.pow.Tensor_Scalar %arg0 {exponent = 2 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @pow_Tensor_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.pow.Tensor_Scalar %arg0 {exponent = 2 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @pow_Scalar(
// CHECK: aten.pow.Scalar %arg0 {self = 9.000000e-01 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @pow_Scalar(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.pow.Scalar %arg0 {self = 9.000000e-01 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @pow_Tensor_Tensor(
// CHECK: aten.pow.Tensor_Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @pow_Tensor_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.pow.Tensor_Tensor %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @clamp(
// CHECK: aten.clamp %arg0 {max = 1.000000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @clamp(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.clamp %arg0 {max = 1.000000e+00 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @clamp__1(
// CHECK: aten.clamp %arg0 {max = 1 : i64, min = -1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @clamp__1(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.clamp %arg0 {max = 1 : i64, min = -1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @clamp_Tensor(
// CHECK: aten.clamp.Tensor %arg0, %arg1 {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
func.func @clamp_Tensor(%arg0: tensor<4x6xf32>, %arg1: tensor<f32>) -> tensor<4x6xf32> {
  %0 = aten.clamp.Tensor %arg0, %arg1 {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @addcmul(
// CHECK: aten.addcmul %arg0, %arg1, %arg2 {value = 5.000000e-01 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @addcmul(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.addcmul %arg0, %arg1, %arg2 {value = 5.000000e-01 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @addcdiv(
// CHECK: aten.addcdiv %arg0, %arg1, %arg2 {value = 5.000000e-01 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @addcdiv(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.addcdiv %arg0, %arg1, %arg2 {value = 5.000000e-01 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @lerp_Scalar(
// CHECK: aten.lerp.Scalar %arg0, %arg1 {weight = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @lerp_Scalar(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.lerp.Scalar %arg0, %arg1 {weight = 1.000000e-01 : f64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @anchor(
// CHECK: aten.anchor %arg0 {name = "hidden"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @anchor(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.anchor %arg0 {name = "hidden"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
