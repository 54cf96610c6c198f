// RUN: spmd-opt %s --spmd-partition --spmd-verify-partition -split-input-file | FileCheck %s

// A linear layer with momentum on 2 ranks, as in the pass description.

// CHECK-LABEL: module @linear
module @linear {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
// CHECK: func.func @step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<128xf32, #spmd.sharding<global = [256], [owned]>> {spmd.arg = #spmd.shard<@unit0, "param">}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<128xf32, #spmd.sharding<global = [256], [owned]>> {spmd.arg = #spmd.shard<@unit0, "momentum_buffer", init = 0.000000e+00 : f64>}
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f64, #spmd.sharding<global = [], [replicated]>>
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>> {spmd.arg = #spmd.batch<"x", dim = 0>}
// CHECK-SAME: -> (tensor<f32, {{.*}}> {spmd.result = #spmd.loss<"">}, {{.*}} {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>}, {{.*}} {spmd.result = #spmd.update<#spmd.shard<@unit0, "momentum_buffer"
func.func @step(
    %w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
    %m: tensor<4x16xf32> {spmd.arg = #spmd.state<"momentum_buffer", of = "w", init = 0.0>},
    %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0>},
    %x: tensor<8x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
    %t: tensor<8x4xf32> {spmd.arg = #spmd.batch<"t", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">},
        tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
        tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.state<"momentum_buffer", of = "w", init = 0.0>>}) {
  // CHECK: %[[FLAT:.*]] = spmd.all_gather %[[W]] on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256
  // CHECK: %[[U:.*]] = spmd.unpack %[[FLAT]] unit @unit0 ["w"]
  // CHECK: %[[WT:.*]] = aten.permute %[[U]]
  // CHECK: %[[Y:.*]] = aten.mm %[[X]], %[[WT]] {{.*}} -> tensor<4x4xf32, #spmd.sharding<global = [8, 4], [shard<0, 1, 4>]>>
  %wt = aten.permute %w {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %y = aten.mm %x, %wt {spmd.segment = 0 : i64} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  // CHECK: %[[S:.*]] = aten.mse_loss {{.*}} -> tensor<f32, #spmd.sharding<global = [], [partial<sum>]>>
  // CHECK: %[[R:.*]] = spmd.all_reduce [sum] %[[S]]
  // The divisor is the global count.
  // CHECK: %[[L:.*]] = aten.div.Scalar %[[R]] {other = 32 : i64
  %s = aten.mse_loss %y, %t {reduction = 2 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
  %l = aten.div.Scalar %s {other = 32 : i64, spmd.segment = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %one = aten.full {fill_value = 1.0 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32>
  %d = aten.mse_loss_backward %one, %y, %t {reduction = 2 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %ds = aten.div.Scalar %d {other = 32 : i64, spmd.segment = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %dt = aten.permute %ds {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: %[[G:.*]] = aten.mm {{.*}} -> tensor<4x16xf32, #spmd.sharding<global = [4, 16], [partial<sum>]>>
  // CHECK-NEXT: %[[P:.*]] = spmd.pack %[[G]] unit @unit0 ["w"] {spmd.segment = 1 : i64}
  // CHECK-NEXT: %[[RS:.*]] = spmd.reduce_scatter sum %[[P]] on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 {spmd.segment = 1 : i64} : {{.*}} -> tensor<128xf32, #spmd.sharding<global = [256], [owned]>>
  %g = aten.mm %dt, %x {spmd.segment = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // CHECK: %[[W1:.*]], %[[M1:.*]] = aten._fused_sgd %[[W]], %[[RS]], %[[M]], %[[LR]] {{.*}}groups = array<i64: 0>{{.*}}unit = @unit0
  // CHECK: return %[[L]], %[[W1]], %[[M1]]
  %w1, %m1 = aten._fused_sgd %w, %g, %m, %lr {dampening = array<f64: 0.0>, groups = array<i64: 0>, momentum = array<f64: 0.9>, operandSegmentSizes = array<i32: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1>, weight_decay = array<f64: 0.0>, spmd.segment = 2 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<f64>) -> (tensor<4x16xf32>, tensor<4x16xf32>)
  return %l, %w1, %m1 : tensor<f32>, tensor<4x16xf32>, tensor<4x16xf32>
}
}

// -----

// 7 rows on 2 ranks: rows that are padding get the neutral element before they are
// added up; a NaN there does no harm.
// CHECK-LABEL: module @uneven
module @uneven {
spmd.mesh @mesh ["data" = 2]
// CHECK: func.func @step(%[[X:.*]]: tensor<4x3xf32, #spmd.sharding<global = [7, 3], [shard<0, 1, 4>]>>
func.func @step(%x: tensor<7x3xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> (tensor<3xf32> {spmd.result = #spmd.output<"0">}, tensor<3xf32> {spmd.result = #spmd.output<"1">}, tensor<7xf32> {spmd.result = #spmd.output<"2">}) {
  // CHECK: %[[M0:.*]] = spmd.mask %[[X]] on @mesh ["data"] dim 0 pre 1 chunk 4 total 7 fill 0.0
  // CHECK: %[[S:.*]] = aten.sum.dim_IntList %[[M0]] {{.*}} -> tensor<3xf32, #spmd.sharding<global = [3], [partial<sum>]>>
  %s = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<7x3xf32>) -> tensor<3xf32>
  // CHECK: %[[M1:.*]] = spmd.mask %[[X]] {{.*}} fill 0xFFF0000000000000
  // CHECK: %[[A:.*]] = aten.amax %[[M1]] {{.*}} -> tensor<3xf32, #spmd.sharding<global = [3], [partial<max>]>>
  %a = aten.amax %x {dim = array<i64: 0>} : (tensor<7x3xf32>) -> tensor<3xf32>
  // No contraction of rows, no mask; a sharded output is gathered.
  // CHECK: %[[R:.*]] = aten.sum.dim_IntList %[[X]] {{.*}} -> tensor<4xf32, #spmd.sharding<global = [7], [shard<0, 1, 4>]>>
  %r = aten.sum.dim_IntList %x {dim = array<i64: 1>} : (tensor<7x3xf32>) -> tensor<7xf32>
  // CHECK: spmd.all_reduce [sum] %[[S]]
  // CHECK: spmd.all_reduce [max] %[[A]]
  // CHECK: spmd.all_gather %[[R]] on @mesh ["data"] dim 0 pre 1 total 7
  return %s, %a, %r : tensor<3xf32>, tensor<3xf32>, tensor<7xf32>
}
}

// -----

// What only moves elements passes largest values on, whichever op it is: they are reduced once they are where they go.
// CHECK-LABEL: module @moves
module @moves {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<8x3xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> (tensor<2xf32> {spmd.result = #spmd.output<"0">}) {
  %m = aten.amax %x {dim = array<i64: 0>} : (tensor<8x3xf32>) -> tensor<3xf32>
  // CHECK: aten.flip {{.*}} -> tensor<3xf32, #spmd.sharding<global = [3], [partial<max>]>>
  %f = aten.flip %m {dims = array<i64: 0>} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: %[[P:.*]]:2 = aten.split_with_sizes
  // CHECK: spmd.all_reduce [max] %[[P]]#0
  // CHECK-NOT: all_reduce
  %p:2 = aten.split_with_sizes %f {split_sizes = array<i64: 2, 1>, dim = 0 : i64} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<1xf32>)
  return %p#0 : tensor<2xf32>
}
}

// -----

// The batch dimension keeps its shard when a view merges it with the dimension in
// front of it: the rank's place is inside the dimension.
// CHECK-LABEL: module @views
module @views {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x8x3xf32> {spmd.arg = #spmd.batch<"x", dim = 1>}) -> (tensor<f32> {spmd.result = #spmd.output<"0">}) {
  // CHECK: aten.view %{{.*}} {size = array<i64: 16, 3>} : {{.*}} -> tensor<16x3xf32, #spmd.sharding<global = [32, 3], [shard<0, 4, 4>]>>
  %0 = aten.view %x {size = array<i64: 32, 3>} : (tensor<4x8x3xf32>) -> tensor<32x3xf32>
  // CHECK: aten.view %{{.*}} {size = array<i64: 2, 2, 4, 3>} : {{.*}} -> tensor<2x2x4x3xf32, #spmd.sharding<global = [2, 2, 8, 3], [shard<2, 1, 4>]>>
  %1 = aten.view %0 {size = array<i64: 2, 2, 8, 3>} : (tensor<32x3xf32>) -> tensor<2x2x8x3xf32>
  // CHECK: aten.unsqueeze %{{.*}} -> tensor<2x2x1x4x3xf32, #spmd.sharding<global = [2, 2, 1, 8, 3], [shard<3, 1, 4>]>>
  %2 = aten.unsqueeze %1 {dim = 2 : i64} : (tensor<2x2x8x3xf32>) -> tensor<2x2x1x8x3xf32>
  %3 = aten.sum.dim_IntList %2 {dim = array<i64: 0, 1, 2, 3, 4>} : (tensor<2x2x1x8x3xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
}

// -----

// A constant of which only a shard is used is made as a shard, through expand.
// CHECK-LABEL: module @localize
module @localize {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<8x3xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}, %b: tensor<3xf32> {spmd.arg = #spmd.buffer<"b">}) -> (tensor<f32> {spmd.result = #spmd.output<"0">}) {
  // CHECK-NOT: spmd.slice
  // CHECK: aten.full {{.*}}size = array<i64: 4, 1>{{.*}} -> tensor<4x1xf32, #spmd.sharding<global = [8, 1], [shard<0, 1, 4>]>>
  %0 = aten.full {fill_value = 2.0 : f64, size = array<i64: 8, 1>} : () -> tensor<8x1xf32>
  // CHECK: aten.mul.Tensor {{.*}} -> tensor<4x3xf32, #spmd.sharding<global = [8, 3], [shard<0, 1, 4>]>>
  %1 = aten.mul.Tensor %0, %b : (tensor<8x1xf32>, tensor<3xf32>) -> tensor<8x3xf32>
  // CHECK: aten.add.Tensor
  // CHECK-NOT: spmd.slice
  %2 = aten.add.Tensor %x, %1 : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %3 = aten.sum.dim_IntList %2 {dim = array<i64: 0, 1>} : (tensor<8x3xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
}

// -----

// Two partial sums are added before the reduction; a product with one waits for it.
// CHECK-LABEL: module @partials
module @partials {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<8x3xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> (tensor<3xf32> {spmd.result = #spmd.output<"0">}) {
  %0 = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<8x3xf32>) -> tensor<3xf32>
  %1 = aten.neg %0 : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: %[[A:.*]] = aten.add.Tensor {{.*}} -> tensor<3xf32, #spmd.sharding<global = [3], [partial<sum>]>>
  %2 = aten.add.Tensor %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK-NEXT: %[[R:.*]] = spmd.all_reduce [sum] %[[A]]
  // CHECK-NEXT: aten.mul.Tensor %[[R]], %[[R]]
  // CHECK-NOT: all_reduce
  %3 = aten.mul.Tensor %2, %2 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %3 : tensor<3xf32>
}
}
