// RUN: spmd-opt %s -split-input-file -verify-diagnostics

// Numbers are those of the constraints in the verifiers.

// mesh C2
// expected-error @+1 {{has axis "data" twice}}
spmd.mesh @mesh ["data" = 2, "data" = 4]

// -----

// mesh C3
// expected-error @+1 {{has an axis of size 0, expected at least 1}}
spmd.mesh @mesh ["data" = 0]

// -----

// module_tree C3
spmd.module_tree @tree {
  // expected-error @+1 {{names child "fc", which is not in the tree}}
  spmd.module "" class "Net" bases [] params [] buffers [] children ["fc"]
}

// -----

// segment C1
// expected-error @+1 {{segment 'w' has numel 65, but its shape holds 64 elements}}
#segment = #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 65, trainable = true>

// -----

// segment C2
// expected-error @+1 {{segment 'w' has offset 5, which is not a multiple of 128}}
#segment = #spmd.segment<"w", shape = [4, 16], group = 0, offset = 5, numel = 64, trainable = true>

// -----

// flat C3
#w = #spmd.segment<"w", shape = [129], group = 0, offset = 0, numel = 129, trainable = true>
#b = #spmd.segment<"b", shape = [1], group = 0, offset = 128, numel = 1, trainable = true>
// expected-error @+1 {{segment 'b' at offset 128 overlaps the one before it, which ends at 129}}
#flat = #spmd.flat<f32, padded = 256, [#w, #b]>

// -----

// shard_unit C3
spmd.mesh @mesh ["data" = 3]
// expected-error @+1 {{has padded size 256, which is not a multiple of 128 times 3 ranks}}
spmd.shard_unit @unit0 modules [] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, []>

// -----

// shard_unit C4
spmd.mesh @mesh ["data" = 4]
// expected-error @+1 {{has a reshard_group of 3, which is no factor of 4 ranks}}
spmd.shard_unit @unit0 modules [] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 512, []> {reshard_group = 3 : i64}

// -----

// shard_unit C5
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{has "weights" = bf16 in its precision, expected param, reduce, grad, buffer, output or master and a float type}}
spmd.shard_unit @unit0 modules [] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, []> {precision = {weights = bf16}}

// -----

// shard_unit C6
spmd.mesh @mesh ["data" = 2]
// expected-error @+1 {{is ignored and not replicated}}
spmd.shard_unit @unit0 modules [] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, []> {ignored}

// -----

// sharding C1
// expected-error @+1 {{sharding has global rank 1, the tensor has rank 2}}
func.func private @f(tensor<4x2xf32, #spmd.sharding<global = [8], [replicated]>>)

// -----

// sharding C5
// expected-error @+1 {{dimension 0 of size 8 has no 3 equal parts}}
func.func private @f(tensor<4x2xf32, #spmd.sharding<global = [8, 2], [shard<0, 3, 1>]>>)

// -----

// sharding C6
// expected-error @+1 {{local shape must be [4, 2] for this sharding, got [8, 2]}}
func.func private @f(tensor<8x2xf32, #spmd.sharding<global = [8, 2], [shard<0, 1, 4>]>>)

// -----

// expected-error @+1 {{unknown state 'halved', expected replicated, shard, partial, owned or varying}}
func.func private @f(tensor<8x2xf32, #spmd.sharding<global = [8, 2], [halved]>>)

// -----

// expected-error @+1 {{argument 0: 'spmd.arg' must be the role of an argument (param, buffer, constant, state, hyper, batch, shard or table), got "w"}}
func.func @f(%w: tensor<f32> {spmd.arg = "w"}) {
  return
}

// -----

// C1
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{names mesh @mesh, which does not exist}}
  %0 = spmd.all_reduce [sum] %x on @mesh ["data"] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C2
// expected-note @+1 {{the mesh is here}}
spmd.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{names axis "model", which mesh @mesh does not have}}
  %0 = spmd.all_reduce [sum] %x on @mesh ["model"] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C4
spmd.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{has chunks of 4 rows on 2 ranks, too few for 9 rows}}
  %0 = spmd.all_gather %x on @mesh ["data"] dim 0 pre 1 total 9 : tensor<4xf32> -> tensor<9xf32>
  return
}

// -----

// C5
spmd.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{has total 8 and pre 1, but dimension 0 of 'tensor<7xf32>' has size 7}}
  %0 = spmd.all_gather %x on @mesh ["data"] dim 0 pre 1 total 8 : tensor<4xf32> -> tensor<7xf32>
  return
}

// -----

// C6
spmd.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+2 {{expected one of [gather, reduce, scalar] for stream, got: side}}
  // expected-error @+1 {{failed to parse Spmd_StreamAttr parameter}}
  %0 = spmd.all_gather_start %x on @mesh ["data"] dim 0 pre 1 total 8 stream side : tensor<4xf32> -> !spmd.handle<tensor<8xf32>>
  return
}

// -----

// all_reduce C4
spmd.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 2 kinds, 1 operands and 1 results}}
  %0 = spmd.all_reduce [sum, max] %x on @mesh ["data"] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// unit ops C2 and C3
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
func.func @f(%x: tensor<64xf32>) {
  // expected-error @+1 {{has flat buffer 'tensor<64xf32>', unit @unit0 has 'tensor<256xf32>'}}
  %0 = spmd.unpack %x unit @unit0 ["w"] : tensor<64xf32> -> tensor<4x16xf32>
  return
}

// -----

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
func.func @f(%x: tensor<64xf32>) {
  // expected-error @+1 {{has 'tensor<64xf32>' for segment "w", expected 'tensor<4x16xf32>'}}
  %0 = spmd.pack %x unit @unit0 ["w"] : (tensor<64xf32>) -> tensor<256xf32>
  return
}

// -----

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
func.func @f(%x: tensor<4x16xi1>) {
  // expected-error @+1 {{has 'tensor<4x16xi1>' for segment "w", expected 'tensor<4x16xf32>'}}
  %0 = spmd.pack %x unit @unit0 ["w"] : (tensor<4x16xi1>) -> tensor<256xf32>
  return
}

// -----

// batch: one word for no dimension
// expected-error @+1 {{expected a dimension or none}}
func.func private @step(tensor<4xf32> {spmd.arg = #spmd.batch<"x", dim = -1>})
