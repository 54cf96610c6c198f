// RUN: spmd-opt -mlir-print-debuginfo -mlir-print-local-scope %s | spmd-opt -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// Everything the dialect has, parsed, printed and parsed again.

// CHECK: module @linear attributes {{.*}}spmd.tied = {wte.weight = ["lm_head.weight"]}
module @linear attributes {spmd.phases = ["forward", "backward", "optimizer"], spmd.tied = {wte.weight = ["lm_head.weight"]}} {
  // CHECK: spmd.mesh @mesh ["data" = 2]
  spmd.mesh @mesh ["data" = 2]
  // CHECK: spmd.module_tree @tree {
  spmd.module_tree @tree {
    // CHECK-NEXT: spmd.module "" class "train.Net" bases ["torch.nn.modules.module.Module"] params [] buffers [] children ["fc"]
    spmd.module "" class "train.Net" bases ["torch.nn.modules.module.Module"] params [] buffers [] children ["fc"]
    spmd.module "fc" class "torch.nn.modules.linear.Linear" bases [] params ["fc.weight", "fc.bias"] buffers [] children []
  }
  // CHECK: spmd.shard_unit @unit0 modules ["", "fc"] mesh @mesh axes ["data"] fully_shard reshard_after_forward
  // CHECK-SAME: layout #spmd.flat<f32, padded = 256, [#spmd.segment<"fc.weight", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>, #spmd.segment<"fc.bias", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
  spmd.shard_unit @unit0 modules ["", "fc"] mesh @mesh axes ["data"] fully_shard reshard_after_forward
    layout #spmd.flat<f32, padded = 256, [
      #spmd.segment<"fc.weight", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
      #spmd.segment<"fc.bias", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>

  // CHECK: func.func @roles
  func.func @roles(
      // CHECK-SAME: #spmd.param<"fc.weight", trainable>
      %w: tensor<4x16xf32> {spmd.arg = #spmd.param<"fc.weight", trainable>},
      // CHECK-SAME: #spmd.param<"frozen">
      %f: tensor<4x16xf32> {spmd.arg = #spmd.param<"frozen">},
      // CHECK-SAME: #spmd.buffer<"bn.mean">
      %b: tensor<4xf32> {spmd.arg = #spmd.buffer<"bn.mean">},
      // CHECK-SAME: #spmd.buffer<"order", persistent = false>
      %o: tensor<4xf32> {spmd.arg = #spmd.buffer<"order", persistent = false>},
      // CHECK-SAME: #spmd.constant<"_tensor_constant0">
      %c: tensor<4xf32> {spmd.arg = #spmd.constant<"_tensor_constant0">},
      // CHECK-SAME: #spmd.state<"momentum_buffer", of = "fc.weight", init = 0.000000e+00 : f64>
      %m: tensor<4x16xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "fc.weight", init = 0.0>},
      // CHECK-SAME: #spmd.hyper<"lr", group = 0, value = 1.000000e-03 : f64>
      %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.001>},
      // CHECK-SAME: #spmd.batch<"x", dim = none>
      %x: tensor<8x16xf32> {spmd.arg = #spmd.batch<"x", dim = none>},
      // CHECK-SAME: #spmd.shard<@unit0, "param">
      %s: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "param">},
      // CHECK-SAME: #spmd.table<@unit0, "step", init = 0.000000e+00 : f64>
      %t: tensor<2xf32> {spmd.arg = #spmd.table<@unit0, "step", init = 0.0>})
      // CHECK-SAME: spmd.result = #spmd.loss<"">
      // CHECK-SAME: spmd.result = #spmd.output<"logits">
      // CHECK-SAME: spmd.result = #spmd.update<#spmd.param<"fc.weight", trainable>>
      -> (tensor<f64> {spmd.result = #spmd.loss<"">}, tensor<4xf32> {spmd.result = #spmd.output<"logits">},
          tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"fc.weight", trainable>>}) {
    return %lr, %b, %w : tensor<f64>, tensor<4xf32>, tensor<4x16xf32>
  }

  // CHECK: func.func @collectives
  func.func @collectives(%shard: tensor<128xf32, #spmd.sharding<global = [256], [owned]>>, %x: tensor<7x3xf32>, %p: tensor<f32, #spmd.sharding<global = [], [partial<sum>]>>, %table: tensor<2xf32>) {
    // CHECK: spmd.all_gather %{{.*}} on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xf32, #spmd.sharding<global = [256], [owned]>> -> tensor<256xf32>
    %flat = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xf32, #spmd.sharding<global = [256], [owned]>> -> tensor<256xf32>
    // CHECK: spmd.unpack %{{.*}} unit @unit0 ["fc.weight", "fc.bias"] : tensor<256xf32> -> tensor<4x16xf32>, tensor<4xf32>
    %w, %b = spmd.unpack %flat unit @unit0 ["fc.weight", "fc.bias"] : tensor<256xf32> -> tensor<4x16xf32>, tensor<4xf32>
    // CHECK: spmd.pack %{{.*}} unit @unit0 ["fc.bias"] : (tensor<4xf32>) -> tensor<256xf32>
    %g = spmd.pack %b unit @unit0 ["fc.bias"] : (tensor<4xf32>) -> tensor<256xf32>
    // CHECK: spmd.reduce_scatter sum %{{.*}} on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
    %gs = spmd.reduce_scatter sum %g on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
    // CHECK: spmd.segment_norm norm2 %{{.*}} unit @unit0 : tensor<128xf32> -> tensor<2xf32>
    %n = spmd.segment_norm norm2 %gs unit @unit0 : tensor<128xf32> -> tensor<2xf32>
    // CHECK: spmd.segment_broadcast %{{.*}} unit @unit0 : tensor<2xf32> -> tensor<128xf32>
    %bc = spmd.segment_broadcast %table unit @unit0 : tensor<2xf32> -> tensor<128xf32>
    // CHECK: spmd.all_reduce [sum, norm2] %{{.*}}, %{{.*}} on @mesh ["data"] : (tensor<f32, #spmd.sharding<global = [], [partial<sum>]>>, tensor<2xf32>) -> (tensor<f32, #spmd.sharding<global = [], [replicated]>>, tensor<2xf32>)
    %r:2 = spmd.all_reduce [sum, norm2] %p, %n on @mesh ["data"] : (tensor<f32, #spmd.sharding<global = [], [partial<sum>]>>, tensor<2xf32>) -> (tensor<f32, #spmd.sharding<global = [], [replicated]>>, tensor<2xf32>)
    // CHECK: spmd.slice %{{.*}} on @mesh ["data"] dim 0 pre 1 chunk 4 : tensor<7x3xf32> -> tensor<4x3xf32, #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>>
    %sl = spmd.slice %x on @mesh ["data"] dim 0 pre 1 chunk 4 : tensor<7x3xf32> -> tensor<4x3xf32, #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>>
    // CHECK: spmd.mask %{{.*}} on @mesh ["data"] dim 0 pre 1 chunk 4 total 7 fill 0xFFF0000000000000
    %mk = spmd.mask %sl on @mesh ["data"] dim 0 pre 1 chunk 4 total 7 fill 0xFFF0000000000000 : tensor<4x3xf32, #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>> -> tensor<4x3xf32, #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>>
    return
  }

  // CHECK: func.func @scheduled
  func.func @scheduled(%shard: tensor<128xf32>, %p: tensor<f32>) {
    // CHECK: spmd.all_gather_start %{{.*}} on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
    %h = spmd.all_gather_start %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
    // CHECK: spmd.wait %{{.*}} : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
    %flat = spmd.wait %h : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
    // CHECK: spmd.reduce_scatter_start sum %{{.*}} on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 stream reduce : tensor<256xf32> -> !spmd.handle<tensor<128xf32>>
    %h1 = spmd.reduce_scatter_start sum %flat on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 stream reduce : tensor<256xf32> -> !spmd.handle<tensor<128xf32>>
    // CHECK: spmd.all_reduce_start [sum] %{{.*}} on @mesh ["data"] stream scalar : (tensor<f32>) -> !spmd.handle<tensor<f32>>
    %h2 = spmd.all_reduce_start [sum] %p on @mesh ["data"] stream scalar : (tensor<f32>) -> !spmd.handle<tensor<f32>>
    // CHECK: spmd.release %{{.*}} : tensor<256xf32>
    spmd.release %flat : tensor<256xf32>
    return
  }
}

// CHECK: spmd.mesh @other ["data" = 2, "model" = 4] loc(fused<#spmd.src<"h.0.attn">>["train.py":10:3])
spmd.mesh @other ["data" = 2, "model" = 4] loc(fused<#spmd.src<"h.0.attn">>["train.py":10:3])
