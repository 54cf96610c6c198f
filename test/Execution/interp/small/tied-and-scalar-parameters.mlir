// A weight that two layers share has one gradient; a parameter may have no dimensions.

// RUN: spmd-opt %s --spmd-merge-optimizer-lists --spmd-assign-shard-units=ranks=3 --spmd-split-means --spmd-partition --spmd-verify-partition --spmd-dedup-collectives --spmd-bucket-collectives -o %t.mlir 2> %t.err
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%s | FileCheck %s
// CHECK: collectives: all_gather 2 (
// CHECK: collectives: all_reduce 1 (
// CHECK: collectives: reduce_scatter 1 (

#loc = loc(unknown)
module @tied_scalar attributes {spmd.optimizer = "torch.optim.adam.Adam", spmd.param_groups = [{amsgrad = false, betas = [9.000000e-01, 0.99899999999999999], capturable = false, decoupled_weight_decay = false, differentiable = false, eps = 1.000000e-08 : f64, lr = 1.000000e-02 : f64, maximize = false, parameters = ["s", "a.weight", "a.bias", "b.bias"], weight_decay = 0 : i64}], spmd.phases = ["forward", "backward", "optimizer"], spmd.result_tree = "{\22output\22: 0}", spmd.step = {format = 1 : i64, name = "tied_scalar", torch = "2.13.0"}, spmd.tied = {a.weight = ["b.weight"]}} {
  spmd.module_tree @tree {
    spmd.module "" class "model.Tied" bases ["torch.nn.modules.module.Module"] params ["s"] buffers [] children ["a", "b"] loc(#loc)
    spmd.module "a" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["a.weight", "a.bias"] buffers [] children [] loc(#loc)
    spmd.module "b" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["b.weight", "b.bias"] buffers [] children [] loc(#loc)
  } loc(#loc)
  func.func @step(%arg0: tensor<f32> {spmd.arg = #spmd.param<"s", trainable>} loc(unknown), %arg1: tensor<6x6xf32> {spmd.arg = #spmd.param<"a.weight", trainable>} loc(unknown), %arg2: tensor<6xf32> {spmd.arg = #spmd.param<"a.bias", trainable>} loc(unknown), %arg3: tensor<6xf32> {spmd.arg = #spmd.param<"b.bias", trainable>} loc(unknown), %arg4: tensor<f32> {spmd.arg = #spmd.state<"step", of = "s", init = 0.000000e+00 : f64>} loc(unknown), %arg5: tensor<f32> {spmd.arg = #spmd.state<"exp_avg", of = "s", init = 0.000000e+00 : f64>} loc(unknown), %arg6: tensor<f32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "s", init = 0.000000e+00 : f64>} loc(unknown), %arg7: tensor<f32> {spmd.arg = #spmd.state<"step", of = "a.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg8: tensor<6x6xf32> {spmd.arg = #spmd.state<"exp_avg", of = "a.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg9: tensor<6x6xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "a.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg10: tensor<f32> {spmd.arg = #spmd.state<"step", of = "a.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg11: tensor<6xf32> {spmd.arg = #spmd.state<"exp_avg", of = "a.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg12: tensor<6xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "a.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg13: tensor<f32> {spmd.arg = #spmd.state<"step", of = "b.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg14: tensor<6xf32> {spmd.arg = #spmd.state<"exp_avg", of = "b.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg15: tensor<6xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "b.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg16: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 1.000000e-02 : f64>} loc(unknown), %arg17: tensor<11x6xf32> {spmd.arg = #spmd.batch<"x", dim = 0>} loc(unknown), %arg18: tensor<11x6xf32> {spmd.arg = #spmd.batch<"y", dim = 0>} loc(unknown)) -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<f32> {spmd.result = #spmd.update<#spmd.param<"s", trainable>>}, tensor<6x6xf32> {spmd.result = #spmd.update<#spmd.param<"a.weight", trainable>>}, tensor<6xf32> {spmd.result = #spmd.update<#spmd.param<"a.bias", trainable>>}, tensor<6xf32> {spmd.result = #spmd.update<#spmd.param<"b.bias", trainable>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "s", init = 0.000000e+00 : f64>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "s", init = 0.000000e+00 : f64>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "s", init = 0.000000e+00 : f64>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "a.weight", init = 0.000000e+00 : f64>>}, tensor<6x6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "a.weight", init = 0.000000e+00 : f64>>}, tensor<6x6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "a.weight", init = 0.000000e+00 : f64>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "a.bias", init = 0.000000e+00 : f64>>}, tensor<6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "a.bias", init = 0.000000e+00 : f64>>}, tensor<6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "a.bias", init = 0.000000e+00 : f64>>}, tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "b.bias", init = 0.000000e+00 : f64>>}, tensor<6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "b.bias", init = 0.000000e+00 : f64>>}, tensor<6xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "b.bias", init = 0.000000e+00 : f64>>}) {
    %0 = aten.permute %arg1 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<6x6xf32>) -> tensor<6x6xf32> loc(#loc9)
    %1 = aten.addmm %arg2, %arg17, %0 {spmd.segment = 0 : i64} : (tensor<6xf32>, tensor<11x6xf32>, tensor<6x6xf32>) -> tensor<11x6xf32> loc(#loc9)
    %2 = aten.tanh %1 {spmd.segment = 0 : i64} : (tensor<11x6xf32>) -> tensor<11x6xf32> loc(#loc10)
    %3 = aten.permute %arg1 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<6x6xf32>) -> tensor<6x6xf32> loc(#loc11)
    %4 = aten.addmm %arg3, %2, %3 {spmd.segment = 0 : i64} : (tensor<6xf32>, tensor<11x6xf32>, tensor<6x6xf32>) -> tensor<11x6xf32> loc(#loc11)
    %5 = aten.mul.Tensor %4, %arg0 {spmd.segment = 0 : i64} : (tensor<11x6xf32>, tensor<f32>) -> tensor<11x6xf32> loc(#loc10)
    %6 = aten.mse_loss %5, %arg18 {spmd.segment = 0 : i64} : (tensor<11x6xf32>, tensor<11x6xf32>) -> tensor<f32> loc(#loc7)
    %7 = aten.full  {fill_value = 1.000000e+00 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32> loc(#loc4)
    %8 = aten.mse_loss_backward %7, %5, %arg18 {reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<11x6xf32>, tensor<11x6xf32>) -> tensor<11x6xf32> loc(#loc7)
    %9 = aten.mul.Tensor %8, %4 {spmd.segment = 1 : i64} : (tensor<11x6xf32>, tensor<11x6xf32>) -> tensor<11x6xf32> loc(#loc10)
    %10 = aten.mul.Tensor %8, %arg0 {spmd.segment = 1 : i64} : (tensor<11x6xf32>, tensor<f32>) -> tensor<11x6xf32> loc(#loc10)
    %11 = aten.sum.dim_IntList %9 {dim = array<i64: 0, 1>, spmd.segment = 1 : i64} : (tensor<11x6xf32>) -> tensor<f32> loc(#loc10)
    %12 = aten.mm %10, %arg1 {spmd.segment = 1 : i64} : (tensor<11x6xf32>, tensor<6x6xf32>) -> tensor<11x6xf32> loc(#loc11)
    %13 = aten.permute %10 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x6xf32>) -> tensor<6x11xf32> loc(#loc11)
    %14 = aten.mm %13, %2 {spmd.segment = 1 : i64} : (tensor<6x11xf32>, tensor<11x6xf32>) -> tensor<6x6xf32> loc(#loc11)
    %15 = aten.sum.dim_IntList %10 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<11x6xf32>) -> tensor<1x6xf32> loc(#loc11)
    %16 = aten.view %15 {size = array<i64: 6>, spmd.segment = 1 : i64} : (tensor<1x6xf32>) -> tensor<6xf32> loc(#loc11)
    %17 = aten.tanh_backward %12, %2 {spmd.segment = 1 : i64} : (tensor<11x6xf32>, tensor<11x6xf32>) -> tensor<11x6xf32> loc(#loc10)
    %18 = aten.permute %17 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x6xf32>) -> tensor<6x11xf32> loc(#loc9)
    %19 = aten.mm %18, %arg17 {spmd.segment = 1 : i64} : (tensor<6x11xf32>, tensor<11x6xf32>) -> tensor<6x6xf32> loc(#loc9)
    %20 = aten.sum.dim_IntList %17 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<11x6xf32>) -> tensor<1x6xf32> loc(#loc9)
    %21 = aten.view %20 {size = array<i64: 6>, spmd.segment = 1 : i64} : (tensor<1x6xf32>) -> tensor<6xf32> loc(#loc9)
    %22 = aten.add.Tensor %14, %19 {spmd.segment = 1 : i64} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32> loc(#loc9)
    %23:4 = aten._foreach_add.Scalar %arg4, %arg7, %arg10, %arg13 {scalar = 1 : i64, spmd.segment = 2 : i64} : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) loc(#loc5)
    %self_out:4, %exp_avgs_out:4, %exp_avg_sqs_out:4 = aten._fused_adam %arg0, %arg1, %arg2, %arg3, %11, %22, %21, %16, %arg5, %arg8, %arg11, %arg14, %arg6, %arg9, %arg12, %arg15, %23#0, %23#1, %23#2, %23#3, %arg16 {beta1 = array<f64: 9.000000e-01>, beta2 = array<f64: 0.99899999999999999>, eps = array<f64: 1.000000e-08>, groups = array<i64: 0, 0, 0, 0>, operandSegmentSizes = array<i32: 4, 4, 4, 4, 0, 4, 1>, resultSegmentSizes = array<i32: 4, 4, 4, 0>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.000000e+00>} : (tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f64>) -> (tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>) loc(#loc5)
    return %6, %self_out#0, %self_out#1, %self_out#2, %self_out#3, %23#0, %exp_avgs_out#0, %exp_avg_sqs_out#0, %23#1, %exp_avgs_out#1, %exp_avg_sqs_out#1, %23#2, %exp_avgs_out#2, %exp_avg_sqs_out#2, %23#3, %exp_avgs_out#3, %exp_avg_sqs_out#3 : tensor<f32>, tensor<f32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<f32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6xf32>, tensor<6xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("model.py":37:0)
#loc2 = loc("model.py":23:0)
#loc3 = loc("model.py":13:0)
#loc4 = loc("model.py":14:0)
#loc5 = loc("model.py":16:0)
#loc6 = loc(callsite(#loc1 at #loc2))
#loc7 = loc(callsite(#loc2 at #loc3))
#loc8 = loc(callsite(#loc6 at #loc3))
#loc9 = loc(fused<#spmd.src<"a">>[#loc8])
#loc10 = loc(fused<#spmd.src<"">>[#loc8])
#loc11 = loc(fused<#spmd.src<"b">>[#loc8])

