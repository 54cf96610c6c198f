// RUN: spmd-opt %s --spmd-partition -split-input-file -verify-diagnostics
// RUN: not spmd-opt %s --spmd-partition=view=sideways -split-input-file 2>&1 | FileCheck %s

// CHECK: error: view 'sideways' is not one of: global, local

// expected-error @+1 {{must have one spmd.mesh; run spmd-assign-shard-units before partition}}
module {
  func.func @step() {
    return
  }
}

// -----

module {
  spmd.mesh @mesh ["data" = 2]
  // expected-error @+1 {{parameter 'w' is in no shard unit; run spmd-assign-shard-units before partition}}
  func.func @step(%w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>}) {
    return
  }
}

// -----

module {
  // expected-error @+1 {{has 4 axes, partition knows one to three}}
  spmd.mesh @mesh ["data" = 2, "model" = 2, "more" = 2, "most" = 2]
  func.func @step() {
    return
  }
}

// -----

module {
  spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
  // expected-error @+1 {{is on axes ["replicate"], expected ["shard"]: a unit is cut along the last axis of the mesh}}
  spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["replicate"] fully_shard layout #spmd.flat<f32, padded = 256, [
    #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
  func.func @step() {
    return
  }
}

// -----

module {
  spmd.mesh @mesh ["data" = 2]
  spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
    #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
  // expected-error @+1 {{parameter 'w' has type 'tensor<16xf32>', but its segment has 'tensor<4x16xf32>'}}
  func.func @step(%w: tensor<16xf32> {spmd.arg = #spmd.param<"w", trainable>}) {
    return
  }
}

// -----

module {
  spmd.mesh @mesh ["data" = 2]
  spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
    #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
    #spmd.segment<"none", shape = [0, 3], group = 0, offset = 128, numel = 0, trainable = true>]>
  func.func @step(%w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>}, %n: tensor<0x3xf32> {spmd.arg = #spmd.param<"none", trainable>})
      -> (tensor<0x3xf32> {spmd.result = #spmd.update<#spmd.param<"none", trainable>>}) {
    %g = aten.full {fill_value = 0.0 : f64, size = array<i64: 0, 3>} : () -> tensor<0x3xf32>
    // expected-error @+1 {{parameter 'none' of shape [0, 3] has no elements that the optimizer could update; freeze it with requires_grad_(False)}}
    %n1 = aten.add.Tensor %n, %g {alpha = 1 : i64} : (tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<0x3xf32>
    return %n1 : tensor<0x3xf32>
  }
}

// -----

module {
  spmd.mesh @mesh ["data" = 2]
  func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}) {
    // expected-error @+1 {{'arith.negf' cannot be partitioned: it is no aten op}}
    %0 = arith.negf %x : tensor<8x4xf32>
    return
  }
}

// -----

module {
  spmd.mesh @mesh ["data" = 2]
  // expected-error @+1 {{result 0 updates #spmd.buffer<"other">, which no argument is}}
  func.func @step(%b: tensor<4xf32> {spmd.arg = #spmd.buffer<"b">}) -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.buffer<"other">>}) {
    return %b : tensor<4xf32>
  }
}

// -----

module @wide attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{shard unit '(root)' (@unit0) has mixed precision (param = 'bf16'), and the step was captured in 'f32'}}
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]> {precision = {param = bf16}}
func.func @step(%w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">}) {
  %loss = aten.sum.dim_IntList %w {dim = array<i64: 0, 1>, spmd.segment = 0} : (tensor<4x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// A number for each tensor of a list, in another order than that of the unit.
module attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
  spmd.mesh @mesh ["data" = 2]
  spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
    #spmd.segment<"a", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
    #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
  func.func @step(%a: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>}, %b: tensor<4xf32> {spmd.arg = #spmd.param<"b", trainable>},
                  %n: tensor<2xf32> {spmd.arg = #spmd.batch<"n", dim = none>})
      -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"a", trainable>>}, tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"b", trainable>>}) {
    // expected-error @+1 {{'aten._foreach_addcmul.Tensor' takes a tensor with a number for each of its 2 tensors, which are not one unit's in this order}}
    %0:2 = aten._foreach_addcmul.Tensor %b, %a, %b, %a, %b, %a, %n {spmd.segment = 2 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#1, %0#0 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A unit has one buffer for each kind of state.
module attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
  spmd.mesh @mesh ["data" = 2]
  spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
    #spmd.segment<"a", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
    #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
  func.func @step(%a: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>}, %b: tensor<4xf32> {spmd.arg = #spmd.param<"b", trainable>},
                  %m: tensor<4xf32> {spmd.arg = #spmd.state<"m", of = "a">}, %n: tensor<4xbf16> {spmd.arg = #spmd.state<"m", of = "b">})
      -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.state<"m", of = "a">>}, tensor<4xbf16> {spmd.result = #spmd.update<#spmd.state<"m", of = "b">>}) {
    // expected-error @+1 {{state 'm' of parameter 'a' is 'f32', that of 'b' is 'bf16', and both are of shard unit @unit0, which has one buffer for each kind of state}}
    %0:2 = aten._foreach_mul.Scalar %m, %n {scalar = 0.9 : f64, spmd.segment = 2 : i64} : (tensor<4xf32>, tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xbf16>)
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xbf16>
  }
}
