// A parameter that no gradient reaches has no optimizer state and a unit of its own, never gathered.

// RUN: spmd-opt %s --spmd-merge-optimizer-lists --spmd-assign-shard-units=ranks=3 --spmd-split-means --spmd-partition --spmd-verify-partition --spmd-dedup-collectives --spmd-bucket-collectives -o %t.mlir 2> %t.err
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%s | FileCheck %s
// CHECK: collectives: all_gather 1 (
// CHECK: collectives: all_reduce 1 (
// CHECK: collectives: reduce_scatter 1 (

#loc = loc(unknown)
module @unused_param attributes {spmd.optimizer = "torch.optim.adam.Adam", spmd.param_groups = [{amsgrad = false, betas = [9.000000e-01, 0.99899999999999999], capturable = false, decoupled_weight_decay = false, differentiable = false, eps = 1.000000e-08 : f64, lr = 1.000000e-01 : f64, maximize = false, parameters = ["g", "un", "a.weight", "a.bias"], weight_decay = 0 : i64}], spmd.phases = ["forward", "backward", "optimizer"], spmd.result_tree = "{\22output\22: 0}", spmd.step = {format = 1 : i64, name = "unused_param", torch = "2.13.0"}} {
  spmd.module_tree @tree {
    spmd.module "" class "model.Gate" bases ["torch.nn.modules.module.Module"] params ["g", "un"] buffers [] children ["a"] loc(#loc)
    spmd.module "a" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["a.weight", "a.bias"] buffers [] children [] loc(#loc)
  } loc(#loc)
  func.func @step(%arg0: tensor<4xf32> {spmd.arg = #spmd.param<"g", trainable>} loc(unknown), %arg1: tensor<3xf32> {spmd.arg = #spmd.param<"un", trainable>} loc(unknown), %arg2: tensor<4x6xf32> {spmd.arg = #spmd.param<"a.weight", trainable>} loc(unknown), %arg3: tensor<4xf32> {spmd.arg = #spmd.param<"a.bias", trainable>} loc(unknown), %arg4: tensor<f32> {spmd.arg = #spmd.state<"step", of = "g", init = 0.000000e+00 : f64>} loc(unknown), %arg5: tensor<4xf32> {spmd.arg = #spmd.state<"exp_avg", of = "g", init = 0.000000e+00 : f64>} loc(unknown), %arg6: tensor<4xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "g", init = 0.000000e+00 : f64>} loc(unknown), %arg7: tensor<f32> {spmd.arg = #spmd.state<"step", of = "a.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg8: tensor<4x6xf32> {spmd.arg = #spmd.state<"exp_avg", of = "a.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg9: tensor<4x6xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "a.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg10: tensor<f32> {spmd.arg = #spmd.state<"step", of = "a.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg11: tensor<4xf32> {spmd.arg = #spmd.state<"exp_avg", of = "a.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg12: tensor<4xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "a.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg13: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 1.000000e-01 : f64>} loc(unknown), %arg14: tensor<11x6xf32> {spmd.arg = #spmd.batch<"x", dim = 0>} loc(unknown), %arg15: tensor<11x4xf32> {spmd.arg = #spmd.batch<"y", dim = 0>} loc(unknown)) -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"g", trainable>>}, tensor<4x6xf32> {spmd.result = #spmd.update<#spmd.param<"a.weight", trainable>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"a.bias", trainable>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "g", init = 0.000000e+00 : f64>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "g", init = 0.000000e+00 : f64>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "g", init = 0.000000e+00 : f64>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "a.weight", init = 0.000000e+00 : f64>>}, tensor<4x6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "a.weight", init = 0.000000e+00 : f64>>}, tensor<4x6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "a.weight", init = 0.000000e+00 : f64>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "a.bias", init = 0.000000e+00 : f64>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "a.bias", init = 0.000000e+00 : f64>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "a.bias", init = 0.000000e+00 : f64>>}) {
    %0 = aten.permute %arg2 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<4x6xf32>) -> tensor<6x4xf32> loc(#loc2)
    %1 = aten.addmm %arg3, %arg14, %0 {spmd.segment = 0 : i64} : (tensor<4xf32>, tensor<11x6xf32>, tensor<6x4xf32>) -> tensor<11x4xf32> loc(#loc2)
    %2 = aten.sigmoid %arg0 {spmd.segment = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    %3 = aten.mul.Tensor %1, %2 {spmd.segment = 0 : i64} : (tensor<11x4xf32>, tensor<4xf32>) -> tensor<11x4xf32> loc(#loc3)
    %4 = aten.exp %arg0 {spmd.segment = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    %5 = aten.sum.dim_IntList %4 {dim = array<i64: 0>, spmd.segment = 0 : i64} : (tensor<4xf32>) -> tensor<f32> loc(#loc3)
    %6 = aten.mul.Tensor %3, %5 {spmd.segment = 0 : i64} : (tensor<11x4xf32>, tensor<f32>) -> tensor<11x4xf32> loc(#loc3)
    %7 = aten.mse_loss %6, %arg15 {spmd.segment = 0 : i64} : (tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<f32> loc(#loc)
    %8 = aten.full  {fill_value = 1.000000e+00 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32> loc(#loc)
    %9 = aten.mse_loss_backward %8, %6, %arg15 {reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32> loc(#loc)
    %10 = aten.mul.Tensor %9, %3 {spmd.segment = 1 : i64} : (tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32> loc(#loc3)
    %11 = aten.mul.Tensor %9, %5 {spmd.segment = 1 : i64} : (tensor<11x4xf32>, tensor<f32>) -> tensor<11x4xf32> loc(#loc3)
    %12 = aten.sum.dim_IntList %10 {dim = array<i64: 0, 1>, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<f32> loc(#loc3)
    %13 = aten.expand %12 {size = array<i64: 4>, spmd.segment = 1 : i64} : (tensor<f32>) -> tensor<4xf32> loc(#loc3)
    %14 = aten.mul.Tensor %13, %4 {spmd.segment = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    %15 = aten.mul.Tensor %11, %1 {spmd.segment = 1 : i64} : (tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32> loc(#loc3)
    %16 = aten.mul.Tensor %11, %2 {spmd.segment = 1 : i64} : (tensor<11x4xf32>, tensor<4xf32>) -> tensor<11x4xf32> loc(#loc3)
    %17 = aten.sum.dim_IntList %15 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<1x4xf32> loc(#loc3)
    %18 = aten.view %17 {size = array<i64: 4>, spmd.segment = 1 : i64} : (tensor<1x4xf32>) -> tensor<4xf32> loc(#loc3)
    %19 = aten.sigmoid_backward %18, %2 {spmd.segment = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    %20 = aten.add.Tensor %14, %19 {spmd.segment = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    %21 = aten.permute %16 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<4x11xf32> loc(#loc2)
    %22 = aten.mm %21, %arg14 {spmd.segment = 1 : i64} : (tensor<4x11xf32>, tensor<11x6xf32>) -> tensor<4x6xf32> loc(#loc2)
    %23 = aten.sum.dim_IntList %16 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<1x4xf32> loc(#loc2)
    %24 = aten.view %23 {size = array<i64: 4>, spmd.segment = 1 : i64} : (tensor<1x4xf32>) -> tensor<4xf32> loc(#loc2)
    %25:3 = aten._foreach_add.Scalar %arg4, %arg7, %arg10 {scalar = 1 : i64, spmd.segment = 2 : i64} : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) loc(#loc)
    %self_out:3, %exp_avgs_out:3, %exp_avg_sqs_out:3 = aten._fused_adam %arg0, %arg2, %arg3, %20, %22, %24, %arg5, %arg8, %arg11, %arg6, %arg9, %arg12, %25#0, %25#1, %25#2, %arg13 {beta1 = array<f64: 9.000000e-01>, beta2 = array<f64: 0.99899999999999999>, eps = array<f64: 1.000000e-08>, groups = array<i64: 0, 0, 0>, operandSegmentSizes = array<i32: 3, 3, 3, 3, 0, 3, 1>, resultSegmentSizes = array<i32: 3, 3, 3, 0>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.000000e+00>} : (tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f64>) -> (tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>) loc(#loc)
    return %7, %self_out#0, %self_out#1, %self_out#2, %25#0, %exp_avgs_out#0, %exp_avg_sqs_out#0, %25#1, %exp_avgs_out#1, %exp_avg_sqs_out#1, %25#2, %exp_avgs_out#2, %exp_avg_sqs_out#2 : tensor<f32>, tensor<4xf32>, tensor<4x6xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("model.py":22:0)
#loc2 = loc(fused<#spmd.src<"a">>[#loc1])
#loc3 = loc(fused<#spmd.src<"">>[#loc1])

