// RUN: spmd-opt --spmd-decompose-optimizer %s | FileCheck %s
// RUN: not spmd-opt --spmd-decompose-optimizer="ops=mm" %s 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: option 'ops' of spmd-decompose-optimizer: 'mm' is none of native_layer_norm_backward, _softmax_backward_data

spmd.mesh @mesh ["data" = 2]
// Two segments: "a" of group 0 at 0, "b" of group 1 at 128.
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
  #spmd.segment<"b", shape = [6], group = 1, offset = 128, numel = 6, trainable = true>]>

// List form: one chain per position; the learning rate, the powers and the bias
// corrections are f64 scalars, converted once.
// CHECK-LABEL: @adamw_list(
// CHECK-SAME: %[[P:.+]]: tensor<4xf32>, %[[G:.+]]: tensor<4xf32>, %[[M:.+]]: tensor<4xf32>, %[[V:.+]]: tensor<4xf32>, %[[STEP:.+]]: tensor<f32>, %[[LR:.+]]: tensor<f64>
// CHECK: %[[T:.+]] = aten._to_copy %[[STEP]] {dtype = f64, spmd.segment = 2 : i64}
// CHECK: %[[POW1:.+]] = aten.pow.Scalar %[[T]] {self = 9.000000e-01 : f64,
// CHECK: %[[BC1:.+]] = aten.rsub.Scalar %[[POW1]] {other = 1.000000e+00 : f64
// CHECK: %[[POW2:.+]] = aten.pow.Scalar %[[T]] {self = 7.500000e-01 : f64,
// CHECK: %[[BC2:.+]] = aten.rsub.Scalar %[[POW2]]
// CHECK: %[[SIZE:.+]] = aten.div.Tensor %[[LR]], %[[BC1]]
// CHECK: %[[SCALE:.+]] = aten.rsqrt %[[BC2]]
// CHECK: %[[LRWD:.+]] = aten.mul.Scalar %[[LR]] {other = 1.000000e-01 : f64
// CHECK: %[[DECAY:.+]] = aten.rsub.Scalar %[[LRWD]] {other = 1.000000e+00 : f64
// CHECK: %[[DECAY32:.+]] = aten._to_copy %[[DECAY]] {dtype = f32
// CHECK: %[[P1:.+]] = aten.mul.Tensor %[[P]], %[[DECAY32]]
// CHECK: %[[M1:.+]] = aten.lerp.Scalar %[[M]], %[[G]] {{.*}}weight = 0.099999999999999978 : f64
// CHECK: %[[V0:.+]] = aten.mul.Scalar %[[V]] {other = 7.500000e-01 : f64
// CHECK: %[[V1:.+]] = aten.addcmul %[[V0]], %[[G]], %[[G]] {{.*}}value = 2.500000e-01 : f64
// CHECK: %[[ROOT:.+]] = aten.sqrt %[[V1]]
// CHECK: %[[SCALE32:.+]] = aten._to_copy %[[SCALE]] {dtype = f32
// CHECK: %[[D0:.+]] = aten.mul.Tensor %[[ROOT]], %[[SCALE32]]
// CHECK: %[[D1:.+]] = aten.add.Scalar %[[D0]] {{.*}}other = 1.000000e-08 : f64
// CHECK: %[[SIZE32:.+]] = aten._to_copy %[[SIZE]] {dtype = f32
// CHECK: %[[U0:.+]] = aten.mul.Tensor %[[M1]], %[[SIZE32]]
// CHECK: %[[U1:.+]] = aten.div.Tensor %[[U0]], %[[D1]]
// CHECK: %[[P2:.+]] = aten.sub.Tensor %[[P1]], %[[U1]]
// CHECK: return %[[P2]], %[[M1]], %[[V1]]
func.func @adamw_list(%p: tensor<4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %step: tensor<f32>,
                      %lr: tensor<f64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a:3 = aten._fused_adamw %p, %g, %m, %v, %step, %lr {beta1 = array<f64: 0.9>, beta2 = array<f64: 0.75>,
      weight_decay = array<f64: 0.1>, eps = array<f64: 1.0e-8>, groups = array<i64: 0>, spmd.segment = 2,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 0>}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %a#0, %a#1, %a#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Chunk form: tables with an entry per segment, spread over the chunk. What is
// one number for all groups (beta1) stays a number.
#owned = #spmd.sharding<global = [256], [owned]>
#table = #spmd.sharding<global = [2], [replicated]>
#scalar = #spmd.sharding<global = [], [replicated]>
// CHECK-LABEL: @adamw_chunk(
// CHECK-SAME: %[[STEP:[^:]+]]: tensor<2xf32, #{{.+}}>, %[[LR0:[^:]+]]: tensor<f64, #{{.+}}>, %[[LR1:[^:]+]]: tensor<f64
// CHECK: %[[T:.+]] = aten._to_copy %[[STEP]] {dtype = f64, spmd.segment = 2 : i64} {{.*}} -> tensor<2xf64, #
// CHECK: %[[LR:.+]] = aten.stack %[[LR0]], %[[LR1]]
// CHECK: %[[B2:.+]] = aten.constant dense<[7.500000e-01, 5.000000e-01]> : tensor<2xf64>
// CHECK: aten.pow.Scalar %[[T]] {self = 9.000000e-01
// CHECK: aten.pow.Tensor_Tensor %[[B2]], %[[T]]
// CHECK: %[[LRWD:.+]] = aten.mul.Tensor %[[LR]], %
// CHECK: %[[DECAY:.+]] = aten.rsub.Scalar %[[LRWD]]
// CHECK: %[[DECAY32:.+]] = aten._to_copy %[[DECAY]] {dtype = f32
// CHECK: spmd.segment_broadcast %[[DECAY32]] unit @unit0 {spmd.segment = 2 : i64} : tensor<2xf32, #{{.+}}> -> tensor<128xf32, #
// CHECK-NOT: _fused
func.func @adamw_chunk(%p: tensor<128xf32, #owned>, %g: tensor<128xf32, #owned>, %m: tensor<128xf32, #owned>,
                       %v: tensor<128xf32, #owned>, %step: tensor<2xf32, #table>, %lr0: tensor<f64, #scalar>,
                       %lr1: tensor<f64, #scalar>) -> tensor<128xf32, #owned> {
  %a:3 = aten._fused_adamw %p, %g, %m, %v, %step, %lr0, %lr1 {beta1 = array<f64: 0.9, 0.9>, beta2 = array<f64: 0.75, 0.5>,
      weight_decay = array<f64: 0.1, 0.0>, eps = array<f64: 1.0e-8, 1.0e-8>, groups = array<i64: 0, 1>, unit = @unit0, spmd.segment = 2,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2>, resultSegmentSizes = array<i32: 1, 1, 1, 0>}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>,
       tensor<2xf32, #table>, tensor<f64, #scalar>, tensor<f64, #scalar>)
      -> (tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>)
  return %a#0 : tensor<128xf32, #owned>
}

// A list with one scalar per segment, and a division by a table: the divisor is
// 1 in the padding.
// CHECK-LABEL: @foreach_chunk(
// CHECK-SAME: %[[P:.+]]: tensor<128xf32, #{{.+}}>, %[[T:.+]]: tensor<2xf32
// CHECK: %[[S:.+]] = aten.constant dense<[1.000000e-01, 2.000000e-01]> : tensor<2xf64>
// CHECK: %[[S32:.+]] = aten._to_copy %[[S]] {dtype = f32
// CHECK: %[[SB:.+]] = spmd.segment_broadcast %[[S32]]
// CHECK: %[[A:.+]] = aten.mul.Tensor %[[P]], %[[SB]]
// CHECK: %[[ONE:.+]] = aten.constant dense<1.000000e+00> : tensor<2xf64>
// CHECK: %[[ONE32:.+]] = aten._to_copy %[[ONE]]
// CHECK: %[[INSIDE:.+]] = spmd.segment_broadcast %[[ONE32]]
// CHECK: %[[OUTSIDE:.+]] = aten.rsub.Scalar %[[INSIDE]] {other = 1.000000e+00
// CHECK: %[[TB:.+]] = spmd.segment_broadcast %[[T]]
// CHECK: %[[DIVISOR:.+]] = aten.add.Tensor %[[TB]], %[[OUTSIDE]]
// CHECK: aten.div.Tensor %[[A]], %[[DIVISOR]]
func.func @foreach_chunk(%p: tensor<128xf32, #owned>, %t: tensor<2xf32, #table>) -> tensor<128xf32, #owned> {
  %a = aten._foreach_mul.ScalarList %p {scalars = [0.1, 0.2], unit = @unit0, spmd.segment = 2}
    : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %b = aten._foreach_div.List %a, %t {unit = @unit0, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<2xf32, #table>) -> tensor<128xf32, #owned>
  return %b : tensor<128xf32, #owned>
}

// A mask on a chunk: what is compared with has the chunk's dtype, and is 1 in the padding.
// CHECK-LABEL: @mask_chunk(
// CHECK-SAME: %[[P:.+]]: tensor<128xf32, #{{.+}}>, %[[T:.+]]: tensor<2xf64
// CHECK: %[[T32:.+]] = aten._to_copy %[[T]] {dtype = f32
// CHECK: %[[TB:.+]] = spmd.segment_broadcast %[[T32]]
// CHECK: %[[LIMIT:.+]] = aten.add.Tensor %[[TB]], %{{.*}} -> tensor<128xf32
// CHECK: aten.ge.Tensor %[[P]], %[[LIMIT]] {{.*}} -> tensor<128xi1
func.func @mask_chunk(%p: tensor<128xf32, #owned>, %t: tensor<2xf64, #table>) -> tensor<128xi1, #owned> {
  %a = aten._foreach_map %p, %t {op = "ge.Tensor", options = {}, unit = @unit0, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<2xf64, #table>) -> tensor<128xi1, #owned>
  return %a : tensor<128xi1, #owned>
}

// CHECK-LABEL: @norm_chunk(
// CHECK: spmd.segment_norm norm2 %{{.+}} unit @unit0 {spmd.segment = 2 : i64}
// CHECK: spmd.segment_norm max %{{.+}} unit @unit0 {spmd.segment = 2 : i64}
func.func @norm_chunk(%p: tensor<128xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = aten._foreach_norm.Scalar %p {unit = @unit0, spmd.segment = 2} : (tensor<128xf32>) -> tensor<2xf32>
  %b = aten._foreach_norm.Scalar %p {ord = 0x7FF0000000000000 : f64, unit = @unit0, spmd.segment = 2} : (tensor<128xf32>) -> tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// A 0-dimensional f64 does not make a f32 list f64; the conversion is explicit.
// CHECK-LABEL: @zero_dim(
// CHECK-SAME: %[[P:.+]]: tensor<4xf32>, %[[LR:.+]]: tensor<f64>
// CHECK: %[[C:.+]] = aten._to_copy %[[LR]] {dtype = f32
// CHECK: aten.mul.Tensor %[[P]], %[[C]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
func.func @zero_dim(%p: tensor<4xf32>, %lr: tensor<f64>) -> tensor<4xf32> {
  %a = aten._foreach_mul.Tensor %p, %lr : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// Nesterov SGD with weight decay and maximize.
// CHECK-LABEL: @sgd(
// CHECK-SAME: %[[P:.+]]: tensor<4xf32>, %[[G:.+]]: tensor<4xf32>, %[[B:.+]]: tensor<4xf32>
// CHECK: %[[N:.+]] = aten.neg %[[G]]
// CHECK: %[[W:.+]] = aten.mul.Scalar %[[P]] {other = 1.000000e-01
// CHECK: %[[D:.+]] = aten.add.Tensor %[[N]], %[[W]]
// CHECK: %[[OLD:.+]] = aten.mul.Scalar %[[B]] {other = 9.000000e-01
// CHECK: %[[B1:.+]] = aten.add.Tensor %[[OLD]], %[[D]]
// CHECK: %[[AHEAD:.+]] = aten.mul.Scalar %[[B1]] {other = 9.000000e-01
// CHECK: %[[DIR:.+]] = aten.add.Tensor %[[D]], %[[AHEAD]]
// CHECK: %[[STEP:.+]] = aten.mul.Scalar %[[DIR]] {other = 5.000000e-01
// CHECK: %[[P1:.+]] = aten.sub.Tensor %[[P]], %[[STEP]]
// CHECK: return %[[P1]], %[[B1]]
func.func @sgd(%p: tensor<4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a:2 = aten._fused_sgd %p, %g, %b {lr_values = array<f64: 0.5>, weight_decay = array<f64: 0.1>, momentum = array<f64: 0.9>,
      dampening = array<f64: 0.0>, nesterov = true, maximize = true, groups = array<i64: 0>,
      operandSegmentSizes = array<i32: 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 1>}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a#0, %a#1 : tensor<4xf32>, tensor<4xf32>
}

// Of bf16: all in f32, coefficients too, and each result rounded once.
// CHECK-LABEL: @narrow_sgd(
// CHECK-SAME: %[[P:.+]]: tensor<4xbf16>, %[[G:.+]]: tensor<4xbf16>, %[[B:.+]]: tensor<4xbf16>
// CHECK: %[[P32:.+]] = aten._to_copy %[[P]] {dtype = f32
// CHECK: %[[G32:.+]] = aten._to_copy %[[G]] {dtype = f32
// CHECK: %[[DECAYED:.+]] = aten.mul.Scalar %[[P32]]
// CHECK: %[[G1:.+]] = aten.add.Tensor %[[G32]], %[[DECAYED]] {{.*}}-> tensor<4xf32>
// CHECK: %[[B32:.+]] = aten._to_copy %[[B]] {dtype = f32
// CHECK: %[[KEPT:.+]] = aten.mul.Scalar %[[B32]]
// CHECK: %[[B1:.+]] = aten.add.Tensor %[[KEPT]], %[[G1]]
// CHECK: %[[NEXT:.+]] = aten._to_copy %[[B1]] {dtype = bf16
// CHECK: %[[U:.+]] = aten.mul.Scalar %[[B1]]
// CHECK: %[[P1:.+]] = aten.sub.Tensor %[[P32]], %[[U]]
// CHECK: %[[UPDATED:.+]] = aten._to_copy %[[P1]] {dtype = bf16
// CHECK: return %[[UPDATED]], %[[NEXT]]
func.func @narrow_sgd(%p: tensor<4xbf16>, %g: tensor<4xbf16>, %b: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  %a:2 = aten._fused_sgd %p, %g, %b {lr_values = array<f64: 0.5>, weight_decay = array<f64: 0.1>, momentum = array<f64: 0.9>,
      dampening = array<f64: 0.0>, groups = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0>,
      resultSegmentSizes = array<i32: 1, 1>, spmd.segment = 2}
    : (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>)
  return %a#0, %a#1 : tensor<4xbf16>, tensor<4xbf16>
}
