// RUN: spmd-translate --import-step %inputs/mlp-sgd.step --no-locations | FileCheck %s
// The whole import of a two-layer network trained with fused SGD: detach, t and
// the in-place update are gone, t(t(w)) in the backward is w, and what the step
// writes are results.

// CHECK: module @"mlp-sgd" attributes {spmd.optimizer = "torch.optim.sgd.SGD", spmd.param_groups = [{dampening = 0 : i64, differentiable = false, lr = 1.000000e-01 : f64, maximize = false, momentum = 9.000000e-01 : f64, nesterov = false, parameters = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"], weight_decay = 0 : i64}], spmd.phases = ["forward", "backward", "optimizer"], spmd.result_tree = "{\22output\22: 0}", spmd.step = {format = 1 : i64, name = "mlp-sgd", torch = "2.13.0"}} {
// CHECK: spmd.module_tree @tree {
// CHECK-NEXT: spmd.module "" class "mlp.MLP" bases ["torch.nn.modules.module.Module"] params [] buffers [] children ["fc1", "fc2"]
// CHECK-NEXT: spmd.module "fc1" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["fc1.weight", "fc1.bias"] buffers [] children []
// CHECK-NEXT: spmd.module "fc2" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["fc2.weight", "fc2.bias"] buffers [] children []
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[A0:[^:]+]]: tensor<20x12xf32> {spmd.arg = #spmd.param<"fc1.weight", trainable>}
// CHECK-SAME: %[[A1:[^:]+]]: tensor<20xf32> {spmd.arg = #spmd.param<"fc1.bias", trainable>}
// CHECK-SAME: %[[A2:[^:]+]]: tensor<6x20xf32> {spmd.arg = #spmd.param<"fc2.weight", trainable>}
// CHECK-SAME: %[[A3:[^:]+]]: tensor<6xf32> {spmd.arg = #spmd.param<"fc2.bias", trainable>}
// CHECK-SAME: %[[A4:[^:]+]]: tensor<20x12xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "fc1.weight", init = 0.000000e+00 : f64>}
// CHECK-SAME: %[[A5:[^:]+]]: tensor<20xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "fc1.bias", init = 0.000000e+00 : f64>}
// CHECK-SAME: %[[A6:[^:]+]]: tensor<6x20xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "fc2.weight", init = 0.000000e+00 : f64>}
// CHECK-SAME: %[[A7:[^:]+]]: tensor<6xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "fc2.bias", init = 0.000000e+00 : f64>}
// CHECK-SAME: %[[A8:[^:]+]]: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 1.000000e-01 : f64>}
// CHECK-SAME: %[[A9:[^:]+]]: tensor<8x12xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}
// CHECK-SAME: %[[A10:[^:]+]]: tensor<8xi64> {spmd.arg = #spmd.batch<"y", dim = 0>}
// CHECK-SAME: tensor<f32> {spmd.result = #spmd.loss<"">}
// CHECK-SAME: tensor<20x12xf32> {spmd.result = #spmd.update<#spmd.param<"fc1.weight", trainable>>}
// CHECK-SAME: tensor<20xf32> {spmd.result = #spmd.update<#spmd.param<"fc1.bias", trainable>>}
// CHECK-SAME: tensor<6x20xf32> {spmd.result = #spmd.update<#spmd.param<"fc2.weight", trainable>>}
// CHECK-SAME: tensor<6xf32> {spmd.result = #spmd.update<#spmd.param<"fc2.bias", trainable>>}
// CHECK-SAME: tensor<20x12xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "fc1.weight", init = 0.000000e+00 : f64>>}
// CHECK-SAME: tensor<20xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "fc1.bias", init = 0.000000e+00 : f64>>}
// CHECK-SAME: tensor<6x20xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "fc2.weight", init = 0.000000e+00 : f64>>}
// CHECK-SAME: tensor<6xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "fc2.bias", init = 0.000000e+00 : f64>>}
// CHECK-NEXT: %[[V0:.+]] = aten.permute %[[A0]] {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<20x12xf32>) -> tensor<12x20xf32>
// CHECK-NEXT: %[[V1:.+]] = aten.addmm %[[A1]], %[[A9]], %[[V0]] {spmd.segment = 0 : i64} : (tensor<20xf32>, tensor<8x12xf32>, tensor<12x20xf32>) -> tensor<8x20xf32>
// CHECK-NEXT: %[[V2:.+]] = aten.relu %[[V1]] {spmd.segment = 0 : i64} : (tensor<8x20xf32>) -> tensor<8x20xf32>
// CHECK-NEXT: %[[V3:.+]] = aten.permute %[[A2]] {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<6x20xf32>) -> tensor<20x6xf32>
// CHECK-NEXT: %[[V4:.+]] = aten.addmm %[[A3]], %[[V2]], %[[V3]] {spmd.segment = 0 : i64} : (tensor<6xf32>, tensor<8x20xf32>, tensor<20x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: %[[V5:.+]] = aten._log_softmax %[[V4]] {dim = 1 : i64, spmd.segment = 0 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: %[[Y:.+]] = aten.check_index %[[A10]] {high = 6 : i64, ignore_index = -100 : i64, low = 0 : i64, spmd.segment = 0 : i64, use = "nll_loss"} : (tensor<8xi64>) -> tensor<8xi64>
// CHECK-NEXT: %[[OUTPUT:.+]], %[[TOTAL_WEIGHT:.+]] = aten.nll_loss_forward %[[V5]], %[[Y]] {ignore_index = -100 : i64, reduction = 1 : i64, spmd.segment = 0 : i64} : (tensor<8x6xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
// CHECK-NEXT: %[[V6:.+]] = aten.full  {fill_value = 1.000000e+00 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32>
// CHECK-NEXT: %[[V7:.+]] = aten.nll_loss_backward %[[V6]], %[[V5]], %[[Y]], %[[TOTAL_WEIGHT]] {ignore_index = -100 : i64, reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<8x6xf32>, tensor<8xi64>, tensor<f32>) -> tensor<8x6xf32>
// CHECK-NEXT: %[[V8:.+]] = aten._log_softmax_backward_data %[[V7]], %[[V5]] {dim = 1 : i64, input_dtype = f32, spmd.segment = 1 : i64} : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: %[[V9:.+]] = aten.mm %[[V8]], %[[A2]] {spmd.segment = 1 : i64} : (tensor<8x6xf32>, tensor<6x20xf32>) -> tensor<8x20xf32>
// CHECK-NEXT: %[[V10:.+]] = aten.permute %[[V8]] {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x6xf32>) -> tensor<6x8xf32>
// CHECK-NEXT: %[[V11:.+]] = aten.mm %[[V10]], %[[V2]] {spmd.segment = 1 : i64} : (tensor<6x8xf32>, tensor<8x20xf32>) -> tensor<6x20xf32>
// CHECK-NEXT: %[[V12:.+]] = aten.sum.dim_IntList %[[V8]] {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<8x6xf32>) -> tensor<1x6xf32>
// CHECK-NEXT: %[[V13:.+]] = aten.view %[[V12]] {size = array<i64: 6>, spmd.segment = 1 : i64} : (tensor<1x6xf32>) -> tensor<6xf32>
// CHECK-NEXT: %[[V14:.+]] = aten.threshold_backward %[[V9]], %[[V2]] {spmd.segment = 1 : i64, threshold = 0 : i64} : (tensor<8x20xf32>, tensor<8x20xf32>) -> tensor<8x20xf32>
// CHECK-NEXT: %[[V15:.+]] = aten.permute %[[V14]] {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x20xf32>) -> tensor<20x8xf32>
// CHECK-NEXT: %[[V16:.+]] = aten.mm %[[V15]], %[[A9]] {spmd.segment = 1 : i64} : (tensor<20x8xf32>, tensor<8x12xf32>) -> tensor<20x12xf32>
// CHECK-NEXT: %[[V17:.+]] = aten.sum.dim_IntList %[[V14]] {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<8x20xf32>) -> tensor<1x20xf32>
// CHECK-NEXT: %[[V18:.+]] = aten.view %[[V17]] {size = array<i64: 20>, spmd.segment = 1 : i64} : (tensor<1x20xf32>) -> tensor<20xf32>
// CHECK-NEXT: %[[SELF_OUT:.+]]:4, %[[MOMENTUM_BUFFER_LIST_OUT:.+]]:4 = aten._fused_sgd %[[A0]], %[[A1]], %[[A2]], %[[A3]], %[[V16]], %[[V18]], %[[V11]], %[[V13]], %[[A4]], %[[A5]], %[[A6]], %[[A7]], %[[A8]] {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0, 0, 0>, momentum = array<f64: 9.000000e-01>, operandSegmentSizes = array<i32: 4, 4, 4, 1>, resultSegmentSizes = array<i32: 4, 4>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.000000e+00>} : (tensor<20x12xf32>, tensor<20xf32>, tensor<6x20xf32>, tensor<6xf32>, tensor<20x12xf32>, tensor<20xf32>, tensor<6x20xf32>, tensor<6xf32>, tensor<20x12xf32>, tensor<20xf32>, tensor<6x20xf32>, tensor<6xf32>, tensor<f64>) -> (tensor<20x12xf32>, tensor<20xf32>, tensor<6x20xf32>, tensor<6xf32>, tensor<20x12xf32>, tensor<20xf32>, tensor<6x20xf32>, tensor<6xf32>)
// CHECK-NEXT: return %[[OUTPUT]], %[[SELF_OUT]]#0, %[[SELF_OUT]]#1, %[[SELF_OUT]]#2, %[[SELF_OUT]]#3, %[[MOMENTUM_BUFFER_LIST_OUT]]#0, %[[MOMENTUM_BUFFER_LIST_OUT]]#1, %[[MOMENTUM_BUFFER_LIST_OUT]]#2, %[[MOMENTUM_BUFFER_LIST_OUT]]#3 : tensor<f32>, tensor<20x12xf32>, tensor<20xf32>, tensor<6x20xf32>, tensor<6xf32>, tensor<20x12xf32>, tensor<20xf32>, tensor<6x20xf32>, tensor<6xf32>
