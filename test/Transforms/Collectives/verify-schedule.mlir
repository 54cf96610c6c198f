// RUN: spmd-opt %s --spmd-verify-schedule -split-input-file -verify-diagnostics

// Numbers are those of the pass description.

// 1
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'spmd.all_reduce' is synchronous}}
  %0 = spmd.all_reduce [sum] %x on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// 2
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'spmd.all_reduce_start' is waited for 2 times, expected once}}
  %h = spmd.all_reduce_start [sum] %x on @mesh ["data"] stream scalar : (tensor<f32>) -> !spmd.handle<tensor<f32>>
  // expected-note @+1 {{here}}
  %0 = spmd.wait %h : !spmd.handle<tensor<f32>> -> tensor<f32>
  // expected-note @+1 {{here}}
  %1 = spmd.wait %h : !spmd.handle<tensor<f32>> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// 3
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{releases a value that was not gathered}}
  spmd.release %x : tensor<f32>
  return %x : tensor<f32>
}

// -----

// 3
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%s: tensor<128xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{gathered buffer of unit @unit0 is never released}}
  %h = spmd.all_gather_start %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
  %0 = spmd.wait %h : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
  %w = spmd.unpack %0 unit @unit0 ["w"] : tensor<256xf32> -> tensor<4xf32>
  %y = aten.neg %w : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// 4, through views
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%s: tensor<128xf32>) -> tensor<1x4xf32> {
  %h = spmd.all_gather_start %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
  %0 = spmd.wait %h : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
  %w = spmd.unpack %0 unit @unit0 ["w"] : tensor<256xf32> -> tensor<4xf32>
  %v = aten.view %w {size = array<i64: 1, 4>} : (tensor<4xf32>) -> tensor<1x4xf32>
  // expected-note @+1 {{the release is here}}
  spmd.release %0 : tensor<256xf32>
  // expected-error @+1 {{'aten.neg' reads a gathered buffer after its release}}
  %y = aten.neg %v : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// -----

// 5
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'spmd.all_reduce_start' is on stream gather, it belongs on scalar: gathers, and only they, are on gather}}
  %h = spmd.all_reduce_start [sum] %x on @mesh ["data"] stream gather : (tensor<f32>) -> !spmd.handle<tensor<f32>>
  %0 = spmd.wait %h : !spmd.handle<tensor<f32>> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// 5: reductions of units and small ones
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'spmd.all_reduce_start' is on stream reduce, it belongs on scalar}}
  %h = spmd.all_reduce_start [sum] %x on @mesh ["data"] stream reduce : (tensor<f32>) -> !spmd.handle<tensor<f32>>
  %0 = spmd.wait %h : !spmd.handle<tensor<f32>> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// 6: the states of what is started
#P = #spmd.sharding<global = [], [partial<sum>]>
#R = #spmd.sharding<global = [], [replicated]>
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<f32, #P>) -> (tensor<f32, #R> {spmd.result = #spmd.loss<"">}) {
  // expected-error @+1 {{makes replicated from partial<sum>}}
  %h = spmd.all_reduce_start [max] %x on @mesh ["data"] stream scalar : (tensor<f32, #P>) -> !spmd.handle<tensor<f32, #R>>
  %0 = spmd.wait %h : !spmd.handle<tensor<f32, #R>> -> tensor<f32, #R>
  return %0 : tensor<f32, #R>
}

// -----

// 6: a partial value that nothing reduces
#P = #spmd.sharding<global = [], [partial<sum>]>
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{result 0 of @step is partial<sum>, expected replicated}}
func.func @step(%x: tensor<f32, #P>) -> (tensor<f32, #P> {spmd.result = #spmd.loss<"">}) {
  return %x : tensor<f32, #P>
}

// -----

// 6: what is reduced twice
#P = #spmd.sharding<global = [], [partial<sum>]>
#R = #spmd.sharding<global = [], [replicated]>
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<f32, #P>) -> (tensor<f32, #R> {spmd.result = #spmd.loss<"">}) {
  %h = spmd.all_reduce_start [sum] %x on @mesh ["data"] stream scalar : (tensor<f32, #P>) -> !spmd.handle<tensor<f32, #R>>
  %0 = spmd.wait %h : !spmd.handle<tensor<f32, #R>> -> tensor<f32, #R>
  // expected-error @+1 {{makes replicated from replicated}}
  %h1 = spmd.all_reduce_start [sum] %0 on @mesh ["data"] stream scalar : (tensor<f32, #R>) -> !spmd.handle<tensor<f32, #R>>
  %1 = spmd.wait %h1 : !spmd.handle<tensor<f32, #R>> -> tensor<f32, #R>
  return %1 : tensor<f32, #R>
}
