// RUN: spmd-opt --spmd-decompose-optimizer %s | FileCheck %s

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
  #spmd.segment<"b", shape = [6], group = 1, offset = 128, numel = 6, trainable = true>]>

#owned = #spmd.sharding<global = [256], [owned]>
#scalar = #spmd.sharding<global = [], [replicated]>

// What is returned into a flat buffer is zero in its padding, where a clamp to at least 0.5 is not, nor an exponential,
// nor a quotient of zeros. The other update is zero there: m + g has sums of zeros, an Adagrad step divides by eps.
// CHECK-LABEL: @padding(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<128xf32, #{{.+}}> {spmd.arg = #spmd.shard<@unit0, "param">}
// CHECK: %[[CLAMPED:.+]] = aten.clamp %{{.+}} {{{.*}}min = 5.000000e-01 : f64, spmd.segment = 2 : i64}
// CHECK: %[[FLAGS:.+]] = aten.constant dense<true> : tensor<2xi1> {spmd.segment = 2 : i64}
// CHECK: %[[INSIDE:.+]] = spmd.segment_broadcast %[[FLAGS]] unit @unit0 {spmd.segment = 2 : i64} : tensor<2xi1, #{{.+}}> -> tensor<128xi1
// CHECK: %[[ZERO:.+]] = aten.scalar_tensor {{ *}}{s = 0 : i64, spmd.segment = 2 : i64}
// CHECK: %[[CLEARED:.+]] = aten.where.self %[[INSIDE]], %[[CLAMPED]], %[[ZERO]] {spmd.segment = 2 : i64}
// CHECK: %[[EXP:.+]] = aten.exp
// CHECK: %[[EXPCLEARED:.+]] = aten.where.self %{{.+}}, %[[EXP]], %
// CHECK: %[[RATIO:.+]] = aten.div.Tensor %[[P]], %{{.+}}
// CHECK: %[[RATIOCLEARED:.+]] = aten.where.self %{{.+}}, %[[RATIO]], %
// CHECK-NOT: where
// CHECK: return %{{.+}}, %[[CLEARED]], %[[EXPCLEARED]], %[[RATIOCLEARED]]
func.func @padding(%p: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                   %a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "a">},
                   %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "b">},
                   %c: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "c">},
                   %lr: tensor<f32, #scalar>)
    -> (tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "a">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "b">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "c">>}) {
  %clamped = aten._foreach_map %a {op = "clamp", options = {min = 0.5}, unit = @unit0, spmd.segment = 2}
    : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %exp = aten.exp %b {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %ratio = aten.div.Tensor %p, %c {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %sum = aten.add.Tensor %p, %c {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %root = aten.sqrt %a {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %divisor = aten._foreach_add.Scalar %root {scalar = 1.0e-8, unit = @unit0, spmd.segment = 2}
    : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %step = aten.div.Tensor %sum, %divisor {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %scaled = aten.mul.Tensor %step, %lr {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %next = aten._foreach_sub.List %p, %scaled {unit = @unit0, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  return %next, %clamped, %exp, %ratio : tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>,
    tensor<128xf32, #owned>
}

// Zero times what may be infinite is no zero, a learning rate may be 0, and what is between 1 and -1 too.
// An average of zeros over a root of a sum is zero.
// CHECK-LABEL: @padding_of_quotients(
// CHECK: %[[INFINITE:.+]] = aten.mul.Tensor
// CHECK: aten.where.self %{{.+}}, %[[INFINITE]], %
// CHECK: %[[BYRATE:.+]] = aten.div.Tensor
// CHECK: aten.where.self %{{.+}}, %[[BYRATE]], %
// CHECK: %[[BYLERP:.+]] = aten.div.Tensor
// CHECK: aten.where.self %{{.+}}, %[[BYLERP]], %
// CHECK-NOT: where
func.func @padding_of_quotients(%p: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "param">},
                                %a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "a">},
                                %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "b">},
                                %c: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "c">},
                                %lr: tensor<f32, #scalar>)
    -> (tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "a">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "b">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "c">>}) {
  %inverse = aten.rsqrt %b {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %infinite = aten.mul.Tensor %p, %inverse {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %byrate = aten.div.Tensor %a, %lr {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %one = aten.add.Scalar %b {other = 1.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %minus = aten.neg %one {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %half = aten.scalar_tensor {s = 0.5, spmd.segment = 2} : () -> tensor<f32, #scalar>
  %between = aten.lerp.Tensor %one, %minus, %half {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %bylerp = aten.div.Tensor %b, %between {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %root = aten.sqrt %one {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %mean = aten.lerp.Scalar %c, %p {weight = 0.1, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %kept = aten.addcdiv %c, %mean, %root {value = -0.1, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  return %infinite, %byrate, %bylerp, %kept : tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>,
    tensor<128xf32, #owned>
}

// What an op makes of zeros follows from its scalar body: functions that are 0 at 0, linear combinations, divisors that
// are not zero.
// CHECK-LABEL: @padding_of_bodies(
// CHECK-NOT: spmd.segment_broadcast
// CHECK: return
func.func @padding_of_bodies(%p: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "p">},
                             %a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "a">},
                             %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "b">},
                             %lr: tensor<f32, #scalar>)
    -> (tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "p">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "a">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "b">>}) {
  %z1 = aten.clone %p {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z2 = aten.neg %z1 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z3 = aten.abs %z2 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z4 = aten.sign %z3 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z5 = aten.sgn %z4 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z6 = aten.sqrt %z5 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z7 = aten.sin %z6 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z8 = aten.tan %z7 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z9 = aten.tanh %z8 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z10 = aten.asin %z9 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z11 = aten.atan %z10 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z12 = aten.sinh %z11 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z13 = aten.asinh %z12 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z14 = aten.atanh %z13 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z15 = aten.erf %z14 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z16 = aten.expm1 %z15 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z17 = aten.log1p %z16 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z18 = aten.relu %z17 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z19 = aten.trunc %z18 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z20 = aten.floor %z19 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z21 = aten.ceil %z20 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z22 = aten.round %z21 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z23 = aten.frac %z22 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z24 = aten.silu %z23 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z25 = aten.gelu %z24 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z26 = aten.mish %z25 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z27 = aten.elu %z26 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z28 = aten.mul.Scalar %z27 {other = 0.5, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z29 = aten.div.Scalar %z28 {other = 3.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z30 = aten.add.Scalar %z29 {other = 0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z31 = aten.pow.Tensor_Scalar %z30 {exponent = 0.3, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z32 = aten.clamp %z31 {min = -1.0, max = 1.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %z33 = aten.leaky_relu %z32 {negative_slope = 0.1, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n1 = aten.add.Tensor %z33, %a {alpha = 0.1, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n2 = aten.sub.Tensor %n1, %a {alpha = 3.0, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n3 = aten.mul.Tensor %n2, %a {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n4 = aten.addcmul %n3, %a, %n2 {value = 2.0, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n5 = aten.lerp.Scalar %n4, %a {weight = 0.7, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n6 = aten.lerp.Tensor %n5, %a, %lr {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %n7 = aten.maximum %n6, %a {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n8 = aten.minimum %n7, %a {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %n9 = aten.mul.Tensor %n8, %lr {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %d1 = aten.exp %b {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d2 = aten.abs %d1 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d3 = aten.sqrt %d2 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d4 = aten.rsqrt %d3 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d5 = aten.reciprocal %d4 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d6 = aten.pow.Tensor_Scalar %d5 {exponent = 1.5, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d7 = aten.pow.Tensor_Scalar %d6 {exponent = -2.5, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d8 = aten.add.Scalar %d7 {other = 1.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d9 = aten.mul.Scalar %d8 {other = 2.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d10 = aten.div.Scalar %d9 {other = 4.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d11 = aten.clamp %d10 {min = 0.1, max = 10.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d12 = aten.neg %d11 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d13 = aten.rsub.Scalar %d12 {other = 1.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %d14 = aten.sigmoid %d13 {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %between = aten.lerp.Scalar %d11, %d12 {weight = 0.5, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %side = aten.gt.Scalar %between {other = 0.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xi1, #owned>
  %sided = aten.where.self %side, %d11, %d12 {spmd.segment = 2}
    : (tensor<128xi1, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %signs = aten.sign %sided {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %e1 = aten.mul.Tensor %signs, %d14 {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %e2 = aten.minimum %e1, %d12 {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %e3 = aten.div.Tensor %b, %e2 {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %e4 = aten.addcdiv %e3, %b, %e1 {value = -0.1, spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %half = aten.scalar_tensor {s = 0.5, spmd.segment = 2} : () -> tensor<f32, #scalar>
  %e5 = aten.div.Tensor %e4, %half {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  return %n9, %a, %e5 : tensor<128xf32, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>
}

// Minus zero is zero, from which an angle of zeros may be pi; a number that may be zero or infinite decides nothing;
// what is rounded to a narrow type may vanish.
// CHECK-LABEL: @padding_not_zero(
// CHECK: %[[ANGLE:.+]] = aten.atan2
// CHECK: %[[ANGLECLEARED:.+]] = aten.where.self %{{.+}}, %[[ANGLE]], %
// CHECK: aten.gt.Tensor
// CHECK: %[[CHOSEN:.+]] = aten.where.self
// CHECK: %[[CHOSENCLEARED:.+]] = aten.where.self %{{.+}}, %[[CHOSEN]], %
// CHECK: %[[KEPT:.+]] = aten.where.self
// CHECK: %[[KEPTCLEARED:.+]] = aten.where.self %{{.+}}, %[[KEPT]], %
// CHECK: %[[RATIO:.+]] = aten.div.Tensor
// CHECK: %[[RATIOCLEARED:.+]] = aten.where.self %{{.+}}, %[[RATIO]], %
// CHECK: return %[[CHOSENCLEARED]], %[[ANGLECLEARED]], %[[RATIOCLEARED]], %[[KEPTCLEARED]]
func.func @padding_not_zero(%p: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "p">},
                            %a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "a">},
                            %b: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "b">},
                            %c: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "c">},
                            %lr: tensor<f32, #scalar>)
    -> (tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "p">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "a">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "b">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "c">>}) {
  %minus = aten.neg %b {spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %angle = aten.atan2 %a, %minus {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %one = aten.scalar_tensor {s = 1.0, spmd.segment = 2} : () -> tensor<f32, #scalar>
  %count = aten.sub.Tensor %lr, %one {spmd.segment = 2}
    : (tensor<f32, #scalar>, tensor<f32, #scalar>) -> tensor<f32, #scalar>
  %below = aten.gt.Tensor %count, %p {spmd.segment = 2}
    : (tensor<f32, #scalar>, tensor<128xf32, #owned>) -> tensor<128xi1, #owned>
  %raised = aten.add.Scalar %p {other = 1.0, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %chosen = aten.where.self %below, %p, %raised {spmd.segment = 2}
    : (tensor<128xi1, #owned>, tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %isinf = aten.isinf %lr {spmd.segment = 2} : (tensor<f32, #scalar>) -> tensor<i1, #scalar>
  %kept = aten.where.self %isinf, %raised, %c {spmd.segment = 2}
    : (tensor<i1, #scalar>, tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %small = aten.mul.Scalar %raised {other = 1.0e-10, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  %narrow = aten._to_copy %small {dtype = f16, spmd.segment = 2} : (tensor<128xf32, #owned>) -> tensor<128xf16, #owned>
  %wide = aten._to_copy %narrow {dtype = f32, spmd.segment = 2} : (tensor<128xf16, #owned>) -> tensor<128xf32, #owned>
  %ratio = aten.div.Tensor %b, %wide {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<128xf32, #owned>) -> tensor<128xf32, #owned>
  return %chosen, %angle, %ratio, %kept : tensor<128xf32, #owned>, tensor<128xf32, #owned>,
    tensor<128xf32, #owned>, tensor<128xf32, #owned>
}

// A sum of numbers is taken for a divisor that is not zero, which ops are sums their bodies say; a number that is the
// negative of another is any number.
// CHECK-LABEL: @padding_of_sums(
// CHECK: %[[BYNEG:.+]] = aten.div.Tensor
// CHECK: aten.where.self %{{.+}}, %[[BYNEG]], %
// CHECK-NOT: where
func.func @padding_of_sums(%p: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "p">},
                           %a: tensor<128xf32, #owned> {spmd.arg = #spmd.shard<@unit0, "a">},
                           %lr: tensor<f32, #scalar>)
    -> (tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "p">>},
        tensor<128xf32, #owned> {spmd.result = #spmd.update<#spmd.shard<@unit0, "a">>}) {
  %minus = aten.neg %lr {spmd.segment = 2} : (tensor<f32, #scalar>) -> tensor<f32, #scalar>
  %byneg = aten.div.Tensor %p, %minus {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %rsub = aten.rsub.Scalar %lr {other = 1.0, spmd.segment = 2} : (tensor<f32, #scalar>) -> tensor<f32, #scalar>
  %sum = aten.add.Tensor %lr, %rsub {alpha = 3.0, spmd.segment = 2}
    : (tensor<f32, #scalar>, tensor<f32, #scalar>) -> tensor<f32, #scalar>
  %product = aten.addcmul %sum, %lr, %lr {value = 2.0, spmd.segment = 2}
    : (tensor<f32, #scalar>, tensor<f32, #scalar>, tensor<f32, #scalar>) -> tensor<f32, #scalar>
  %0 = aten.div.Tensor %a, %rsub {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %1 = aten.div.Tensor %0, %sum {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  %2 = aten.div.Tensor %1, %product {spmd.segment = 2}
    : (tensor<128xf32, #owned>, tensor<f32, #scalar>) -> tensor<128xf32, #owned>
  return %byneg, %2 : tensor<128xf32, #owned>, tensor<128xf32, #owned>
}
