// The reduction of @e, the last, starts before the weight gradients of @b, which it does not need, and before their
// reduction. What it needs stays in front of it, and nothing before the reduction of @c moves.

// RUN: spmd-opt %s --spmd-advance-last-reduction | FileCheck %s
// RUN: spmd-opt %s --spmd-advance-last-reduction=enable=false | FileCheck %s --check-prefix=SAME

// CHECK: %[[EARLY:.*]] = aten.mul.Tensor %arg0, %arg1
// CHECK-NEXT: spmd.reduce_scatter sum {{.*}} unit @c
// CHECK-NEXT: %[[D:.*]] = aten.neg
// CHECK-NEXT: spmd.reduce_scatter sum %[[D]] {{.*}} unit @e
// CHECK-NEXT: %[[W:.*]] = aten.mul.Tensor
// CHECK-NEXT: %[[R:.*]] = spmd.reduce_scatter sum %[[W]] {{.*}} unit @b
// CHECK-NEXT: spmd.all_reduce [sum] %[[R]]

// SAME: unit @c
// SAME: unit @b
// SAME: spmd.all_reduce
// SAME: aten.neg
// SAME: unit @e

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @c modules ["c"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"c.w", shape = [256], group = 0, offset = 0, numel = 256, trainable = true>]>
spmd.shard_unit @b modules ["b"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"b.w", shape = [256], group = 0, offset = 0, numel = 256, trainable = true>]>
spmd.shard_unit @e modules ["e"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"e.w", shape = [256], group = 0, offset = 0, numel = 256, trainable = true>]>

func.func @step(%g: tensor<256xf32>, %x: tensor<256xf32>) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %wc = aten.mul.Tensor %g, %x : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %c = spmd.reduce_scatter sum %wc on @mesh ["data"] unit @c dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  %wb = aten.mul.Tensor %g, %wc : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %b = spmd.reduce_scatter sum %wb on @mesh ["data"] unit @b dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  %across = spmd.all_reduce [sum] %b on @mesh ["data"] : (tensor<128xf32>) -> tensor<128xf32>
  %d = aten.neg %g : (tensor<256xf32>) -> tensor<256xf32>
  %e = spmd.reduce_scatter sum %d on @mesh ["data"] unit @e dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  return %c, %across, %e : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
