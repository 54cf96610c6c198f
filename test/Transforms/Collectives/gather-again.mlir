// RUN: spmd-opt %s --spmd-start-collectives --spmd-verify-schedule | FileCheck %s

// The last unit of the forward pass is the first of the backward pass: it is not gathered again before its buffer is
// free, or there would be two of them.

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>

// CHECK: %[[H0:.*]] = spmd.all_gather_start
// CHECK: %[[G0:.*]] = spmd.wait %[[H0]]
// CHECK-NOT: spmd.all_gather_start
// CHECK: aten.mm
// CHECK-NEXT: spmd.release %[[G0]]
// CHECK-NEXT: spmd.all_gather_start
func.func @step(%s: tensor<128xf32>, %x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = spmd.all_gather %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xf32> -> tensor<256xf32>
  %w0 = spmd.unpack %0 unit @unit0 ["w"] {spmd.segment = 0 : i64} : tensor<256xf32> -> tensor<4x4xf32>
  %y0 = aten.mm %x, %w0 {spmd.segment = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y1 = aten.exp %y0 {spmd.segment = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = spmd.all_gather %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 1 : i64} : tensor<128xf32> -> tensor<256xf32>
  %w1 = spmd.unpack %1 unit @unit0 ["w"] {spmd.segment = 1 : i64} : tensor<256xf32> -> tensor<4x4xf32>
  %y2 = aten.mm %y1, %w1 {spmd.segment = 1 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y2 : tensor<2x4xf32>
}
