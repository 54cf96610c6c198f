// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

// The log-probabilities are never kept: forward leaves one loss and two statistics per row, backward computes them again from
// the logits, reading each logit where it writes its gradient.

// CHECK-LABEL: func.func @cross_entropy
// CHECK:         %[[LOGITS:.*]] = kernel.gemm
// CHECK-NEXT:    %[[ROWS:.*]]:{{[0-9]}} = kernel.cluster dims [128, 64] parallel 1
// CHECK:             outs(
// CHECK-NOT:         tensor<128x64xf32>
// CHECK:           kernel.reduce <max>
// CHECK:           math.exp
// CHECK:           kernel.reduce <add>
// CHECK:           kernel.index 1
// CHECK:           kernel.reduce <add>
// CHECK:           math.log
// CHECK:         spmd.all_reduce
// CHECK:         kernel.cluster dims [128, 64] parallel 1
// CHECK:             = %[[LOGITS]] at (d0, d1) -> (d0 * 64 + d1) : tensor<128x64xf32>
// CHECK:             outs(at (d0, d1) -> (d0 * 64 + d1) : tensor<128x64xf32>)
// One exponential of a logit, none of a logarithm, and no sum over the classes of what is one number.
// CHECK-NOT:       kernel.reduce
// CHECK:           math.exp
// CHECK-NOT:       math.
// CHECK-NOT:       kernel.reduce
// CHECK:         return
spmd.mesh @mesh ["data" = 2]
func.func @cross_entropy(%h: tensor<128x16xf32>, %w: tensor<16x64xf32>, %t: tensor<128xi64>, %one: tensor<f32>)
    -> (tensor<f32>, tensor<128x64xf32>) {
  %x = aten.mm %h, %w {spmd.segment = 0 : i64} : (tensor<128x16xf32>, tensor<16x64xf32>) -> tensor<128x64xf32>
  %p = aten._log_softmax %x {dim = 1 : i64, half_to_float = false, spmd.segment = 0 : i64} : (tensor<128x64xf32>) -> tensor<128x64xf32>
  %l, %n = aten.nll_loss_forward %p, %t {reduction = 2 : i64, ignore_index = -100 : i64, spmd.segment = 0 : i64} : (tensor<128x64xf32>, tensor<128xi64>) -> (tensor<f32>, tensor<f32>)
  %sl, %sn = spmd.all_reduce [sum, sum] %l, %n on @mesh ["data"] {spmd.segment = 0 : i64} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %loss = aten.div.Tensor %sl, %sn {spmd.segment = 0 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dp = aten.nll_loss_backward %one, %p, %t, %sn {reduction = 1 : i64, ignore_index = -100 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<128x64xf32>, tensor<128xi64>, tensor<f32>) -> tensor<128x64xf32>
  %dx = aten._log_softmax_backward_data %dp, %p {dim = 1 : i64, input_dtype = f32, spmd.segment = 1 : i64} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  return %loss, %dx : tensor<f32>, tensor<128x64xf32>
}
