// RUN: spmd-opt %s --spmd-cast-before-gather | FileCheck %s

// Each gather whose parameters are all cast to one narrower type is a gather of the cast chunk, with a cast of its own;
// one parameter that is read as it is, two types, or a wider one keep the gather.

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
  #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>

// CHECK: func.func @step(%[[S:.*]]: tensor<128xf32>)
// CHECK-NEXT: %[[C0:.*]] = aten._to_copy %[[S]] {dtype = bf16, spmd.segment = 0 : i64} : (tensor<128xf32>) -> tensor<128xbf16>
// CHECK-NEXT: %[[G0:.*]] = spmd.all_gather %[[C0]] {{.*}} : tensor<128xbf16> -> tensor<256xbf16>
// CHECK-NEXT: %[[U0:.*]]:2 = spmd.unpack %[[G0]] {{.*}} : tensor<256xbf16> -> tensor<4x16xbf16>, tensor<4xbf16>
// CHECK-NEXT: %[[C1:.*]] = aten._to_copy %[[S]] {dtype = f16, spmd.segment = 1 : i64}
// CHECK-NEXT: %[[G1:.*]] = spmd.all_gather %[[C1]] {{.*}} : tensor<128xf16> -> tensor<256xf16>
// CHECK-NEXT: %[[U1:.*]] = spmd.unpack %[[G1]] {{.*}} : tensor<256xf16> -> tensor<4x16xf16>
// CHECK-NEXT: %[[T:.*]] = aten.permute %[[U1]]
// CHECK-NEXT: %[[G2:.*]] = spmd.all_gather %[[S]]
// CHECK-NEXT: %[[U2:.*]]:2 = spmd.unpack %[[G2]]
// CHECK-NEXT: %[[W2:.*]] = aten._to_copy %[[U2]]#0 {dtype = bf16
// CHECK-NEXT: %[[G3:.*]] = spmd.all_gather %[[S]]
// CHECK-NEXT: %[[U3:.*]] = spmd.unpack %[[G3]]
// CHECK-NEXT: aten._to_copy %[[U3]] {dtype = bf16
// CHECK-NEXT: aten._to_copy %[[U3]] {dtype = f16
// CHECK-NEXT: spmd.all_gather %[[S]]
// CHECK-NEXT: %[[U4:.*]] = spmd.unpack
// CHECK-NEXT: aten._to_copy %[[U4]] {dtype = f64
// CHECK-NEXT: return %[[U0]]#0, %[[U0]]#0, %[[U0]]#1, %[[T]], %[[W2]], %[[U2]]#1
func.func @step(%s: tensor<128xf32>) -> (tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<4xbf16>, tensor<16x4xf16>, tensor<4x16xbf16>, tensor<4xf32>, tensor<4xbf16>, tensor<4xf16>, tensor<4xf64>) {
  %0 = spmd.all_gather %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 0 : i64} : tensor<128xf32> -> tensor<256xf32>
  %w0, %b0 = spmd.unpack %0 unit @unit0 ["w", "b"] {spmd.segment = 0 : i64} : tensor<256xf32> -> tensor<4x16xf32>, tensor<4xf32>
  %1 = aten._to_copy %w0 {dtype = bf16, spmd.segment = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  %2 = aten._to_copy %w0 {dtype = bf16, spmd.segment = 0 : i64} : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  %3 = aten._to_copy %b0 {dtype = bf16, spmd.segment = 0 : i64} : (tensor<4xf32>) -> tensor<4xbf16>
  %4 = spmd.all_gather %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 1 : i64} : tensor<128xf32> -> tensor<256xf32>
  %w1 = spmd.unpack %4 unit @unit0 ["w"] {spmd.segment = 1 : i64} : tensor<256xf32> -> tensor<4x16xf32>
  %5 = aten._to_copy %w1 {dtype = f16, spmd.segment = 1 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf16>
  %6 = aten.permute %5 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<4x16xf16>) -> tensor<16x4xf16>
  %7 = spmd.all_gather %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 2 : i64} : tensor<128xf32> -> tensor<256xf32>
  %w2, %b2 = spmd.unpack %7 unit @unit0 ["w", "b"] {spmd.segment = 2 : i64} : tensor<256xf32> -> tensor<4x16xf32>, tensor<4xf32>
  %8 = aten._to_copy %w2 {dtype = bf16, spmd.segment = 2 : i64} : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  %9 = spmd.all_gather %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 3 : i64} : tensor<128xf32> -> tensor<256xf32>
  %b3 = spmd.unpack %9 unit @unit0 ["b"] {spmd.segment = 3 : i64} : tensor<256xf32> -> tensor<4xf32>
  %10 = aten._to_copy %b3 {dtype = bf16, spmd.segment = 3 : i64} : (tensor<4xf32>) -> tensor<4xbf16>
  %11 = aten._to_copy %b3 {dtype = f16, spmd.segment = 3 : i64} : (tensor<4xf32>) -> tensor<4xf16>
  %12 = spmd.all_gather %s on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 {spmd.segment = 4 : i64} : tensor<128xf32> -> tensor<256xf32>
  %b4 = spmd.unpack %12 unit @unit0 ["b"] {spmd.segment = 4 : i64} : tensor<256xf32> -> tensor<4xf32>
  %13 = aten._to_copy %b4 {dtype = f64, spmd.segment = 4 : i64} : (tensor<4xf32>) -> tensor<4xf64>
  return %1, %2, %3, %6, %8, %b2, %10, %11, %13 : tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<4xbf16>, tensor<16x4xf16>, tensor<4x16xbf16>, tensor<4xf32>, tensor<4xbf16>, tensor<4xf16>, tensor<4xf64>
}
