// What a collective on a mesh of two axes may do: chunks are of the second axis, and sums are added up along each once.
// RUN: spmd-opt %s --spmd-verify-partition -split-input-file -verify-diagnostics

#chunk = #spmd.sharding<global = [512], [replicated, owned]>
#sums = #spmd.sharding<global = [512], [partial<sum>, owned]>
#flat = #spmd.sharding<global = [512], [replicated]>
#grads = #spmd.sharding<global = [512], [partial<sum>]>
#w = #spmd.sharding<global = [4], [replicated]>
#g = #spmd.sharding<global = [4], [partial<sum>]>
module @right {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 512, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%p: tensor<256xf32, #chunk> {spmd.arg = #spmd.shard<@unit0, "param">}, %g: tensor<4xf32, #g> {spmd.arg = #spmd.batch<"g", dim = 0>})
    -> (tensor<256xf32, #chunk> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>}) {
  %flat = spmd.all_gather %p on @mesh ["shard"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 0 : i64} : tensor<256xf32, #chunk> -> tensor<512xf32, #flat>
  %pack = spmd.pack %g unit @unit0 ["w"] {spmd.segment = 1 : i64} : (tensor<4xf32, #g>) -> tensor<512xf32, #grads>
  %sum = spmd.reduce_scatter sum %pack on @mesh ["shard"] unit @unit0 dim 0 pre 1 chunk 256 {spmd.segment = 1 : i64} : tensor<512xf32, #grads> -> tensor<256xf32, #sums>
  %all = spmd.all_reduce [sum] %sum on @mesh ["replicate"] unit @unit0 {spmd.segment = 1 : i64} : (tensor<256xf32, #sums>) -> tensor<256xf32, #chunk>
  %new = aten.add.Tensor %p, %all {alpha = 1 : i64, spmd.segment = 2 : i64} : (tensor<256xf32, #chunk>, tensor<256xf32, #chunk>) -> tensor<256xf32, #chunk>
  return %new : tensor<256xf32, #chunk>
}
}

// -----

#chunk = #spmd.sharding<global = [512], [replicated, owned]>
#flat = #spmd.sharding<global = [512], [replicated]>
module {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 512, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%p: tensor<256xf32, #chunk> {spmd.arg = #spmd.shard<@unit0, "param">}) {
  // expected-error @+1 {{makes replicated from replicated, owned}}
  %flat = spmd.all_gather %p on @mesh ["replicate"] unit @unit0 dim 0 pre 1 total 512 : tensor<256xf32, #chunk> -> tensor<512xf32, #flat>
  return
}
}

// -----

// The sum of norms of a row, over all ranks: each would count twice.
#norm = #spmd.sharding<global = [], [replicated, partial<norm2>]>
#all = #spmd.sharding<global = [], [replicated]>
module {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
func.func @step(%n: tensor<f32, #norm> {spmd.arg = #spmd.batch<"n", dim = none>}) {
  // expected-error @+1 {{makes replicated from replicated, partial<norm2>}}
  %a = spmd.all_reduce [norm2] %n on @mesh ["replicate", "shard"] : (tensor<f32, #norm>) -> tensor<f32, #all>
  return
}
}

// -----

// A sum of all ranks that is added up along one axis alone.
#part = #spmd.sharding<global = [], [partial<sum>]>
#all = #spmd.sharding<global = [], [replicated]>
module {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
func.func @step(%n: tensor<f32, #part> {spmd.arg = #spmd.batch<"n", dim = none>}) {
  // expected-error @+1 {{makes replicated from partial<sum>}}
  %a = spmd.all_reduce [sum] %n on @mesh ["shard"] : (tensor<f32, #part>) -> tensor<f32, #all>
  return
}
}

// -----

#chunk = #spmd.sharding<global = [512], [replicated, owned]>
#sums = #spmd.sharding<global = [512], [partial<sum>, owned]>
#grads = #spmd.sharding<global = [512], [partial<sum>]>
#g = #spmd.sharding<global = [4], [partial<sum>]>
module {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 512, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%p: tensor<256xf32, #chunk> {spmd.arg = #spmd.shard<@unit0, "param">}, %g: tensor<4xf32, #g> {spmd.arg = #spmd.batch<"g", dim = 0>}) {
  %pack = spmd.pack %g unit @unit0 ["w"] : (tensor<4xf32, #g>) -> tensor<512xf32, #grads>
  %sum = spmd.reduce_scatter sum %pack on @mesh ["shard"] unit @unit0 dim 0 pre 1 chunk 256 : tensor<512xf32, #grads> -> tensor<256xf32, #sums>
  // expected-error @+1 {{has operand 1, which is not added up along the first axis: it is partial<sum>, owned}}
  %new = aten.add.Tensor %p, %sum {alpha = 1 : i64} : (tensor<256xf32, #chunk>, tensor<256xf32, #sums>) -> tensor<256xf32, #chunk>
  return
}
}

// -----

// Of two axes a chunk says which it is of.
#chunk = #spmd.sharding<global = [512], [owned]>
module {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
// expected-error @+1 {{says no sharding for the mesh}}
func.func @step(%p: tensor<256xf32, #chunk> {spmd.arg = #spmd.shard<@unit0, "param">}) {
  return
}
}

// -----

// Of three axes, the last two of which are groups: a piece is a rank's within its group, a chunk a rank's of its row.
#chunk = #spmd.sharding<global = [512], [replicated, owned]>
#piece = #spmd.sharding<global = [512], [replicated, replicated, owned]>
#flat = #spmd.sharding<global = [512], [replicated]>
module {
spmd.mesh @mesh ["replicate" = 2, "outer" = 2, "inner" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["outer", "inner"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 512, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]> {reshard_group = 2 : i64}
func.func @step(%p: tensor<128xf32, #chunk> {spmd.arg = #spmd.shard<@unit0, "param">}) {
  %w = spmd.all_gather %p on @mesh ["outer", "inner"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 0} : tensor<128xf32, #chunk> -> tensor<512xf32, #flat>
  %piece = spmd.slice %w on @mesh ["inner"] dim 0 pre 1 chunk 256 {spmd.segment = 0} : tensor<512xf32, #flat> -> tensor<256xf32, #piece>
  %again = spmd.all_gather %piece on @mesh ["inner"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 1} : tensor<256xf32, #piece> -> tensor<512xf32, #flat>
  // expected-error @+1 {{has a chunk of 256 of 512 elements on axes of 4 ranks}}
  %more = spmd.all_gather %piece on @mesh ["outer", "inner"] unit @unit0 dim 0 pre 1 total 512 {spmd.segment = 1} : tensor<256xf32, #piece> -> tensor<512xf32, #flat>
  return
}
}
