// A frozen parameter is gathered and never reduced: it has a unit of its own.

// RUN: spmd-opt %s --spmd-merge-optimizer-lists --spmd-assign-shard-units=ranks=3 --spmd-split-means --spmd-partition --spmd-verify-partition --spmd-dedup-collectives --spmd-bucket-collectives -o %t.mlir 2> %t.err
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%s | FileCheck %s
// CHECK: collectives: all_gather 3 (
// CHECK: collectives: all_reduce 1 (
// CHECK: collectives: reduce_scatter 1 (

#loc = loc(unknown)
module @frozen attributes {spmd.optimizer = "torch.optim.sgd.SGD", spmd.param_groups = [{dampening = 0 : i64, differentiable = false, lr = 1.000000e-01 : f64, maximize = false, momentum = 9.000000e-01 : f64, nesterov = false, parameters = ["a.weight", "b.weight", "b.bias"], weight_decay = 0 : i64}], spmd.phases = ["forward", "backward", "optimizer"], spmd.result_tree = "{\22output\22: 0}", spmd.step = {format = 1 : i64, name = "frozen", torch = "2.13.0"}} {
  spmd.module_tree @tree {
    spmd.module "" class "model.Lin" bases ["torch.nn.modules.module.Module"] params [] buffers [] children ["a", "b"] loc(#loc)
    spmd.module "a" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["a.weight", "a.bias"] buffers [] children [] loc(#loc)
    spmd.module "b" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["b.weight", "b.bias"] buffers [] children [] loc(#loc)
  } loc(#loc)
  func.func @step(%arg0: tensor<10x6xf32> {spmd.arg = #spmd.param<"a.weight", trainable>} loc(unknown), %arg1: tensor<10xf32> {spmd.arg = #spmd.param<"a.bias">} loc(unknown), %arg2: tensor<4x10xf32> {spmd.arg = #spmd.param<"b.weight", trainable>} loc(unknown), %arg3: tensor<4xf32> {spmd.arg = #spmd.param<"b.bias", trainable>} loc(unknown), %arg4: tensor<10x6xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "a.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg5: tensor<4x10xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "b.weight", init = 0.000000e+00 : f64>} loc(unknown), %arg6: tensor<4xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "b.bias", init = 0.000000e+00 : f64>} loc(unknown), %arg7: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 1.000000e-01 : f64>} loc(unknown), %arg8: tensor<11x6xf32> {spmd.arg = #spmd.batch<"x", dim = 0>} loc(unknown), %arg9: tensor<11x4xf32> {spmd.arg = #spmd.batch<"y", dim = 0>} loc(unknown)) -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<10x6xf32> {spmd.result = #spmd.update<#spmd.param<"a.weight", trainable>>}, tensor<4x10xf32> {spmd.result = #spmd.update<#spmd.param<"b.weight", trainable>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"b.bias", trainable>>}, tensor<10x6xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "a.weight", init = 0.000000e+00 : f64>>}, tensor<4x10xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "b.weight", init = 0.000000e+00 : f64>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "b.bias", init = 0.000000e+00 : f64>>}) {
    %0 = aten.permute %arg0 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<10x6xf32>) -> tensor<6x10xf32> loc(#loc9)
    %1 = aten.addmm %arg1, %arg8, %0 {spmd.segment = 0 : i64} : (tensor<10xf32>, tensor<11x6xf32>, tensor<6x10xf32>) -> tensor<11x10xf32> loc(#loc9)
    %2 = aten.tanh %1 {spmd.segment = 0 : i64} : (tensor<11x10xf32>) -> tensor<11x10xf32> loc(#loc10)
    %3 = aten.permute %arg2 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<4x10xf32>) -> tensor<10x4xf32> loc(#loc11)
    %4 = aten.addmm %arg3, %2, %3 {spmd.segment = 0 : i64} : (tensor<4xf32>, tensor<11x10xf32>, tensor<10x4xf32>) -> tensor<11x4xf32> loc(#loc11)
    %5 = aten.mse_loss %4, %arg9 {spmd.segment = 0 : i64} : (tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<f32> loc(#loc7)
    %6 = aten.full  {fill_value = 1.000000e+00 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32> loc(#loc4)
    %7 = aten.mse_loss_backward %6, %4, %arg9 {reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32> loc(#loc7)
    %8 = aten.mm %7, %arg2 {spmd.segment = 1 : i64} : (tensor<11x4xf32>, tensor<4x10xf32>) -> tensor<11x10xf32> loc(#loc11)
    %9 = aten.permute %7 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<4x11xf32> loc(#loc11)
    %10 = aten.mm %9, %2 {spmd.segment = 1 : i64} : (tensor<4x11xf32>, tensor<11x10xf32>) -> tensor<4x10xf32> loc(#loc11)
    %11 = aten.sum.dim_IntList %7 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<1x4xf32> loc(#loc11)
    %12 = aten.view %11 {size = array<i64: 4>, spmd.segment = 1 : i64} : (tensor<1x4xf32>) -> tensor<4xf32> loc(#loc11)
    %13 = aten.tanh_backward %8, %2 {spmd.segment = 1 : i64} : (tensor<11x10xf32>, tensor<11x10xf32>) -> tensor<11x10xf32> loc(#loc10)
    %14 = aten.permute %13 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x10xf32>) -> tensor<10x11xf32> loc(#loc9)
    %15 = aten.mm %14, %arg8 {spmd.segment = 1 : i64} : (tensor<10x11xf32>, tensor<11x6xf32>) -> tensor<10x6xf32> loc(#loc9)
    %self_out:3, %momentum_buffer_list_out:3 = aten._fused_sgd %arg0, %arg2, %arg3, %15, %10, %12, %arg4, %arg5, %arg6, %arg7 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0, 0>, momentum = array<f64: 9.000000e-01>, operandSegmentSizes = array<i32: 3, 3, 3, 1>, resultSegmentSizes = array<i32: 3, 3>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.000000e+00>} : (tensor<10x6xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<10x6xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<10x6xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<f64>) -> (tensor<10x6xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<10x6xf32>, tensor<4x10xf32>, tensor<4xf32>) loc(#loc5)
    return %5, %self_out#0, %self_out#1, %self_out#2, %momentum_buffer_list_out#0, %momentum_buffer_list_out#1, %momentum_buffer_list_out#2 : tensor<f32>, tensor<10x6xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<10x6xf32>, tensor<4x10xf32>, tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("model.py":10:0)
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

