// RUN: spmd-opt %s --spmd-partition=view=local --spmd-verify-partition -split-input-file -verify-diagnostics | FileCheck %s

// A buffer that follows the parameter is each rank's own, and no gradient that ranks average.
// CHECK-LABEL: module @follower
module @follower attributes {spmd.phases = ["forward", "backward", "optimizer", "forward"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %b: tensor<4x4xf32> {spmd.arg = #spmd.buffer<"b">},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
        tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.buffer<"b">>}) {
  // CHECK-COUNT-1: spmd.pack
  // CHECK-NOT: spmd.pack
  %xt = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 1} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %g = aten.mm %xt, %x {spmd.segment = 1} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %w1 = aten._foreach_add.List %w, %g {alpha = -0.1, spmd.segment = 2} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: aten.lerp.Scalar %{{.*}} -> tensor<4x4xf32, {{.*}}[varying]>>
  %b1 = aten.lerp.Scalar %b, %w1 {weight = 0.1, spmd.segment = 3} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %w1, %b1 : tensor<4x4xf32>, tensor<4x4xf32>
}
}

// -----

// A parameter cannot follow it: nothing says what the ranks' buffers should be together.
module attributes {spmd.phases = ["forward", "backward", "optimizer", "forward"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %b: tensor<4x4xf32> {spmd.arg = #spmd.buffer<"b">})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
        tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.buffer<"b">>}) {
  %b1 = aten.mul.Scalar %b {other = 0.5 : f64, spmd.segment = 3} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @+1 {{'aten.lerp.Scalar' of the optimizer reads a value that differs from rank to rank}}
  %w1 = aten.lerp.Scalar %w, %b1 {weight = 0.1, spmd.segment = 3} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %w1, %b1 : tensor<4x4xf32>, tensor<4x4xf32>
}
}

// -----

// Ranks draw for rows of their own; what the optimizer draws is the same on all.
// CHECK-LABEL: module @draws
module @draws attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %seed: tensor<i64> {spmd.arg = #spmd.rng<"seed", init = 3>}, %step: tensor<i64> {spmd.arg = #spmd.rng<"step", init = 0>},
                %x: tensor<4x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  // CHECK: %[[ALL:.*]] = aten.arange.start_step {end = 32
  // CHECK: %[[OWN:.*]] = spmd.slice %[[ALL]] on @mesh ["data"] dim 0 pre 1 chunk 16
  // CHECK-SAME: -> tensor<16xi64, {{.*}}[varying]>>
  // CHECK: %[[INDEX:.*]] = aten.view %[[OWN]] {size = array<i64: 4, 4>
  // CHECK: aten.philox_uniform %{{.*}}, %{{.*}}, %[[INDEX]]
  // CHECK-SAME: -> tensor<4x4xf32, {{.*}}[varying]>>
  %numbers = aten.arange.start_step {start = 0, end = 16, step = 1, spmd.segment = 0} : () -> tensor<16xi64>
  %index = aten.view %numbers {size = array<i64: 4, 4>, spmd.segment = 0} : (tensor<16xi64>) -> tensor<4x4xi64>
  %mask = aten.philox_uniform %seed, %step, %index {stream = 0, spmd.segment = 0} : (tensor<i64>, tensor<i64>, tensor<4x4xi64>) -> tensor<4x4xf32>
  %y = aten.mul.Tensor %x, %mask {spmd.segment = 0} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %yt = aten.permute %y {dims = array<i64: 1, 0>, spmd.segment = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = aten.mm %yt, %y {spmd.segment = 1} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: aten.philox_uniform
  // CHECK-SAME: -> tensor<128xf32, {{.*}}[owned]>>
  %noise = aten.philox_uniform %seed, %step, %index {stream = 1, spmd.segment = 2} : (tensor<i64>, tensor<i64>, tensor<4x4xi64>) -> tensor<4x4xf32>
  %w1 = aten._foreach_add.List %w, %g {alpha = -0.1, spmd.segment = 2} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w2 = aten._foreach_add.List %w1, %noise {alpha = 0.1, spmd.segment = 2} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %w2 : tensor<4x4xf32>
}
}
