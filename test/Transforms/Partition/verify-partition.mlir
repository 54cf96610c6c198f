// RUN: spmd-opt %s --spmd-verify-partition -split-input-file -verify-diagnostics

// Numbers are those of the pass description.

// 1
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #spmd.sharding<global = [3], [replicated]>>) {
  // expected-error @+1 {{has type 'tensor<3xf32>', which says no sharding for the mesh}}
  %0 = aten.constant dense<1.0> : tensor<3xf32> : tensor<3xf32>
  return
}
}

// -----

// 2
#P = #spmd.sharding<global = [3], [partial<sum>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #P>) {
  // expected-error @+1 {{is not linear in operand 0, which is partial<sum>}}
  %0 = aten.exp %x : (tensor<3xf32, #P>) -> tensor<3xf32, #P>
  return
}
}

// -----

// 2: an add needs both
#P = #spmd.sharding<global = [3], [partial<sum>]>
#R = #spmd.sharding<global = [3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #P>, %y: tensor<3xf32, #R>) {
  // expected-error @+1 {{is not linear in operand 0, which is partial<sum>}}
  %0 = aten.add.Tensor %x, %y : (tensor<3xf32, #P>, tensor<3xf32, #R>) -> tensor<3xf32, #P>
  return
}
}

// -----

// 2: at most one in a product
#P = #spmd.sharding<global = [3], [partial<sum>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #P>) {
  // expected-error @+1 {{is not linear in operand 0, which is partial<sum>}}
  %0 = aten.mul.Tensor %x, %x : (tensor<3xf32, #P>, tensor<3xf32, #P>) -> tensor<3xf32, #P>
  return
}
}

// -----

// 2: kinds
#P = #spmd.sharding<global = [3], [partial<sum>]>
#M = #spmd.sharding<global = [3], [partial<max>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #P>, %y: tensor<3xf32, #M>) {
  // expected-error @+1 {{has operands that are partial<sum> and partial<max>}}
  %0 = aten.add.Tensor %x, %y : (tensor<3xf32, #P>, tensor<3xf32, #M>) -> tensor<3xf32, #P>
  return
}
}

// -----

// 3
#P = #spmd.sharding<global = [3], [partial<max>]>
#R = #spmd.sharding<global = [3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #P>) {
  // expected-error @+1 {{makes replicated from partial<max>}}
  %0 = spmd.all_reduce [sum] %x on @mesh ["data"] : (tensor<3xf32, #P>) -> tensor<3xf32, #R>
  return
}
}

// -----

// 4
#S = #spmd.sharding<global = [8, 3], [shard<0, 1, 4>]>
#R = #spmd.sharding<global = [8, 3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32, #S>, %w: tensor<4x3xf32, #spmd.sharding<global = [8, 3], [shard<0, 2, 2>]>>) {
  // expected-error @+1 {{has operands that are sharded differently: shard<0, 1, 4> and shard<0, 2, 2>}}
  %0 = aten.add.Tensor %x, %w : (tensor<4x3xf32, #S>, tensor<4x3xf32, #spmd.sharding<global = [8, 3], [shard<0, 2, 2>]>>) -> tensor<4x3xf32, #S>
  return
}
}

// -----

// 4: softmax needs its dimension whole
#S = #spmd.sharding<global = [8, 3], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32, #S>) {
  // expected-error @+1 {{needs dimension 0 of operand 0 whole, which is shard<0, 1, 4>}}
  %0 = aten._softmax %x {dim = 0 : i64} : (tensor<4x3xf32, #S>) -> tensor<4x3xf32, #S>
  return
}
}

// -----

// 4: a contraction gives a partial value
#S = #spmd.sharding<global = [8, 3], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32, #S>) {
  // expected-error @+1 {{gives result 0 as replicated, expected partial}}
  %0 = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<4x3xf32, #S>) -> tensor<3xf32, #spmd.sharding<global = [3], [replicated]>>
  return
}
}

// -----

// 5: 7 rows on 2 ranks
#S = #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32, #S>) {
  // expected-error @+1 {{adds up padded rows of operand 0, which no spmd.mask has filled}}
  %0 = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<4x3xf32, #S>) -> tensor<3xf32, #spmd.sharding<global = [3], [partial<sum>]>>
  return
}
}

// -----

// 5: the neutral element of a maximum is not 0
#S = #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32, #S>) {
  %m = spmd.mask %x on @mesh ["data"] dim 0 pre 1 chunk 4 total 7 fill 0.0 : tensor<4x3xf32, #S> -> tensor<4x3xf32, #S>
  // expected-error @+1 {{adds up padded rows of operand 0 that are filled with 0.000000e+00, the neutral element is -INF}}
  %0 = aten.amax %m {dim = array<i64: 0>} : (tensor<4x3xf32, #S>) -> tensor<3xf32, #spmd.sharding<global = [3], [partial<max>]>>
  return
}
}

// -----

// 3: a mask that takes a padded row for a row
#S = #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32, #S>) {
  // expected-error @+1 {{makes shard<0, 1, 4> from shard<0, 1, 4>}}
  %m = spmd.mask %x on @mesh ["data"] dim 0 pre 1 chunk 4 total 8 fill 0.0 : tensor<4x3xf32, #S> -> tensor<4x3xf32, #S>
  return
}
}

// -----

// 6
#O = #spmd.sharding<global = [256], [owned]>
#O2 = #spmd.sharding<global = [512], [owned]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%x: tensor<128xf32, #O>, %y: tensor<256xf32, #O2>) {
  // expected-error @+1 {{has operand 'tensor<256xf32, #spmd.sharding<global = [512], [owned]>>', which is neither a chunk nor a table of unit @unit0}}
  %0 = aten._foreach_add.List %x, %y {unit = @unit0} : (tensor<128xf32, #O>, tensor<256xf32, #O2>) -> tensor<128xf32, #O>
  return
}
}

// -----

// 6: a list op divides by norms of which each rank has a part
#O = #spmd.sharding<global = [256], [owned]>
#T = #spmd.sharding<global = [1], [partial<norm2>]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%x: tensor<128xf32, #O>, %n: tensor<1xf32, #T>) {
  // expected-error @+1 {{has operand 'tensor<1xf32, #spmd.sharding<global = [1], [partial<norm2>]>>', whose numbers are partial<norm2>}}
  %0 = aten._foreach_div.List %x, %n {unit = @unit0} : (tensor<128xf32, #O>, tensor<1xf32, #T>) -> tensor<128xf32, #O>
  return
}
}

// -----

// 7
#P = #spmd.sharding<global = [4], [partial<sum>]>
#F = #spmd.sharding<global = [256], [partial<sum>]>
#O = #spmd.sharding<global = [256], [owned]>
module {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>
func.func @step(%x: tensor<4xf32, #P>) {
  // expected-note @+1 {{the first time is here}}
  %0 = spmd.pack %x unit @unit0 ["w"] : (tensor<4xf32, #P>) -> tensor<256xf32, #F>
  %1 = spmd.reduce_scatter sum %0 on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32, #F> -> tensor<128xf32, #O>
  // expected-error @+1 {{reduces the gradient of "w" a second time}}
  %2 = spmd.pack %x unit @unit0 ["w"] : (tensor<4xf32, #P>) -> tensor<256xf32, #F>
  %3 = spmd.reduce_scatter sum %2 on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32, #F> -> tensor<128xf32, #O>
  return
}
}

// -----

// 8
#S = #spmd.sharding<global = [8, 3], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{result 0 of @step is shard<0, 1, 4>, expected replicated}}
func.func @step(%x: tensor<4x3xf32, #S>) -> (tensor<4x3xf32, #S> {spmd.result = #spmd.output<"0">}) {
  return %x : tensor<4x3xf32, #S>
}
}

// -----

// 9: what differs from rank to rank stays so, until it is reduced
#V = #spmd.sharding<global = [3], [varying]>
#R = #spmd.sharding<global = [3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #V>, %y: tensor<3xf32, #R>) {
  %sum = spmd.all_reduce [sum] %x on @mesh ["data"] : (tensor<3xf32, #V>) -> tensor<3xf32, #R>
  %0 = aten.mul.Tensor %x, %y : (tensor<3xf32, #V>, tensor<3xf32, #R>) -> tensor<3xf32, #V>
  // expected-error @+1 {{has an operand that is varying, but gives a replicated value}}
  %1 = aten.exp %0 : (tensor<3xf32, #V>) -> tensor<3xf32, #R>
  return
}
}

// -----

// 9
#V = #spmd.sharding<global = [3], [varying]>
#P = #spmd.sharding<global = [3], [partial<sum>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #V>, %y: tensor<3xf32, #P>) {
  // expected-error @+1 {{has an operand that is varying and one that is partial<sum>}}
  %0 = aten.mul.Tensor %x, %y : (tensor<3xf32, #V>, tensor<3xf32, #P>) -> tensor<3xf32, #V>
  return
}
}

// -----

// 8: an updated parameter is no rank's own
#V = #spmd.sharding<global = [3], [varying]>
module {
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{result 1 of @step is varying, expected replicated}}
func.func @step(%x: tensor<3xf32, #V> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<3xf32, #V> {spmd.result = #spmd.output<"">},
        tensor<3xf32, #V> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  return %x, %x : tensor<3xf32, #V>, tensor<3xf32, #V>
}
}

// -----

// 2: largest values do not add up
#M = #spmd.sharding<global = [3], [partial<max>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #M>) {
  // expected-error @+1 {{is not linear in operand 0, which is partial<max>}}
  %0 = aten.add.Tensor %x, %x : (tensor<3xf32, #M>, tensor<3xf32, #M>) -> tensor<3xf32, #M>
  return
}
}

// -----

// 4: a view does not gather
#S = #spmd.sharding<global = [8, 3], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32, #S>) {
  // expected-error @+1 {{gives a replicated view of a shard<0, 1, 4> value}}
  %0 = aten.view %x {size = array<i64: 12>} : (tensor<4x3xf32, #S>) -> tensor<12xf32, #spmd.sharding<global = [12], [replicated]>>
  return
}
}

// -----

// 4: what is computed from whole values is no part of anything
#R = #spmd.sharding<global = [3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<3xf32, #R>) {
  // expected-error @+1 {{gives result 0 as partial<sum>, but all operands are replicated}}
  %0 = aten.neg %x : (tensor<3xf32, #R>) -> tensor<3xf32, #spmd.sharding<global = [3], [partial<sum>]>>
  return
}
}

// -----

// 4: rows that are all alike may be made by each rank
#S = #spmd.sharding<global = [8], [shard<0, 1, 4>]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step() {
  %0 = aten.full {fill_value = 1.0 : f64, size = array<i64: 4>} : () -> tensor<4xf32, #S>
  return
}
}

// -----

// 6: chunks give chunks
#O = #spmd.sharding<global = [256], [owned]>
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<128xf32, #O>) {
  // expected-error @+1 {{gives result 0 as replicated, expected owned}}
  %0 = aten.neg %x : (tensor<128xf32, #O>) -> tensor<128xf32, #spmd.sharding<global = [128], [replicated]>>
  return
}
}

// -----

// 8: a gradient that ranks have summands of stays one
#P = #spmd.sharding<global = [3], [partial<sum>]>
#R = #spmd.sharding<global = [3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{result 0 of @step is replicated, and what it updates is partial<sum>}}
func.func @step(%g: tensor<3xf32, #P> {spmd.arg = #spmd.state<"grad", of = "w">}, %x: tensor<3xf32, #R>)
    -> (tensor<3xf32, #R> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w">>}) {
  return %x : tensor<3xf32, #R>
}
}

// -----

// 8: and what all ranks have alike becomes none
#P = #spmd.sharding<global = [3], [partial<sum>]>
#R = #spmd.sharding<global = [3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{result 0 of @step is partial<sum>, and what it updates is replicated}}
func.func @step(%g: tensor<3xf32, #R> {spmd.arg = #spmd.state<"grad", of = "w">}, %x: tensor<3xf32, #P>)
    -> (tensor<3xf32, #P> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w">>}) {
  return %x : tensor<3xf32, #P>
}
}

// -----

// 8: seen as one rank's program, too
#V = #spmd.sharding<global = [3], [varying]>
#R = #spmd.sharding<global = [3], [replicated]>
module {
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{result 0 of @step is replicated, and what it updates is varying}}
func.func @step(%g: tensor<3xf32, #V> {spmd.arg = #spmd.state<"grad", of = "w">}, %x: tensor<3xf32, #R>)
    -> (tensor<3xf32, #R> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w">>}) {
  return %x : tensor<3xf32, #R>
}
}

// -----

// 8: a chunk that is a sum across stays one
#S = #spmd.sharding<global = [256], [partial<sum>, owned]>
#O = #spmd.sharding<global = [256], [replicated, owned]>
module {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
// expected-error @+1 {{result 0 of @step is replicated, owned of 'tensor<128xf32, #spmd.sharding<global = [256], [replicated, owned]>>', and what it updates is 'tensor<128xf32, #spmd.sharding<global = [256], [partial<sum>, owned]>>'}}
func.func @step(%g: tensor<128xf32, #S> {spmd.arg = #spmd.shard<@unit0, "grad">}, %x: tensor<128xf32, #O> {spmd.arg = #spmd.shard<@unit0, "param">})
    -> (tensor<128xf32, #O> {spmd.result = #spmd.update<#spmd.shard<@unit0, "grad">>}) {
  return %x : tensor<128xf32, #O>
}
}

// -----

// 6: a sum across is added to sums across
#S = #spmd.sharding<global = [256], [partial<sum>, owned]>
#O = #spmd.sharding<global = [256], [replicated, owned]>
module {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
func.func @step(%g: tensor<128xf32, #S> {spmd.arg = #spmd.shard<@unit0, "grad">}, %x: tensor<128xf32, #O> {spmd.arg = #spmd.shard<@unit0, "param">})
    -> (tensor<128xf32, #S> {spmd.result = #spmd.update<#spmd.shard<@unit0, "grad">>}) {
  // expected-error @+1 {{has operand 0, which is not added up along the first axis: it is partial<sum>, owned}}
  %0 = aten.add.Tensor %g, %x : (tensor<128xf32, #S>, tensor<128xf32, #O>) -> tensor<128xf32, #S>
  return %0 : tensor<128xf32, #S>
}
}
