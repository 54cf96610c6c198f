// The reduction of a unit's gradients is waited for when that of the next unit starts, not only where the optimizer
// reads the result: of three units never more than two have unsharded gradients. One that is needed before is not moved.

// RUN: spmd-opt %s --spmd-start-collectives --spmd-verify-schedule | FileCheck %s

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @a modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [16], group = 0, offset = 0, numel = 16, trainable = true>]>
spmd.shard_unit @b modules ["b"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"b.w", shape = [16], group = 0, offset = 0, numel = 16, trainable = true>]>
spmd.shard_unit @c modules ["c"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"c.w", shape = [16], group = 0, offset = 0, numel = 16, trainable = true>]>

// CHECK-LABEL: func.func @step
// CHECK: %[[HA:.*]] = spmd.reduce_scatter_start sum {{.*}} unit @a
// CHECK-NEXT: spmd.pack
// CHECK-NEXT: %[[HB:.*]] = spmd.reduce_scatter_start sum {{.*}} unit @b
// CHECK-NEXT: %[[A:.*]] = spmd.wait %[[HA]]
// CHECK-NEXT: %[[B:.*]] = spmd.wait %[[HB]]
// CHECK-NEXT: aten.mul.Tensor %[[B]], %[[B]]
// CHECK: %[[HC:.*]] = spmd.reduce_scatter_start sum {{.*}} unit @c
// CHECK-NEXT: aten.add.Tensor %[[A]]
// CHECK-NEXT: aten.add.Tensor %[[B]]
// CHECK-NEXT: %[[C:.*]] = spmd.wait %[[HC]]
// CHECK-NEXT: aten.add.Tensor %[[C]]
func.func @step(%x: tensor<16xf32>, %y: tensor<128xf32>)
    -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %pa = spmd.pack %x unit @a ["a.w"] : (tensor<16xf32>) -> tensor<256xf32>
  %a = spmd.reduce_scatter sum %pa on @mesh ["data"] unit @a dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  %pb = spmd.pack %x unit @b ["b.w"] : (tensor<16xf32>) -> tensor<256xf32>
  %b = spmd.reduce_scatter sum %pb on @mesh ["data"] unit @b dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  %b2 = aten.mul.Tensor %b, %b : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %pc = spmd.pack %x unit @c ["c.w"] : (tensor<16xf32>) -> tensor<256xf32>
  %c = spmd.reduce_scatter sum %pc on @mesh ["data"] unit @c dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  %ua = aten.add.Tensor %a, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %ub = aten.add.Tensor %b, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %uc = aten.add.Tensor %c, %y : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  return %b2, %ua, %ub, %uc : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
