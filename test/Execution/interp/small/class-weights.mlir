// The loss is divided by the sum of the weights of all ranks' targets.

// RUN: spmd-opt %s --spmd-merge-optimizer-lists --spmd-assign-shard-units=ranks=3 --spmd-split-means --spmd-partition --spmd-verify-partition --spmd-dedup-collectives --spmd-bucket-collectives -o %t.mlir 2> %t.err
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%s | FileCheck %s
// CHECK: collectives: all_gather 2 (
// CHECK: collectives: all_reduce 1 (
// CHECK: collectives: reduce_scatter 1 (

#loc = loc(unknown)
module @class_weight attributes {spmd.optimizer = "torch.optim.sgd.SGD", spmd.param_groups = [{dampening = 0 : i64, differentiable = false, lr = 1.000000e-01 : f64, maximize = false, momentum = 0 : i64, nesterov = false, parameters = ["a.weight", "a.bias", "b.weight", "b.bias"], weight_decay = 0 : i64}], spmd.phases = ["forward", "backward", "optimizer"], spmd.result_tree = "{\22output\22: 0}", spmd.step = {format = 1 : i64, name = "class_weight", torch = "2.13.0"}} {
  spmd.module_tree @tree {
    spmd.module "" class "model.Lin" bases ["torch.nn.modules.module.Module"] params [] buffers [] children ["a", "b"] loc(#loc)
    spmd.module "a" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["a.weight", "a.bias"] buffers [] children [] loc(#loc)
    spmd.module "b" class "torch.nn.modules.linear.Linear" bases ["torch.nn.modules.module.Module"] params ["b.weight", "b.bias"] buffers [] children [] loc(#loc)
  } loc(#loc)
  func.func @step(%arg0: tensor<10x6xf32> {spmd.arg = #spmd.param<"a.weight", trainable>} loc(unknown), %arg1: tensor<10xf32> {spmd.arg = #spmd.param<"a.bias", trainable>} loc(unknown), %arg2: tensor<4x10xf32> {spmd.arg = #spmd.param<"b.weight", trainable>} loc(unknown), %arg3: tensor<4xf32> {spmd.arg = #spmd.param<"b.bias", trainable>} loc(unknown), %arg4: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 1.000000e-01 : f64>} loc(unknown), %arg5: tensor<11x6xf32> {spmd.arg = #spmd.batch<"x", dim = 0>} loc(unknown), %arg6: tensor<11x4xf32> {spmd.arg = #spmd.batch<"y", dim = 0>} loc(unknown), %arg7: tensor<4xf32> {spmd.arg = #spmd.constant<"_tensor_constant0">} loc(unknown)) -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<10x6xf32> {spmd.result = #spmd.update<#spmd.param<"a.weight", trainable>>}, tensor<10xf32> {spmd.result = #spmd.update<#spmd.param<"a.bias", trainable>>}, tensor<4x10xf32> {spmd.result = #spmd.update<#spmd.param<"b.weight", trainable>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"b.bias", trainable>>}) {
    %0 = aten.permute %arg0 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<10x6xf32>) -> tensor<6x10xf32> loc(#loc2)
    %1 = aten.addmm %arg1, %arg5, %0 {spmd.segment = 0 : i64} : (tensor<10xf32>, tensor<11x6xf32>, tensor<6x10xf32>) -> tensor<11x10xf32> loc(#loc2)
    %2 = aten.tanh %1 {spmd.segment = 0 : i64} : (tensor<11x10xf32>) -> tensor<11x10xf32> loc(#loc3)
    %3 = aten.permute %arg2 {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<4x10xf32>) -> tensor<10x4xf32> loc(#loc4)
    %4 = aten.addmm %arg3, %2, %3 {spmd.segment = 0 : i64} : (tensor<4xf32>, tensor<11x10xf32>, tensor<10x4xf32>) -> tensor<11x4xf32> loc(#loc4)
    %5 = aten.select.int %arg6 {dim = 1 : i64, index = 0 : i64, spmd.segment = 0 : i64} : (tensor<11x4xf32>) -> tensor<11xf32> loc(#loc1)
    %6 = aten.gt.Scalar %5 {other = 0 : i64, spmd.segment = 0 : i64} : (tensor<11xf32>) -> tensor<11xi1> loc(#loc1)
    %7 = aten._to_copy %6 {dtype = i64, spmd.segment = 0 : i64} : (tensor<11xi1>) -> tensor<11xi64> loc(#loc1)
    %8 = aten._log_softmax %4 {dim = 1 : i64, spmd.segment = 0 : i64} : (tensor<11x4xf32>) -> tensor<11x4xf32> loc(#loc1)
    %output, %total_weight = aten.nll_loss_forward %8, %7, %arg7 {ignore_index = -100 : i64, reduction = 1 : i64, spmd.segment = 0 : i64} : (tensor<11x4xf32>, tensor<11xi64>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>) loc(#loc1)
    %9 = aten.full  {fill_value = 1.000000e+00 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32> loc(#loc)
    %10 = aten.nll_loss_backward %9, %8, %7, %arg7, %total_weight {ignore_index = -100 : i64, reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<11x4xf32>, tensor<11xi64>, tensor<4xf32>, tensor<f32>) -> tensor<11x4xf32> loc(#loc1)
    %11 = aten._log_softmax_backward_data %10, %8 {dim = 1 : i64, input_dtype = f32, spmd.segment = 1 : i64} : (tensor<11x4xf32>, tensor<11x4xf32>) -> tensor<11x4xf32> loc(#loc1)
    %12 = aten.mm %11, %arg2 {spmd.segment = 1 : i64} : (tensor<11x4xf32>, tensor<4x10xf32>) -> tensor<11x10xf32> loc(#loc4)
    %13 = aten.permute %11 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<4x11xf32> loc(#loc4)
    %14 = aten.mm %13, %2 {spmd.segment = 1 : i64} : (tensor<4x11xf32>, tensor<11x10xf32>) -> tensor<4x10xf32> loc(#loc4)
    %15 = aten.sum.dim_IntList %11 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<11x4xf32>) -> tensor<1x4xf32> loc(#loc4)
    %16 = aten.view %15 {size = array<i64: 4>, spmd.segment = 1 : i64} : (tensor<1x4xf32>) -> tensor<4xf32> loc(#loc4)
    %17 = aten.tanh_backward %12, %2 {spmd.segment = 1 : i64} : (tensor<11x10xf32>, tensor<11x10xf32>) -> tensor<11x10xf32> loc(#loc3)
    %18 = aten.permute %17 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<11x10xf32>) -> tensor<10x11xf32> loc(#loc2)
    %19 = aten.mm %18, %arg5 {spmd.segment = 1 : i64} : (tensor<10x11xf32>, tensor<11x6xf32>) -> tensor<10x6xf32> loc(#loc2)
    %20 = aten.sum.dim_IntList %17 {dim = array<i64: 0>, keepdim = true, spmd.segment = 1 : i64} : (tensor<11x10xf32>) -> tensor<1x10xf32> loc(#loc2)
    %21 = aten.view %20 {size = array<i64: 10>, spmd.segment = 1 : i64} : (tensor<1x10xf32>) -> tensor<10xf32> loc(#loc2)
    %self_out:4 = aten._fused_sgd %arg0, %arg1, %arg2, %arg3, %19, %21, %14, %16, %arg4 {dampening = array<f64: 0.000000e+00>, groups = array<i64: 0, 0, 0, 0>, momentum = array<f64: 0.000000e+00>, operandSegmentSizes = array<i32: 4, 4, 0, 1>, resultSegmentSizes = array<i32: 4, 0>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.000000e+00>} : (tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32>, tensor<f64>) -> (tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32>) loc(#loc)
    return %output, %self_out#0, %self_out#1, %self_out#2, %self_out#3 : tensor<f32>, tensor<10x6xf32>, tensor<10xf32>, tensor<4x10xf32>, tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("model.py":30:0)
#loc2 = loc(fused<#spmd.src<"a">>[#loc1])
#loc3 = loc(fused<#spmd.src<"">>[#loc1])
#loc4 = loc(fused<#spmd.src<"b">>[#loc1])

