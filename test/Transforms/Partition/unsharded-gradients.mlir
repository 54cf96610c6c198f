// RUN: spmd-opt %s --spmd-partition=accumulate=unsharded --spmd-verify-partition -split-input-file | FileCheck %s
// RUN: spmd-opt %s --spmd-partition=accumulate=unsharded --spmd-strip-sharding -split-input-file | FileCheck %s --check-prefix=STRIPPED
// RUN: spmd-opt %s --spmd-partition="accumulate=unsharded view=local gradient-divide-factor=5" --spmd-verify-partition -split-input-file | FileCheck %s --check-prefix=LOCAL
// RUN: not spmd-opt %s --spmd-partition=accumulate=whole -split-input-file 2>&1 | FileCheck %s --check-prefix=WORD

// WORD: error: accumulate 'whole' is not one of: sharded, scattered, unsharded

// A step that adds to a gradient reduces nothing.
// CHECK-LABEL: module @adds
module @adds attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
// CHECK: func.func @step(
// CHECK-SAME: %[[G0:[a-z0-9]+]]: tensor<4x16xf32, #spmd.sharding<global = [4, 16], [partial<sum>]>> {spmd.arg = #spmd.state<"grad", of = "w", init = 0.000000e+00 : f64>}
// LOCAL-LABEL: module @adds
// LOCAL: func.func @step(%{{[^%]*}}%[[G0:[a-z0-9]+]]: tensor<4x16xf32, #spmd.sharding<global = [4, 16], [varying]>> {spmd.arg = #spmd.state<"grad"
// A sum is of what ranks have of the gradient, which is divided by 5.
// LOCAL: %[[OWN:.*]] = aten.mul.Scalar %[[G0]] {other = 5.0
// LOCAL: %[[SUM:.*]] = aten.add.Tensor %[[OWN]]
// LOCAL: %[[SUMMAND:.*]] = aten.div.Scalar %[[SUM]] {other = 5.0
// LOCAL: return %[[SUMMAND]] : tensor<4x16xf32, #spmd.sharding<global = [4, 16], [varying]>>
// STRIPPED-LABEL: module @adds
// STRIPPED: tensor<4x16xf32> {spmd.arg = #spmd.state<"grad", {{[^}]*}}>, spmd.layout = #spmd.sharding<global = [4, 16], [partial<sum>]>}
// STRIPPED-SAME: {spmd.layout = #spmd.sharding<global = [4, 16], [partial<sum>]>, spmd.result = #spmd.update<#spmd.state<"grad"
func.func @step(
    %w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
    %g0: tensor<4x16xf32> {spmd.arg = #spmd.state<"grad", of = "w", init = 0.0>},
    %x: tensor<8x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
    %d: tensor<8x4xf32> {spmd.arg = #spmd.batch<"d", dim = 0>},
    %scale: tensor<f32> {spmd.arg = #spmd.buffer<"scale">})
    -> (tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w", init = 0.0>>}) {
  %dt = aten.permute %d {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: %[[G:.*]] = aten.mm {{.*}} -> tensor<4x16xf32, #spmd.sharding<global = [4, 16], [partial<sum>]>>
  // CHECK-NOT: reduce
  // CHECK: %[[H:.*]] = aten.mul.Tensor %[[G]]
  // CHECK: %[[SUM:.*]] = aten.add.Tensor %[[G0]], %[[H]] {{.*}} -> tensor<4x16xf32, #spmd.sharding<global = [4, 16], [partial<sum>]>>
  // CHECK-NEXT: return %[[SUM]]
  %g = aten.mm %dt, %x {spmd.segment = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %h = aten.mul.Tensor %g, %scale {spmd.segment = 1 : i64} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
  %sum = aten.add.Tensor %g0, %h {spmd.segment = 1 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %sum : tensor<4x16xf32>
}
}

// -----

// The step that updates reduces the sum once, and what it leaves for the next one, which all ranks have alike, is the
// first rank's.
// CHECK-LABEL: module @updates
// LOCAL-LABEL: module @updates
// LOCAL: aten.mul.Scalar %{{.*}} {other = 5.0
// LOCAL: spmd.reduce_scatter sum
// LOCAL: aten.div.Scalar %{{.*}} {other = 5.0
// LOCAL-NOT: reduce
module @updates attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
// CHECK: func.func @step(%{{[^%]*}}%[[G0:[a-z0-9]+]]: tensor<4x16xf32
func.func @step(
    %w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
    %g0: tensor<4x16xf32> {spmd.arg = #spmd.state<"grad", of = "w", init = 0.0>},
    %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0>},
    %x: tensor<8x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
    %d: tensor<8x4xf32> {spmd.arg = #spmd.batch<"d", dim = 0>})
    -> (tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
        tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.state<"grad", of = "w", init = 0.0>>}) {
  %dt = aten.permute %d {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: %[[G:.*]] = aten.mm
  // CHECK-NEXT: %[[SUM:.*]] = aten.add.Tensor %[[G0]], %[[G]] {{.*}} -> tensor<4x16xf32, #spmd.sharding<global = [4, 16], [partial<sum>]>>
  // CHECK-NEXT: %[[P:.*]] = spmd.pack %[[SUM]] unit @unit0 ["w"]
  // CHECK-NEXT: %[[RS:.*]] = spmd.reduce_scatter sum %[[P]]
  // CHECK-NOT: reduce_scatter
  // CHECK: %[[NUMBERS:.*]] = aten.arange.start_step
  // CHECK: %[[OWN:.*]] = spmd.slice %[[NUMBERS]] on @mesh ["data"] dim 0 pre 1 chunk 1
  // CHECK: %[[FIRST:.*]] = aten.eq.Scalar %[[OWN]] {other = 0
  // CHECK: %[[ONE:.*]] = aten._to_copy %[[FIRST]]
  // CHECK: %[[SCALE:.*]] = aten.sum.dim_IntList %[[ONE]] {{.*}} -> tensor<f32, #spmd.sharding<global = [], [partial<sum>]>>
  // CHECK: %[[LEFT:.*]] = aten.mul.Tensor %{{.*}}, %[[SCALE]] {{.*}} -> tensor<4x16xf32, #spmd.sharding<global = [4, 16], [partial<sum>]>>
  // CHECK: return %[[LEFT]], %{{.*}} :
  %g = aten.mm %dt, %x {spmd.segment = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %sum = aten.add.Tensor %g0, %g {spmd.segment = 1 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %w1 = aten._fused_sgd %w, %sum, %lr {dampening = array<f64: 0.0>, groups = array<i64: 0>, momentum = array<f64: 0.0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>, weight_decay = array<f64: 0.0>, spmd.segment = 2 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<f64>) -> tensor<4x16xf32>
  %zero = aten.full {fill_value = 0.0 : f64, size = array<i64: 4, 16>, spmd.segment = 2 : i64} : () -> tensor<4x16xf32>
  return %w1, %zero : tensor<4x16xf32>, tensor<4x16xf32>
}
}
