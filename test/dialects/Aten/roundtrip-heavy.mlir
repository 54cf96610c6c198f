// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenHeavy.td.

// CHECK-LABEL: @mm(
// CHECK: aten.mm %arg0, %arg1 : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
func.func @mm(%arg0: tensor<4x8xf32>, %arg1: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.mm %arg0, %arg1 : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @bmm(
// CHECK: aten.bmm %arg0, %arg1 : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
func.func @bmm(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x8x6xf32>) -> tensor<2x4x6xf32> {
  %0 = aten.bmm %arg0, %arg1 : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

// CHECK-LABEL: @addmm(
// CHECK: aten.addmm %arg0, %arg1, %arg2 : (tensor<6xf32>, tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
func.func @addmm(%arg0: tensor<6xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.addmm %arg0, %arg1, %arg2 : (tensor<6xf32>, tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @addmm__1(
// CHECK: aten.addmm %arg0, %arg1, %arg2 {alpha = 2 : i64, beta = 0 : i64} : (tensor<4x6xf32>, tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
func.func @addmm__1(%arg0: tensor<4x6xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.addmm %arg0, %arg1, %arg2 {alpha = 2 : i64, beta = 0 : i64} : (tensor<4x6xf32>, tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @baddbmm(
// CHECK: aten.baddbmm %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
func.func @baddbmm(%arg0: tensor<4x6xf32>, %arg1: tensor<2x4x8xf32>, %arg2: tensor<2x8x6xf32>) -> tensor<2x4x6xf32> {
  %0 = aten.baddbmm %arg0, %arg1, %arg2 : (tensor<4x6xf32>, tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

// CHECK-LABEL: @grouped_mm(
// CHECK: aten.grouped_mm %arg0, %arg1, %arg2 : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<8xi64>) -> tensor<8x6xf32>
func.func @grouped_mm(%arg0: tensor<8x4xf32>, %arg1: tensor<3x4x6xf32>, %arg2: tensor<8xi64>) -> tensor<8x6xf32> {
  %0 = aten.grouped_mm %arg0, %arg1, %arg2 : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<8xi64>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// CHECK-LABEL: @grouped_outer(
// CHECK: aten.grouped_outer %arg0, %arg1, %arg2 {num_groups = 3 : i64} : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<8xi64>) -> tensor<3x4x6xf32>
func.func @grouped_outer(%arg0: tensor<8x4xf32>, %arg1: tensor<8x6xf32>, %arg2: tensor<8xi64>) -> tensor<3x4x6xf32> {
  %0 = aten.grouped_outer %arg0, %arg1, %arg2 {num_groups = 3 : i64} : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<8xi64>) -> tensor<3x4x6xf32>
  return %0 : tensor<3x4x6xf32>
}

// CHECK-LABEL: @native_layer_norm(
// CHECK: aten.native_layer_norm %arg0, %arg1, %arg2 {eps = 1.000000e-05 : f64, normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>)
func.func @native_layer_norm(%arg0: tensor<2x3x8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>) {
  %0:3 = aten.native_layer_norm %arg0, %arg1, %arg2 {eps = 1.000000e-05 : f64, normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>
}

// CHECK-LABEL: @native_layer_norm_backward(
// CHECK: aten.native_layer_norm_backward %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, output_mask = array<i1: true, true, true>, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>)
func.func @native_layer_norm_backward(%arg0: tensor<2x3x8xf32>, %arg1: tensor<2x3x8xf32>, %arg2: tensor<2x3x1xf32>, %arg3: tensor<2x3x1xf32>, %arg4: tensor<8xf32>, %arg5: tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0:3 = aten.native_layer_norm_backward %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, output_mask = array<i1: true, true, true>, resultSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @native_layer_norm_backward__1(
// CHECK: aten.native_layer_norm_backward %arg0, %arg1, %arg2, %arg3 {normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>, output_mask = array<i1: true, false, false>, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
func.func @native_layer_norm_backward__1(%arg0: tensor<2x3x8xf32>, %arg1: tensor<2x3x8xf32>, %arg2: tensor<2x3x1xf32>, %arg3: tensor<2x3x1xf32>) -> tensor<2x3x8xf32> {
  %0 = aten.native_layer_norm_backward %arg0, %arg1, %arg2, %arg3 {normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>, output_mask = array<i1: true, false, false>, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// CHECK-LABEL: @embedding(
// CHECK: aten.embedding %arg0, %arg1 : (tensor<10x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
func.func @embedding(%arg0: tensor<10x8xf32>, %arg1: tensor<2x3xi64>) -> tensor<2x3x8xf32> {
  %0 = aten.embedding %arg0, %arg1 : (tensor<10x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// CHECK-LABEL: @embedding__1(
// CHECK: aten.embedding %arg0, %arg1 {padding_idx = 0 : i64} : (tensor<10x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
func.func @embedding__1(%arg0: tensor<10x8xf32>, %arg1: tensor<2x3xi64>) -> tensor<2x3x8xf32> {
  %0 = aten.embedding %arg0, %arg1 {padding_idx = 0 : i64} : (tensor<10x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// CHECK-LABEL: @embedding_dense_backward(
// CHECK: aten.embedding_dense_backward %arg0, %arg1 {num_weights = 10 : i64, padding_idx = -1 : i64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<10x8xf32>
func.func @embedding_dense_backward(%arg0: tensor<2x3x8xf32>, %arg1: tensor<2x3xi64>) -> tensor<10x8xf32> {
  %0 = aten.embedding_dense_backward %arg0, %arg1 {num_weights = 10 : i64, padding_idx = -1 : i64} : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> tensor<10x8xf32>
  return %0 : tensor<10x8xf32>
}

// CHECK-LABEL: @softmax(
// CHECK: aten._softmax %arg0 {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @softmax(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten._softmax %arg0 {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @softmax_backward_data(
// CHECK: aten._softmax_backward_data %arg0, %arg1 {dim = 1 : i64, input_dtype = f32} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @softmax_backward_data(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten._softmax_backward_data %arg0, %arg1 {dim = 1 : i64, input_dtype = f32} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @log_softmax(
// CHECK: aten._log_softmax %arg0 {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @log_softmax(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten._log_softmax %arg0 {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @log_softmax_backward_data(
// CHECK: aten._log_softmax_backward_data %arg0, %arg1 {dim = 1 : i64, input_dtype = f32} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @log_softmax_backward_data(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten._log_softmax_backward_data %arg0, %arg1 {dim = 1 : i64, input_dtype = f32} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @nll_loss_forward(
// CHECK: aten.nll_loss_forward %arg0, %arg1 {ignore_index = -100 : i64, reduction = 1 : i64} : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
func.func @nll_loss_forward(%arg0: tensor<4x6xf32>, %arg1: tensor<4xi64>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = aten.nll_loss_forward %arg0, %arg1 {ignore_index = -100 : i64, reduction = 1 : i64} : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @nll_loss_forward__1(
// CHECK: aten.nll_loss_forward %arg0, %arg1, %arg2 {ignore_index = -100 : i64, reduction = 0 : i64} : (tensor<4x6xf32>, tensor<4xi64>, tensor<6xf32>) -> (tensor<4xf32>, tensor<f32>)
func.func @nll_loss_forward__1(%arg0: tensor<4x6xf32>, %arg1: tensor<4xi64>, %arg2: tensor<6xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %0:2 = aten.nll_loss_forward %arg0, %arg1, %arg2 {ignore_index = -100 : i64, reduction = 0 : i64} : (tensor<4x6xf32>, tensor<4xi64>, tensor<6xf32>) -> (tensor<4xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
}

// CHECK-LABEL: @nll_loss_backward(
// CHECK: aten.nll_loss_backward %arg0, %arg1, %arg2, %arg3 {ignore_index = -100 : i64, reduction = 1 : i64} : (tensor<f32>, tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> tensor<4x6xf32>
func.func @nll_loss_backward(%arg0: tensor<f32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4xi64>, %arg3: tensor<f32>) -> tensor<4x6xf32> {
  %0 = aten.nll_loss_backward %arg0, %arg1, %arg2, %arg3 {ignore_index = -100 : i64, reduction = 1 : i64} : (tensor<f32>, tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @mse_loss(
// CHECK: aten.mse_loss %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<f32>
func.func @mse_loss(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<f32> {
  %0 = aten.mse_loss %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @mse_loss__1(
// CHECK: aten.mse_loss %arg0, %arg1 {reduction = 0 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @mse_loss__1(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.mse_loss %arg0, %arg1 {reduction = 0 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @mse_loss_backward(
// CHECK: aten.mse_loss_backward %arg0, %arg1, %arg2 {reduction = 1 : i64} : (tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
func.func @mse_loss_backward(%arg0: tensor<f32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = aten.mse_loss_backward %arg0, %arg1, %arg2 {reduction = 1 : i64} : (tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @sdpa(
// CHECK: aten.sdpa %arg0, %arg1, %arg2 {dropout_p = 0.000000e+00 : f64, enable_gqa = true, is_causal = true, scale = 1.250000e-01 : f64} : (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
func.func @sdpa(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x2x7x8xf32>, %arg2: tensor<2x2x7x6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) {
  %0:2 = aten.sdpa %arg0, %arg1, %arg2 {dropout_p = 0.000000e+00 : f64, enable_gqa = true, is_causal = true, scale = 1.250000e-01 : f64} : (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
  return %0#0, %0#1 : tensor<2x4x5x6xf32>, tensor<2x4x5xf32>
}

// CHECK-LABEL: @sdpa__1(
// CHECK: aten.sdpa %arg0, %arg1, %arg2, %arg3 {dropout_p = 0.000000e+00 : f64, enable_gqa = true} : (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<5x7xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
func.func @sdpa__1(%arg0: tensor<2x4x5x8xf32>, %arg1: tensor<2x2x7x8xf32>, %arg2: tensor<2x2x7x6xf32>, %arg3: tensor<5x7xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) {
  %0:2 = aten.sdpa %arg0, %arg1, %arg2, %arg3 {dropout_p = 0.000000e+00 : f64, enable_gqa = true} : (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<5x7xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
  return %0#0, %0#1 : tensor<2x4x5x6xf32>, tensor<2x4x5xf32>
}

// CHECK-LABEL: @sdpa_backward(
// CHECK: aten.sdpa_backward %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {dropout_p = 0.000000e+00 : f64, enable_gqa = true, is_causal = true} : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>)
func.func @sdpa_backward(%arg0: tensor<2x4x5x6xf32>, %arg1: tensor<2x4x5x8xf32>, %arg2: tensor<2x2x7x8xf32>, %arg3: tensor<2x2x7x6xf32>, %arg4: tensor<2x4x5x6xf32>, %arg5: tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>) {
  %0:3 = aten.sdpa_backward %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {dropout_p = 0.000000e+00 : f64, enable_gqa = true, is_causal = true} : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>
}

// CHECK-LABEL: @sdpa_backward__1(
// CHECK: aten.sdpa_backward %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {dropout_p = 0.000000e+00 : f64, enable_gqa = true} : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<1x4x5x7xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<1x4x5x7xf32>)
func.func @sdpa_backward__1(%arg0: tensor<2x4x5x6xf32>, %arg1: tensor<2x4x5x8xf32>, %arg2: tensor<2x2x7x8xf32>, %arg3: tensor<2x2x7x6xf32>, %arg4: tensor<1x4x5x7xf32>, %arg5: tensor<2x4x5x6xf32>, %arg6: tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<1x4x5x7xf32>) {
  %0:4 = aten.sdpa_backward %arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6 {dropout_p = 0.000000e+00 : f64, enable_gqa = true} : (tensor<2x4x5x6xf32>, tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<1x4x5x7xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<1x4x5x7xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>, tensor<1x4x5x7xf32>
}
