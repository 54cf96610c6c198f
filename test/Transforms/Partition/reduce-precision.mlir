// Gradients are packed and added up in the type that a unit's precision names, and the sum is cast to the parameters'.
// A gradient that was cast from that type is taken before its cast.

// RUN: spmd-opt %s --spmd-partition --spmd-verify-partition | FileCheck %s
// RUN: sed 's/fully_shard layout/replicate layout/' %s | spmd-opt --spmd-partition | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/reduce = bf16/reduce = f32/' %s | spmd-opt --spmd-partition | FileCheck %s --check-prefix=WIDE

module @cast attributes {spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
  #spmd.segment<"v", shape = [4, 16], group = 0, offset = 128, numel = 64, trainable = true>]> {precision = {param = bf16, reduce = bf16}}

// CHECK-LABEL: module @cast
// CHECK: %[[DW:.*]] = aten.mm {{.*}} -> tensor<4x16xbf16, #spmd.sharding<global = [4, 16]
// CHECK: %[[DV:.*]] = aten.mul.Scalar {{.*}} -> tensor<4x16xf32
// CHECK: %[[NV:.*]] = aten._to_copy %[[DV]] {dtype = bf16, spmd.segment = 1
// CHECK: %[[P:.*]] = spmd.pack %[[DW]], %[[NV]] unit @unit0 ["w", "v"] {{.*}} -> tensor<256xbf16
// CHECK: %[[S:.*]] = spmd.reduce_scatter sum %[[P]] {{.*}} -> tensor<128xbf16
// CHECK: %[[G:.*]] = aten._to_copy %[[S]] {dtype = f32, {{.*}} -> tensor<128xf32
// CHECK: aten._foreach_add.List %{{.*}}, %[[G]]

// WHOLE-LABEL: module @cast
// WHOLE: %[[S:.*]] = spmd.all_reduce [sum] {{.*}} -> tensor<256xbf16
// WHOLE: aten._to_copy %[[S]] {dtype = f32

// The cast of a gradient, at the end of backward, moves to where the gradient is.
// WIDE-LABEL: module @cast
// WIDE: %[[DW:.*]] = aten.mm {{.*}} -> tensor<4x16xbf16, #spmd.sharding<global = [4, 16]
// WIDE-NEXT: %[[CW:.*]] = aten._to_copy %[[DW]] {dtype = f32
// WIDE-NEXT: aten.neg
// WIDE-NEXT: %[[DV:.*]] = aten.mul.Scalar %[[CW]] {other = 2
// WIDE: spmd.pack %[[CW]], %[[DV]] unit @unit0 ["w", "v"] {{.*}} -> tensor<256xf32
// WIDE-NEXT: spmd.reduce_scatter {{.*}} -> tensor<128xf32
func.func @step(%w: tensor<4x16xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %v: tensor<4x16xf32> {spmd.arg = #spmd.param<"v", trainable>},
                %x: tensor<8x4xbf16> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %t: tensor<8x16xbf16> {spmd.arg = #spmd.batch<"t", dim = 0>})
    -> (tensor<bf16> {spmd.result = #spmd.loss<"">},
        tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
        tensor<4x16xf32> {spmd.result = #spmd.update<#spmd.param<"v", trainable>>}) {
  %wc = aten._to_copy %w {dtype = bf16, spmd.segment = 0} : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  %y = aten.mm %x, %wc {spmd.segment = 0} : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>
  %yt = aten.mul.Tensor %y, %t {spmd.segment = 0} : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %loss = aten.sum.dim_IntList %yt {dim = array<i64: 0, 1>, spmd.segment = 0} : (tensor<8x16xbf16>) -> tensor<bf16>
  %xt = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 1} : (tensor<8x4xbf16>) -> tensor<4x8xbf16>
  %dw = aten.mm %xt, %t {spmd.segment = 1} : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xbf16>
  %unrelated = aten.neg %dw {spmd.segment = 1} : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %dwc = aten._to_copy %dw {dtype = f32, spmd.segment = 1} : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %dv = aten.mul.Scalar %dwc {other = 2.0 : f64, spmd.segment = 1} : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %w1, %v1 = aten._foreach_add.List %w, %v, %dwc, %dv {alpha = -0.1, spmd.segment = 2}
      : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>)
  return %loss, %w1, %v1 : tensor<bf16>, tensor<4x16xf32>, tensor<4x16xf32>
}
}
