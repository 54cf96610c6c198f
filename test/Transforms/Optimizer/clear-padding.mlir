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
