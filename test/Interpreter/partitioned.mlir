// A linear layer with SGD, partitioned by hand over two ranks: five rows of batch in chunks of three, one shard unit.
// RUN: split-file %s %t
// RUN: cat %t/unit.mlir %t/partitioned.mlir > %t/sync.mlir
// RUN: spmd-interpret %t/sync.mlir --compare=%t/base.mlir --ranks=2 --steps=3 | FileCheck %s
// RUN: cat %t/unit.mlir %t/scheduled.mlir > %t/async.mlir
// RUN: spmd-interpret %t/async.mlir --compare=%t/base.mlir --steps=3 | FileCheck %s

// CHECK: step 2 loss/
// CHECK: collectives: all_gather 1 (512 bytes per rank)
// CHECK-NEXT: collectives: all_reduce 1 (4 bytes per rank)
// CHECK-NEXT: collectives: reduce_scatter 1 (1024 bytes per rank)
// CHECK-NEXT: replicated matmul flops: 0.0%
// CHECK: loss 3 {{[0-9.]+}}e-1{{[67]}} loss/ of step
// CHECK-NEXT: parameters 1 {{[0-9.]+}}e-1{{[67]}} w
// CHECK-NEXT: momentum_buffer 1 {{[0-9.]+}}e-1{{[67]}} optimizer/momentum_buffer/w

// The program's types round each result, and the reduction is in another order.
// RUN: not spmd-interpret %t/sync.mlir --compare=%t/base.mlir --dtype=program 2>&1 | FileCheck %s --check-prefix=ROUNDED
// RUN: spmd-interpret %t/sync.mlir --compare=%t/base.mlir --dtype=program --rtol=1e-6
// ROUNDED: spmd-interpret: the programs differ by {{.*}}e-0{{[78]}}, allowed are 1.00e-12

// Another seed, other inputs.
// RUN: spmd-interpret %t/sync.mlir --seed=1 > %t/seed1
// RUN: spmd-interpret %t/sync.mlir --seed=2 > %t/seed2
// RUN: not diff %t/seed1 %t/seed2

// A gradient that is not summed, a number of ranks the program is not for, padding that is not neutral.
// RUN: sed 's/reduce_scatter sum/reduce_scatter max/' %t/sync.mlir > %t/max.mlir
// RUN: not spmd-interpret %t/max.mlir --compare=%t/base.mlir 2>&1 | FileCheck %s --check-prefix=MAX
// MAX: the programs differ by 6.05e-01, allowed are 1.00e-12
// MAX: momentum_buffer 1 6.05e-01 optimizer/momentum_buffer/w
// RUN: not spmd-interpret %t/sync.mlir --ranks=4 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: error: the program is for 2 ranks, --ranks is 4
// RUN: sed 's/return %loss, %w1/%dirty = aten.add.Scalar %w1 {other = 1.0 : f64} : (tensor<128xf32>) -> tensor<128xf32>\n return %loss, %dirty/' %t/sync.mlir > %t/dirty.mlir
// RUN: not spmd-interpret %t/dirty.mlir 2>&1 | FileCheck %s --check-prefix=PADDING
// PADDING: error: padding is not zero: element 32 of #spmd.shard<@unit0, "param"> on rank 0 is 1

// A loss that nobody reduced differs between the ranks.
// RUN: sed 's/return %loss,/return %unreduced,/' %t/sync.mlir > %t/unreduced.mlir
// RUN: not spmd-interpret %t/unreduced.mlir 2>&1 | FileCheck %s --check-prefix=UNREDUCED
// UNREDUCED: error: the result #spmd.loss<""> differs on ranks 0 and 1

// Bytes that were given back are not read.
// RUN: sed 's/%full = spmd.unpack/spmd.release %flat : tensor<256xf32>\n  %full = spmd.unpack/' %t/async.mlir > %t/released.mlir
// RUN: not spmd-interpret %t/released.mlir 2>&1 | FileCheck %s --check-prefix=RELEASED
// RELEASED: error: the released value is used below

//--- base.mlir
func.func @step(%w: tensor<4x8xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %m: tensor<4x8xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "w", init = 0.0>},
                %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.01>},
                %x: tensor<5x8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %t: tensor<5x4xf32> {spmd.arg = #spmd.batch<"t", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">},
        tensor<4x8xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
        tensor<4x8xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "w", init = 0.0>>}) {
  %wt = aten.permute %w {dims = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %y = aten.mm %x, %wt : (tensor<5x8xf32>, tensor<8x4xf32>) -> tensor<5x4xf32>
  %loss = aten.mse_loss %y, %t {reduction = 2 : i64} : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<f32>
  %one = aten.full {size = array<i64>, fill_value = 1.0 : f64} : () -> tensor<f32>
  %dy = aten.mse_loss_backward %one, %y, %t {reduction = 2 : i64} : (tensor<f32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  %dyt = aten.permute %dy {dims = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %g = aten.mm %dyt, %x : (tensor<4x5xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  %w1, %m1 = aten._fused_sgd %w, %g, %m, %lr
      {weight_decay = array<f64: 0.1>, momentum = array<f64: 0.9>, dampening = array<f64: 0.0>, nesterov = false,
       maximize = false, is_first_step = false, groups = array<i64: 0>,
       operandSegmentSizes = array<i32: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1>}
      : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f64>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %loss, %w1, %m1 : tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>
}

//--- unit.mlir
#rows8 = #spmd.sharding<global = [5, 8], [shard<0, 1, 3>]>
#rows4 = #spmd.sharding<global = [5, 4], [shard<0, 1, 3>]>
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout
    #spmd.flat<f32, padded = 256, [#spmd.segment<"w", shape = [4, 8], group = 0, offset = 0, numel = 32, trainable = true>]>

//--- partitioned.mlir
func.func @step(%w: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "param">},
                %m: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "momentum_buffer", init = 0.0>},
                %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.01>},
                %x: tensor<3x8xf32, #rows8> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %t: tensor<3x4xf32, #rows4> {spmd.arg = #spmd.batch<"t", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">},
        tensor<128xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>},
        tensor<128xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "momentum_buffer", init = 0.0>>}) {
  %flat = spmd.all_gather %w on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 : tensor<128xf32> -> tensor<256xf32>
  %full = spmd.unpack %flat unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x8xf32>
  %wt = aten.permute %full {dims = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %y = aten.mm %x, %wt : (tensor<3x8xf32, #rows8>, tensor<8x4xf32>) -> tensor<3x4xf32, #rows4>
  %unreduced = aten.mse_loss %y, %t {reduction = 2 : i64} : (tensor<3x4xf32, #rows4>, tensor<3x4xf32, #rows4>) -> tensor<f32>
  %loss = spmd.all_reduce [sum] %unreduced on @mesh ["data"] : (tensor<f32>) -> (tensor<f32>)
  %one = aten.full {size = array<i64>, fill_value = 1.0 : f64} : () -> tensor<f32>
  %dy = aten.mse_loss_backward %one, %y, %t {reduction = 2 : i64} : (tensor<f32>, tensor<3x4xf32, #rows4>, tensor<3x4xf32, #rows4>) -> tensor<3x4xf32, #rows4>
  %dyt = aten.permute %dy {dims = array<i64: 1, 0>} : (tensor<3x4xf32, #rows4>) -> tensor<4x3xf32>
  %g = aten.mm %dyt, %x : (tensor<4x3xf32>, tensor<3x8xf32, #rows8>) -> tensor<4x8xf32>
  %packed = spmd.pack %g unit @unit0 ["w"] : (tensor<4x8xf32>) -> tensor<256xf32>
  %mine = spmd.reduce_scatter sum %packed on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  %w1, %m1 = aten._fused_sgd %w, %mine, %m, %lr
      {weight_decay = array<f64: 0.1>, momentum = array<f64: 0.9>, dampening = array<f64: 0.0>, nesterov = false,
       maximize = false, is_first_step = false, groups = array<i64: 0>, unit = @unit0,
       operandSegmentSizes = array<i32: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1>}
      : (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<f64>) -> (tensor<128xf32>, tensor<128xf32>)
  return %loss, %w1, %m1 : tensor<f32>, tensor<128xf32>, tensor<128xf32>
}

//--- scheduled.mlir
func.func @step(%w: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "param">},
                %m: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "momentum_buffer", init = 0.0>},
                %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.01>},
                %x: tensor<3x8xf32, #rows8> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %t: tensor<3x4xf32, #rows4> {spmd.arg = #spmd.batch<"t", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">},
        tensor<128xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>},
        tensor<128xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "momentum_buffer", init = 0.0>>}) {
  %h0 = spmd.all_gather_start %w on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
  %flat = spmd.wait %h0 : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
  %full = spmd.unpack %flat unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x8xf32>
  %wt = aten.permute %full {dims = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %y = aten.mm %x, %wt : (tensor<3x8xf32, #rows8>, tensor<8x4xf32>) -> tensor<3x4xf32, #rows4>
  spmd.release %flat : tensor<256xf32>
  %unreduced = aten.mse_loss %y, %t {reduction = 2 : i64} : (tensor<3x4xf32, #rows4>, tensor<3x4xf32, #rows4>) -> tensor<f32>
  %h1 = spmd.all_reduce_start [sum] %unreduced on @mesh ["data"] stream scalar : (tensor<f32>) -> !spmd.handle<tensor<f32>>
  %one = aten.full {size = array<i64>, fill_value = 1.0 : f64} : () -> tensor<f32>
  %dy = aten.mse_loss_backward %one, %y, %t {reduction = 2 : i64} : (tensor<f32>, tensor<3x4xf32, #rows4>, tensor<3x4xf32, #rows4>) -> tensor<3x4xf32, #rows4>
  %dyt = aten.permute %dy {dims = array<i64: 1, 0>} : (tensor<3x4xf32, #rows4>) -> tensor<4x3xf32>
  %g = aten.mm %dyt, %x : (tensor<4x3xf32>, tensor<3x8xf32, #rows8>) -> tensor<4x8xf32>
  %packed = spmd.pack %g unit @unit0 ["w"] : (tensor<4x8xf32>) -> tensor<256xf32>
  %h2 = spmd.reduce_scatter_start sum %packed on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 stream reduce : tensor<256xf32> -> !spmd.handle<tensor<128xf32>>
  %mine = spmd.wait %h2 : !spmd.handle<tensor<128xf32>> -> tensor<128xf32>
  %loss = spmd.wait %h1 : !spmd.handle<tensor<f32>> -> tensor<f32>
  %w1, %m1 = aten._fused_sgd %w, %mine, %m, %lr
      {weight_decay = array<f64: 0.1>, momentum = array<f64: 0.9>, dampening = array<f64: 0.0>, nesterov = false,
       maximize = false, is_first_step = false, groups = array<i64: 0>, unit = @unit0,
       operandSegmentSizes = array<i32: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1>}
      : (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<f64>) -> (tensor<128xf32>, tensor<128xf32>)
  return %loss, %w1, %m1 : tensor<f32>, tensor<128xf32>, tensor<128xf32>
}
