// RUN: spmd-opt %s --spmd-partition=accumulate=scattered --spmd-verify-partition -split-input-file | FileCheck %s
// RUN: spmd-opt %s --spmd-partition=accumulate=scattered --spmd-strip-sharding -split-input-file | FileCheck %s --check-prefix=STRIPPED
// RUN: spmd-opt %s --spmd-partition="accumulate=scattered view=local gradient-divide-factor=5" --spmd-verify-partition -split-input-file | FileCheck %s --check-prefix=LOCAL

// A step that adds to a gradient reduces its own along the shard axis, and nothing across.
// CHECK-LABEL: module @adds
// LOCAL-LABEL: module @adds
// STRIPPED-LABEL: module @adds
module @adds attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
// CHECK: func.func @step({{.*}}%[[G0:[a-z0-9]+]]: tensor<128xf32, #spmd.sharding<global = [256], [partial<sum>, owned]>> {spmd.arg = #spmd.shard<@unit0, "grad"
// STRIPPED: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "grad", {{[^}]*}}>, spmd.layout = #spmd.sharding<global = [256], [partial<sum>, owned]>}
// STRIPPED-SAME: {spmd.layout = #spmd.sharding<global = [256], [partial<sum>, owned]>, spmd.result = #spmd.update<#spmd.shard<@unit0, "grad"
func.func @step(
    %w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
    %g0: tensor<4x16xf32> {spmd.arg = #spmd.state<"grad", of = "w", init = 0.0>},
    %x: tensor<8x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
    %d: tensor<8x4xf32> {spmd.arg = #spmd.batch<"d", dim = 0>})
    -> (tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w", init = 0.0>>}) {
  %dt = aten.permute %d {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: %[[RS:.*]] = spmd.reduce_scatter sum {{.*}} on @mesh ["shard"] unit @unit0
  // CHECK-NEXT: %[[SUM:.*]] = aten.add.Tensor %[[G0]], %[[RS]] {{.*}} -> tensor<128xf32, #spmd.sharding<global = [256], [partial<sum>, owned]>>
  // CHECK-NEXT: return %[[SUM]]
  // LOCAL: %[[RS:.*]] = spmd.reduce_scatter sum
  // LOCAL-NEXT: %[[OWN:.*]] = aten.div.Scalar %[[RS]] {other = 5.0
  // LOCAL-NEXT: %[[SUM:.*]] = aten.add.Tensor %{{.*}}, %[[OWN]]
  // LOCAL-NEXT: return %[[SUM]]
  %g = aten.mm %dt, %x {spmd.segment = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %sum = aten.add.Tensor %g0, %g {spmd.segment = 1 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %sum : tensor<4x16xf32>
}
}

// -----

// The step that updates adds up across what has been added up, once, and leaves zeros, which are a sum of zeros.
// CHECK-LABEL: module @updates
module @updates attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
func.func @step(
    %w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
    %g0: tensor<4x16xf32> {spmd.arg = #spmd.state<"grad", of = "w", init = 0.0>},
    %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0>},
    %x: tensor<8x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
    %d: tensor<8x4xf32> {spmd.arg = #spmd.batch<"d", dim = 0>})
    -> (tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
        tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w", init = 0.0>>}) {
  %dt = aten.permute %d {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: %[[RS:.*]] = spmd.reduce_scatter sum {{.*}} on @mesh ["shard"] unit @unit0
  // CHECK: %[[ZEROS:.*]] = spmd.slice %{{.*}} -> tensor<128xf32, #spmd.sharding<global = [256], [partial<sum>, owned]>>
  // CHECK: %[[SUM:.*]] = aten.add.Tensor %{{.*}}, %[[RS]]
  // CHECK-NEXT: %[[ALL:.*]] = spmd.all_reduce [sum] %[[SUM]] on @mesh ["replicate"] unit @unit0
  // CHECK-NOT: reduce
  // CHECK: aten._fused_sgd %{{[a-z0-9]+}}, %[[ALL]],
  // CHECK: return %{{[a-z_0-9]+}}, %[[ZEROS]] :
  %g = aten.mm %dt, %x {spmd.segment = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %sum = aten.add.Tensor %g0, %g {spmd.segment = 1 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %w1 = aten._fused_sgd %w, %sum, %lr {dampening = array<f64: 0.0>, groups = array<i64: 0>, momentum = array<f64: 0.0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>, spmd.segment = 2 : i64, weight_decay = array<f64: 0.0>} : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<f64>) -> tensor<4x16xf32>
  %zero = aten.full {fill_value = 0.0 : f64, size = array<i64: 4, 16>, spmd.segment = 2 : i64} : () -> tensor<4x16xf32>
  return %w1, %zero : tensor<4x16xf32>, tensor<4x16xf32>
}
}

// -----

// Of two microbatches the gradients are added up before they are added to what is there, and reduced together.
// CHECK-LABEL: module @microbatches
module @microbatches attributes {spmd.phases = ["forward", "backward", "backward"]} {
spmd.mesh @mesh ["replicate" = 2, "shard" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["shard"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
func.func @step(
    %w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
    %g0: tensor<4x16xf32> {spmd.arg = #spmd.state<"grad", of = "w", init = 0.0>},
    %x: tensor<8x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
    %d: tensor<8x4xf32> {spmd.arg = #spmd.batch<"d", dim = 0>})
    -> (tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w", init = 0.0>>}) {
  // CHECK: %[[G1:.*]] = aten.mm
  // CHECK: %[[G2:.*]] = aten.mm
  // CHECK: %[[BOTH:.*]] = aten.add.Tensor %[[G1]], %[[G2]]
  // CHECK: spmd.pack %[[BOTH]]
  // CHECK: spmd.reduce_scatter
  // CHECK-NOT: reduce
  // CHECK: return
  %dt = aten.permute %d {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %g = aten.mm %dt, %x {spmd.segment = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %s = aten.add.Tensor %g0, %g {spmd.segment = 1 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = aten.neg %x {spmd.segment = 2 : i64} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %h = aten.mm %dt, %y {spmd.segment = 2 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %t = aten.add.Tensor %s, %h {spmd.segment = 2 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %t : tensor<4x16xf32>
}
}
