// RUN: spmd-opt %s --spmd-verify-partition -split-input-file -verify-diagnostics

// What belongs to a shard unit stays with it; numbers are those of the pass description. Two units have equal layouts
// here, so that no type tells them apart.

// 7: reduced and read besides
#owned = #spmd.sharding<global = [256], [owned]>
#P = #spmd.sharding<global = [256], [partial<sum>]>
#w = #spmd.sharding<global = [4], [partial<sum>]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%g: tensor<4xf32, #w>) {
  // expected-error @+1 {{of unit @unit0 is reduced more than once}}
  %0 = spmd.pack %g unit @unit0 ["w"] : (tensor<4xf32, #w>) -> tensor<256xf32, #P>
  // expected-note @+1 {{here}}
  %1 = spmd.reduce_scatter sum %0 on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32, #P> -> tensor<128xf32, #owned>
  // expected-note @+1 {{here}}
  %2 = spmd.reduce_scatter sum %0 on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32, #P> -> tensor<128xf32, #owned>
  return
}
}

// -----

// 7: what is no pack
#owned = #spmd.sharding<global = [256], [owned]>
#P = #spmd.sharding<global = [256], [partial<sum>]>
#w = #spmd.sharding<global = [4], [partial<sum>]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%g: tensor<256xf32, #P>) {
  // expected-error @+1 {{of unit @unit0 takes a value of no unit}}
  %1 = spmd.reduce_scatter sum %g on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32, #P> -> tensor<128xf32, #owned>
  return
}
}

// -----

// 10: another unit's parameters
#owned = #spmd.sharding<global = [256], [owned]>
#R = #spmd.sharding<global = [256], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
spmd.shard_unit @unit1 modules ["b"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"b.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit1, "param">}) {
  // expected-error @+1 {{of unit @unit0 takes a value of unit @unit1}}
  %0 = spmd.all_gather %b on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 : tensor<128xf32, #owned> -> tensor<256xf32, #R>
  return
}
}

// -----

// 10: another state of the unit
#owned = #spmd.sharding<global = [256], [owned]>
#R = #spmd.sharding<global = [256], [replicated]>
module attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "exp_avg">}) {
  // expected-error @+1 {{of unit @unit0 sends #spmd.shard<@unit0, "exp_avg"> where parameters are used}}
  %0 = spmd.all_gather %a on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 1 : i64} : tensor<128xf32, #owned> -> tensor<256xf32, #R>
  return
}
}

// -----

// 10: another unit's parameters, in the narrower type that they travel in
#owned = #spmd.sharding<global = [256], [owned]>
#R = #spmd.sharding<global = [256], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
spmd.shard_unit @unit1 modules ["b"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"b.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit1, "param">}) {
  %own = aten._to_copy %a {dtype = bf16} : (tensor<128xf32, #owned>) -> tensor<128xbf16, #owned>
  %0 = spmd.all_gather %own on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 : tensor<128xbf16, #owned> -> tensor<256xbf16, #R>
  %other = aten._to_copy %b {dtype = bf16} : (tensor<128xf32, #owned>) -> tensor<128xbf16, #owned>
  // expected-error @+1 {{of unit @unit0 takes a value of unit @unit1}}
  %1 = spmd.all_gather %other on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 : tensor<128xbf16, #owned> -> tensor<256xbf16, #R>
  return
}
}

// -----

// 10: another state of the unit, in the narrower type; its parameters are taken
#owned = #spmd.sharding<global = [256], [owned]>
#R = #spmd.sharding<global = [256], [replicated]>
module attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                %m: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "exp_avg">}) {
  %own = aten._to_copy %a {dtype = bf16, spmd.segment = 0 : i64} : (tensor<128xf32, #owned>) -> tensor<128xbf16, #owned>
  %0 = spmd.all_gather %own on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xbf16, #owned> -> tensor<256xbf16, #R>
  %other = aten._to_copy %m {dtype = bf16, spmd.segment = 1 : i64} : (tensor<128xf32, #owned>) -> tensor<128xbf16, #owned>
  // expected-error @+1 {{of unit @unit0 sends #spmd.shard<@unit0, "exp_avg"> where parameters are used}}
  %1 = spmd.all_gather %other on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 1 : i64} : tensor<128xbf16, #owned> -> tensor<256xbf16, #R>
  return
}
}

// -----

// 10: parameters in another type than the unit's
#owned = #spmd.sharding<global = [256], [owned]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
// expected-error @+1 {{argument 0 of @step, #spmd.shard<@unit0, "param">, has type 'tensor<128xbf16, #spmd.sharding<global = [256], [owned]>>', expected 'tensor<128xf32>'}}
func.func @step(%a: tensor<128xbf16, #owned> {spmd.arg = #spmd.shard<@unit0, "param">}) {
  return
}
}

// -----

// 11
#owned = #spmd.sharding<global = [256], [owned]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
spmd.shard_unit @unit1 modules ["b"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"b.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit1, "param">}) {
  // expected-error @+1 {{mixes values of units @unit0 and @unit1}}
  %0 = aten.add.Tensor %a, %b : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  return
}
}

// -----

// 11: a list op
#owned = #spmd.sharding<global = [256], [owned]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
spmd.shard_unit @unit1 modules ["b"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"b.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit1, "param">}) {
  // expected-error @+1 {{of unit @unit0 has operand 0 of unit @unit1}}
  %0 = aten._foreach_add.Scalar %b {scalar = 1 : i64, unit = @unit0} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  return
}
}

// -----

// 12: an update written to another unit's argument
#owned = #spmd.sharding<global = [256], [owned]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
spmd.shard_unit @unit1 modules ["b"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"b.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit1, "param">})
    -> (tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit1, "param">>}) {
  // expected-error @+1 {{result 0 of @step, #spmd.update<#spmd.shard<@unit1, "param">>, is a value of unit @unit0}}
  %0 = aten.neg %a : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  return %0 : tensor<128xf32, #owned>
}
}
