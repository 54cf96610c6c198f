// A product of two parameters: a partial gradient passes through it, and the user hears of the
// replicated product.

// RUN: spmd-opt %s --spmd-merge-optimizer-lists --spmd-assign-shard-units=ranks=3 --spmd-split-means --spmd-partition --spmd-verify-partition --spmd-dedup-collectives --spmd-bucket-collectives -o %t.mlir 2> %t.err
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%s | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN --input-file=%t.err
// WARN: warning: {{[0-9]+}} % of the floating-point operations of matrix products and attention run on every rank alike; the largest is 'aten.mm'
// CHECK: collectives: all_gather 2 (
// CHECK: collectives: all_reduce 1 (
// CHECK: collectives: reduce_scatter 1 (

#loc = loc(unknown)
module @lowrank attributes {spmd.optimizer = "torch.optim.sgd.SGD", spmd.param_groups = [{dampening = 0 : i64, differentiable = false, lr = 1.000000e-01 : f64, maximize = false, momentum = 9.000000e-01 : f64, nesterov = false, parameters = ["a", "b"], weight_decay = 0 : i64}], spmd.phases = ["forward", "backward", "optimizer"], spmd.result_tree = "{\22output\22: 0}", spmd.step = {format = 1 : i64, name = "lowrank", torch = "2.13.0"}} {
  spmd.module_tree @tree {
    spmd.module "" class "model.Low" bases ["torch.nn.modules.module.Module"] params ["a", "b"] buffers [] children [] loc(#loc)
  } loc(#loc)
  func.func @step(%arg0: tensor<4x2xf32> {spmd.arg = #spmd.param<"a", trainable>} loc(unknown), %arg1: tensor<2x6xf32> {spmd.arg = #spmd.param<"b", trainable>} loc(unknown), %arg2: tensor<4x2xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "a", init = 0.000000e+00 : f64>} loc(unknown), %arg3: tensor<2x6xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "b", init = 0.000000e+00 : f64>} loc(unknown), %arg4: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 1.000000e-01 : f64>} loc(unknown), %arg5: tensor<11x6xf32> {spmd.arg = #spmd.batch<"x", dim = 0>} loc(unknown), %arg6: tensor<11x4xf32> {spmd.arg = #spmd.batch<"y", dim = 0>} loc(unknown)) -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<4x2xf32> {spmd.result = #spmd.update<#spmd.param<"a", trainable>>}, tensor<2x6xf32> {spmd.result = #spmd.update<#spmd.param<"b", trainable>>}, tensor<4x2xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "a", init = 0.000000e+00 : f64>>}, tensor<2x6xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "b", init = 0.000000e+00 : f64>>}) {
    %0 = aten.mm %arg0, %arg1 {spmd.segment = 0 : i64} : (tensor<4x2xf32>, tensor<2x6xf32>) -> tensor<4x6xf32> loc(#loc2)
    %1 = aten.permute %0 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<4x6xf32>) -> tensor<6x4xf32> loc(#loc2)
    %2 = aten.mm %arg5, %1 {spmd.segment = 0 : i64} : (tensor<11x6xf32>, tensor<6x4xf32>) -> tensor<11x4xf32> loc(#loc2)
    %3 = aten.mse_loss %2, %arg6 {spmd.segment = 0 : i64} : (tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<f32> loc(#loc)
    %4 = aten.full  {fill_value = 1.000000e+00 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32> loc(#loc)
    %5 = aten.mse_loss_backward %4, %2, %arg6 {reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32> loc(#loc)
    %6 = aten.permute %5 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<4x11xf32> loc(#loc2)
    %7 = aten.mm %6, %arg5 {spmd.segment = 1 : i64} : (tensor<4x11xf32>, tensor<11x6xf32>) -> tensor<4x6xf32> loc(#loc2)
    %8 = aten.permute %arg0 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<4x2xf32>) -> tensor<2x4xf32> loc(#loc2)
    %9 = aten.mm %8, %7 {spmd.segment = 1 : i64} : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32> loc(#loc2)
    %10 = aten.permute %arg1 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<2x6xf32>) -> tensor<6x2xf32> loc(#loc2)
    %11 = aten.mm %7, %10 {spmd.segment = 1 : i64} : (tensor<4x6xf32>, tensor<6x2xf32>) -> tensor<4x2xf32> loc(#loc2)
    %self_out:2, %momentum_buffer_list_out:2 = aten._fused_sgd %arg0, %arg1, %11, %9, %arg2, %arg3, %arg4 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0>, momentum = array<f64: 9.000000e-01>, operandSegmentSizes = array<i32: 2, 2, 2, 1>, resultSegmentSizes = array<i32: 2, 2>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.000000e+00>} : (tensor<4x2xf32>, tensor<2x6xf32>, tensor<4x2xf32>, tensor<2x6xf32>, tensor<4x2xf32>, tensor<2x6xf32>, tensor<f64>) -> (tensor<4x2xf32>, tensor<2x6xf32>, tensor<4x2xf32>, tensor<2x6xf32>) loc(#loc)
    return %3, %self_out#0, %self_out#1, %momentum_buffer_list_out#0, %momentum_buffer_list_out#1 : tensor<f32>, tensor<4x2xf32>, tensor<2x6xf32>, tensor<4x2xf32>, tensor<2x6xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("model.py":18:0)
#loc2 = loc(fused<#spmd.src<"">>[#loc1])

