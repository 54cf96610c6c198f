// A batch dimension that is not the first one, merged with the one before it.

// RUN: spmd-opt %s --spmd-merge-optimizer-lists --spmd-assign-shard-units=ranks=3 --spmd-split-means --spmd-partition --spmd-verify-partition --spmd-dedup-collectives --spmd-bucket-collectives -o %t.mlir 2> %t.err
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%s | FileCheck %s
// CHECK: collectives: all_gather 2 (
// CHECK: collectives: all_reduce 1 (
// CHECK: collectives: reduce_scatter 1 (

#loc = loc(unknown)
module @tmajor attributes {spmd.optimizer = "torch.optim.sgd.SGD", spmd.param_groups = [{dampening = 0 : i64, differentiable = false, lr = 1.000000e-01 : f64, maximize = false, momentum = 0 : i64, nesterov = false, parameters = ["a.weight", "a.bias", "b.weight", "b.bias"], weight_decay = 0 : i64}], spmd.phases = ["forward", "backward", "optimizer"], spmd.result_tree = "{\22output\22: 0}", spmd.step = {format = 1 : i64, name = "tmajor", torch = "2.13.0"}} {
  spmd.module_tree @tree {
    spmd.module "" class "model.Lin" bases ["torch.nn.modules.module.Module"] params [] buffers [] children ["a", "b"] loc(#loc)
    spmd.module "a" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["a.weight", "a.bias"] buffers [] children [] loc(#loc)
    spmd.module "b" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["b.weight", "b.bias"] buffers [] children [] loc(#loc)
  } loc(#loc)
  func.func @step(%arg0: tensor<10x6xf32> {spmd.arg = #spmd.param<"a.weight", trainable>} loc(unknown), %arg1: tensor<10xf32> {spmd.arg = #spmd.param<"a.bias", trainable>} loc(unknown), %arg2: tensor<4x10xf32> {spmd.arg = #spmd.param<"b.weight", trainable>} loc(unknown), %arg3: tensor<4xf32> {spmd.arg = #spmd.param<"b.bias", trainable>} loc(unknown), %arg4: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 1.000000e-01 : f64>} loc(unknown), %arg5: tensor<11x3x6xf32> {spmd.arg = #spmd.batch<"x", dim = 0>} loc(unknown), %arg6: tensor<11x3x4xf32> {spmd.arg = #spmd.batch<"y", dim = 0>} loc(unknown)) -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<10x6xf32> {spmd.result = #spmd.update<#spmd.param<"a.weight", trainable>>}, tensor<10xf32> {spmd.result = #spmd.update<#spmd.param<"a.bias", trainable>>}, tensor<4x10xf32> {spmd.result = #spmd.update<#spmd.param<"b.weight", trainable>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"b.bias", trainable>>}) {
    %0 = aten.permute %arg5 {dims = array<i64: 1, 0, 2>, spmd.segment = 0 : i64} : (tensor<11x3x6xf32>) -> tensor<3x11x6xf32> loc(#loc6)
    %1 = aten.view %0 {size = array<i64: 33, 6>, spmd.segment = 0 : i64} : (tensor<3x11x6xf32>) -> tensor<33x6xf32> loc(#loc6)
    %2 = aten.permute %arg0 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<10x6xf32>) -> tensor<6x10xf32> loc(#loc9)
    %3 = aten.addmm %arg1, %1, %2 {spmd.segment = 0 : i64} : (tensor<10xf32>, tensor<33x6xf32>, tensor<6x10xf32>) -> tensor<33x10xf32> loc(#loc9)
    %4 = aten.tanh %3 {spmd.segment = 0 : i64} : (tensor<33x10xf32>) -> tensor<33x10xf32> loc(#loc10)
    %5 = aten.permute %arg2 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<4x10xf32>) -> tensor<10x4xf32> loc(#loc11)
    %6 = aten.addmm %arg3, %4, %5 {spmd.segment = 0 : i64} : (tensor<4xf32>, tensor<33x10xf32>, tensor<10x4xf32>) -> tensor<33x4xf32> loc(#loc11)
    %7 = aten.view %6 {size = array<i64: 3, 11, 4>, spmd.segment = 0 : i64} : (tensor<33x4xf32>) -> tensor<3x11x4xf32> loc(#loc6)
    %8 = aten.permute %7 {dims = array<i64: 1, 0, 2>, spmd.segment = 0 : i64} : (tensor<3x11x4xf32>) -> tensor<11x3x4xf32> loc(#loc6)
    %9 = aten.mse_loss %8, %arg6 {spmd.segment = 0 : i64} : (tensor<11x3x4xf32>, tensor<11x3x4xf32>) -> tensor<f32> loc(#loc6)
    %10 = aten.full  {fill_value = 1.000000e+00 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32> loc(#loc4)
    %11 = aten.mse_loss_backward %10, %8, %arg6 {reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<11x3x4xf32>, tensor<11x3x4xf32>) -> tensor<11x3x4xf32> loc(#loc6)
    %12 = aten.permute %11 {dims = array<i64: 1, 0, 2>, spmd.segment = 1 : i64} : (tensor<11x3x4xf32>) -> tensor<3x11x4xf32> loc(#loc6)
    %13 = aten.view %12 {size = array<i64: 33, 4>, spmd.segment = 1 : i64} : (tensor<3x11x4xf32>) -> tensor<33x4xf32> loc(#loc6)
    %14 = aten.mm %13, %arg2 {spmd.segment = 1 : i64} : (tensor<33x4xf32>, tensor<4x10xf32>) -> tensor<33x10xf32> loc(#loc11)
    %15 = aten.permute %13 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<33x4xf32>) -> tensor<4x33xf32> loc(#loc11)
    %16 = aten.mm %15, %4 {spmd.segment = 1 : i64} : (tensor<4x33xf32>, tensor<33x10xf32>) -> tensor<4x10xf32> loc(#loc11)
    %17 = aten.sum.dim_IntList %13 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<33x4xf32>) -> tensor<1x4xf32> loc(#loc11)
    %18 = aten.view %17 {size = array<i64: 4>, spmd.segment = 1 : i64} : (tensor<1x4xf32>) -> tensor<4xf32> loc(#loc11)
    %19 = aten.tanh_backward %14, %4 {spmd.segment = 1 : i64} : (tensor<33x10xf32>, tensor<33x10xf32>) -> tensor<33x10xf32> loc(#loc10)
    %20 = aten.permute %19 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<33x10xf32>) -> tensor<10x33xf32> loc(#loc9)
    %21 = aten.mm %20, %1 {spmd.segment = 1 : i64} : (tensor<10x33xf32>, tensor<33x6xf32>) -> tensor<10x6xf32> loc(#loc9)
    %22 = aten.sum.dim_IntList %19 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<33x10xf32>) -> tensor<1x10xf32> loc(#loc9)
    %23 = aten.view %22 {size = array<i64: 10>, spmd.segment = 1 : i64} : (tensor<1x10xf32>) -> tensor<10xf32> loc(#loc9)
    %self_out:4 = aten._fused_sgd %arg0, %arg1, %arg2, %arg3, %21, %23, %16, %18, %arg4 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0, 0, 0>, momentum = array<f64: 0.000000e+00>, operandSegmentSizes = array<i32: 4, 4, 0, 1>, resultSegmentSizes = array<i32: 4, 0>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.000000e+00>} : (tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<f64>) -> (tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32>) loc(#loc5)
    return %9, %self_out#0, %self_out#1, %self_out#2, %self_out#3 : tensor<f32>, tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("model.py":45:0)
#loc2 = loc("model.py":13:0)
#loc3 = loc("model.py":10:0)
#loc4 = loc("model.py":14:0)
#loc5 = loc("model.py":16:0)
#loc6 = loc(callsite(#loc1 at #loc2))
#loc7 = loc(callsite(#loc3 at #loc1))
#loc8 = loc(callsite(#loc7 at #loc2))
#loc9 = loc(fused<#spmd.src<"a">>[#loc8])
#loc10 = loc(fused<#spmd.src<"">>[#loc8])
#loc11 = loc(fused<#spmd.src<"b">>[#loc8])

