// The captured step is one rank's: values computed from its rows are varying, gradients are averaged, nothing else
// communicates, and the norm of clipping is that of the averaged gradients.

// RUN: spmd-opt %s --spmd-partition=view=local --spmd-dedup-collectives --spmd-verify-partition | FileCheck %s
// RUN: spmd-opt %s --spmd-partition=view=local --spmd-dedup-collectives --spmd-strip-sharding | FileCheck %s --check-prefix=STRIP
// RUN: sed 's/fully_shard layout/replicate layout/' %s | spmd-opt --spmd-partition=view=local --spmd-verify-partition | FileCheck %s --check-prefix=WHOLE

// Gradients that every rank keeps whole are averaged, too.
// WHOLE: %[[SUM:.*]] = spmd.all_reduce [sum]
// WHOLE: %[[MEAN:.*]] = aten.div.Scalar %[[SUM]] {other = 2 : i64
// WHOLE: spmd.segment_norm norm2 %[[MEAN]]

module @clipped attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>

// The runtime cuts one global batch of both ranks, and gets each rank's own loss.
// STRIP: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.layout = #spmd.sharding<global = [16, 4], [shard<0, 1, 8>]>}
// STRIP-SAME: tensor<8x16xf32> {spmd.arg = #spmd.batch<"t", dim = none>, spmd.layout = #spmd.sharding<global = [8, 16], [replicated]>}
// STRIP-SAME: tensor<f32> {spmd.layout = #spmd.sharding<global = [], [varying]>, spmd.result = #spmd.loss<"">}

// CHECK: func.func @step(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x4xf32, #spmd.sharding<global = [8, 4], [varying]>> {spmd.arg = #spmd.batch<"x", dim = 0>}
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<8x16xf32, #spmd.sharding<global = [8, 16], [replicated]>> {spmd.arg = #spmd.batch<"t", dim = none>}
// CHECK-SAME: -> (tensor<f32, #spmd.sharding<global = [], [varying]>> {spmd.result = #spmd.loss<"">}
func.func @step(%w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %t: tensor<8x16xf32> {spmd.arg = #spmd.batch<"t", dim = none>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">},
        tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  // CHECK-COUNT-1: spmd.all_gather
  // CHECK-NOT: spmd.all_reduce
  // CHECK: %[[G:.*]] = aten.mm {{.*}} -> tensor<4x16xf32, #spmd.sharding<global = [4, 16], [varying]>>
  // CHECK: %[[P:.*]] = spmd.pack %[[G]] unit @unit0 ["w"]
  // CHECK: %[[S:.*]] = spmd.reduce_scatter sum %[[P]]
  // CHECK: %[[MEAN:.*]] = aten.div.Scalar %[[S]] {other = 2 : i64
  // CHECK: %[[N:.*]] = spmd.segment_norm norm2 %[[MEAN]]
  // CHECK: spmd.all_reduce [norm2]
  // CHECK: %[[SCALED:.*]] = aten.mul.Tensor %[[MEAN]]
  // CHECK: aten._foreach_add.List %{{.*}}, %[[SCALED]] {alpha = -1.000000e-01
  // CHECK-NOT: spmd.all_reduce
  %y = aten.mm %x, %w {spmd.segment = 0} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %yt = aten.mul.Tensor %y, %t {spmd.segment = 0} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %loss = aten.sum.dim_IntList %yt {dim = array<i64: 0, 1>, spmd.segment = 0} : (tensor<8x16xf32>) -> tensor<f32>
  %xt = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 1} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %dw = aten.mm %xt, %t {spmd.segment = 1} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %norm = aten.linalg_vector_norm %dw {ord = 2.0 : f64, dim = array<i64: 0, 1>, keepdim = false, spmd.segment = 2} : (tensor<4x16xf32>) -> tensor<f32>
  %scaled = aten.mul.Tensor %dw, %norm {spmd.segment = 2} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
  %w1 = aten._foreach_add.List %w, %scaled {alpha = -0.1, spmd.segment = 2}
      : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %loss, %w1 : tensor<f32>, tensor<4x16xf32>
}
}
