// RUN: spmd-opt %s --spmd-dedup-collectives | FileCheck %s

// One gather per unit and segment, one unpack per buffer; a unit that stays
// gathered has one for both segments. A reduction with another kind is another one.

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
  #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
spmd.shard_unit @unit1 modules ["a"] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>]>

// CHECK: func.func @step(%[[S0:.*]]: tensor<128xf32>, %[[S1:.*]]: tensor<128xf32>, %[[X:.*]]: tensor<f32>)
// CHECK-NEXT: %[[G0:.*]] = spmd.all_gather %[[S0]] {{.*}} {spmd.segment = 0 : i64}
// CHECK-NEXT: %[[U0:.*]]:2 = spmd.unpack %[[G0]] unit @unit0 ["w", "b"] {spmd.segment = 0 : i64}
// CHECK-NEXT: %[[G1:.*]] = spmd.all_gather %[[S0]] {{.*}} {spmd.segment = 1 : i64}
// CHECK-NEXT: %[[U1:.*]] = spmd.unpack %[[G1]] unit @unit0 ["w"] {spmd.segment = 1 : i64}
// CHECK-NEXT: %[[G2:.*]] = spmd.all_gather %[[S1]]
// CHECK-NEXT: %[[V0:.*]] = spmd.unpack %[[G2]] unit @unit1 ["a.w"] {spmd.segment = 0 : i64}
// CHECK-NEXT: %[[V1:.*]] = spmd.unpack %[[G2]] unit @unit1 ["a.w"] {spmd.segment = 1 : i64}
// CHECK-NEXT: %[[R0:.*]] = spmd.all_reduce [sum] %[[X]]
// CHECK-NEXT: %[[R1:.*]] = spmd.all_reduce [max] %[[X]]
// CHECK-NEXT: return %[[U0]]#1, %[[U0]]#0, %[[U1]], %[[V0]], %[[V1]], %[[R0]], %[[R0]], %[[R1]]
func.func @step(%s0: tensor<128xf32>, %s1: tensor<128xf32>, %x: tensor<f32>) -> (tensor<4xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = spmd.all_gather %s0 on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xf32> -> tensor<256xf32>
  %b = spmd.unpack %0 unit @unit0 ["b"] {spmd.segment = 0 : i64} : tensor<256xf32> -> tensor<4xf32>
  %1 = spmd.all_gather %s0 on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xf32> -> tensor<256xf32>
  %w = spmd.unpack %1 unit @unit0 ["w"] {spmd.segment = 0 : i64} : tensor<256xf32> -> tensor<4x16xf32>
  %2 = spmd.all_gather %s0 on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 1 : i64} : tensor<128xf32> -> tensor<256xf32>
  %w1 = spmd.unpack %2 unit @unit0 ["w"] {spmd.segment = 1 : i64} : tensor<256xf32> -> tensor<4x16xf32>
  %3 = spmd.all_gather %s1 on @mesh ["data"] unit @unit1 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xf32> -> tensor<256xf32>
  %a0 = spmd.unpack %3 unit @unit1 ["a.w"] {spmd.segment = 0 : i64} : tensor<256xf32> -> tensor<4xf32>
  %4 = spmd.all_gather %s1 on @mesh ["data"] unit @unit1 dim 0 pre 1 total 256 {spmd.segment = 1 : i64} : tensor<128xf32> -> tensor<256xf32>
  %a1 = spmd.unpack %4 unit @unit1 ["a.w"] {spmd.segment = 1 : i64} : tensor<256xf32> -> tensor<4xf32>
  %r0 = spmd.all_reduce [sum] %x on @mesh ["data"] {spmd.segment = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %r1 = spmd.all_reduce [sum] %x on @mesh ["data"] {spmd.segment = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %r2 = spmd.all_reduce [max] %x on @mesh ["data"] {spmd.segment = 0 : i64} : (tensor<f32>) -> tensor<f32>
  return %b, %w, %w1, %a0, %a1, %r0, %r1, %r2 : tensor<4xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>
}
