// RUN: spmd-opt --spmd-merge-optimizer-lists %s | FileCheck %s

module attributes {spmd.phases = ["forward", "backward", "optimizer"]} {

// The chains of two parameters are equal: op by op they become one list op. What is
// shared (lr) is an entry at each position, and gradients are known by their use.
// CHECK-LABEL: @step(
// CHECK-SAME: %[[P0:[a-z0-9]+]]: tensor<4xf32> {{[^,]*, [^,]*}}, %[[P1:[a-z0-9]+]]: tensor<6xf32> {{[^,]*, [^,]*}}, %[[M0:[a-z0-9]+]]: tensor<4xf32> {{[^%]*}}, %[[M1:[a-z0-9]+]]: tensor<6xf32> {{[^%]*}} %[[LR:[a-z0-9]+]]: tensor<f32>, %[[G0:[a-z0-9]+]]: tensor<4xf32>, %[[G1:[a-z0-9]+]]: tensor<6xf32>
// CHECK: %[[S:[0-9]+]]:2 = aten._foreach_map %[[G0]], %[[G1]] {op = "mul.Scalar", options = {other = 5.000000e-01 : f64}, spmd.segment = 2 : i64}
// CHECK: %[[M:[0-9]+]]:2 = aten._foreach_map %[[M0]], %[[M1]], %[[S]]#0, %[[S]]#1 {op = "add.Tensor", options = {alpha = 1 : i64}, spmd.segment = 2 : i64}
// CHECK: %[[U:[0-9]+]]:2 = aten._foreach_map %[[M]]#0, %[[M]]#1, %[[LR]], %[[LR]] {op = "mul.Tensor"
// CHECK: %[[N:[0-9]+]]:2 = aten._foreach_map %[[P0]], %[[P1]], %[[U]]#0, %[[U]]#1 {op = "sub.Tensor"
// CHECK-NOT: aten.
// CHECK: return %[[N]]#0, %[[N]]#1, %[[M]]#0, %[[M]]#1
func.func @step(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>},
                %m0: tensor<4xf32> {spmd.arg = #spmd.state<"m", of = "a">},
                %m1: tensor<6xf32> {spmd.arg = #spmd.state<"m", of = "b">},
                %lr: tensor<f32>, %g0: tensor<4xf32>, %g1: tensor<6xf32>)
    -> (tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<6xf32>) {
  %s0 = aten.mul.Scalar %g0 {other = 0.5 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %n0 = aten.add.Tensor %m0, %s0 {spmd.segment = 2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %u0 = aten.mul.Tensor %n0, %lr {spmd.segment = 2} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %q0 = aten.sub.Tensor %p0, %u0 {spmd.segment = 2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s1 = aten.mul.Scalar %g1 {other = 0.5 : f64, spmd.segment = 2} : (tensor<6xf32>) -> tensor<6xf32>
  %n1 = aten.add.Tensor %m1, %s1 {spmd.segment = 2} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %u1 = aten.mul.Tensor %n1, %lr {spmd.segment = 2} : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  %q1 = aten.sub.Tensor %p1, %u1 {spmd.segment = 2} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %q0, %q1, %n0, %n1 : tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<6xf32>
}

// As in Rprop's foreach form: between two list ops each parameter has a chain of its own, whose parameter is known from
// its position in the lists.
// CHECK-LABEL: @between_lists(
// CHECK: %[[S:[0-9]+]]:2 = aten._foreach_mul.List
// CHECK: %[[A:[0-9]+]]:2 = aten._foreach_map %[[S]]#0, %[[S]]#1 {op = "sign"
// CHECK: %[[C:[0-9]+]]:2 = aten._foreach_map %[[A]]#0, %[[A]]#1 {op = "clamp"
// CHECK: %[[N:[0-9]+]]:2 = aten._foreach_add.List %{{.+}}, %{{.+}}, %[[C]]#0, %[[C]]#1
// CHECK: return %[[N]]#0, %[[N]]#1
func.func @between_lists(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                         %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>}, %g0: tensor<4xf32>, %g1: tensor<6xf32>)
    -> (tensor<4xf32>, tensor<6xf32>) {
  %s:2 = aten._foreach_mul.List %g0, %g1, %g0, %g1 {spmd.segment = 2}
    : (tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<6xf32>) -> (tensor<4xf32>, tensor<6xf32>)
  %a0 = aten.sign %s#0 {spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = aten.clamp %a0 {min = 0.5 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %a1 = aten.sign %s#1 {spmd.segment = 2} : (tensor<6xf32>) -> tensor<6xf32>
  %c1 = aten.clamp %a1 {min = 0.5 : f64, spmd.segment = 2} : (tensor<6xf32>) -> tensor<6xf32>
  %n:2 = aten._foreach_add.List %p0, %p1, %c0, %c1 {alpha = 1 : i64, spmd.segment = 2}
    : (tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<6xf32>) -> (tensor<4xf32>, tensor<6xf32>)
  return %n#0, %n#1 : tensor<4xf32>, tensor<6xf32>
}

// Not merged: chains that differ in a number, ops outside the optimizer phase, and an
// op on two parameters.
// CHECK-LABEL: @others(
// CHECK-NOT: _foreach_map
// CHECK: return
func.func @others(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                  %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>},
                  %p2: tensor<4xf32> {spmd.arg = #spmd.param<"c", trainable>})
    -> (tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<6xf32>, tensor<4xf32>) {
  %a = aten.mul.Scalar %p0 {other = 0.5 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %b = aten.mul.Scalar %p1 {other = 0.25 : f64, spmd.segment = 2} : (tensor<6xf32>) -> tensor<6xf32>
  %c = aten.neg %p0 {spmd.segment = 0} : (tensor<4xf32>) -> tensor<4xf32>
  %d = aten.neg %p1 {spmd.segment = 0} : (tensor<6xf32>) -> tensor<6xf32>
  %e = aten.add.Tensor %p0, %p2 {spmd.segment = 2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<6xf32>, tensor<4xf32>
}

}
