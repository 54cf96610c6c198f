// RUN: spmd-opt --spmd-merge-optimizer-lists %s | FileCheck %s

// A scalar that differs becomes a list of scalars; the op of the second group
// comes to the place of the first.
// CHECK-LABEL: @scalars(
// CHECK-SAME: %[[P0:.+]]: tensor<4xf32> {{.*}}, %[[P1:.+]]: tensor<6xf32>
// CHECK: %[[M:.+]]:2 = aten._foreach_mul.ScalarList %[[P0]], %[[P1]] {scalars = [9.000000e-01, 5.000000e-01], spmd.segment = 2 : i64}
// CHECK: return %[[M]]#0, %[[M]]#1
func.func @scalars(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                   %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>}) -> (tensor<4xf32>, tensor<6xf32>) {
  %a = aten._foreach_mul.Scalar %p0 {scalar = 0.9 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %b = aten._foreach_mul.Scalar %p1 {scalar = 0.5 : f64, spmd.segment = 2} : (tensor<6xf32>) -> tensor<6xf32>
  return %a, %b : tensor<4xf32>, tensor<6xf32>
}

// A tensor that differs becomes a list of tensors; what computes it is hoisted.
// CHECK-LABEL: @tensors(
// CHECK: %[[S:.+]] = aten.neg %[[LR1:.+]] {spmd.segment = 2 : i64}
// CHECK: aten._foreach_mul.List %{{.+}}, %{{.+}}, %[[LR0:.+]], %[[S]] {
func.func @tensors(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                   %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>},
                   %lr0: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0>},
                   %lr1: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 1>}) -> (tensor<4xf32>, tensor<6xf32>) {
  %a = aten._foreach_mul.Tensor %p0, %lr0 {spmd.segment = 2} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %s = aten.neg %lr1 {spmd.segment = 2} : (tensor<f64>) -> tensor<f64>
  %b = aten._foreach_mul.Tensor %p1, %s {spmd.segment = 2} : (tensor<6xf32>, tensor<f64>) -> tensor<6xf32>
  return %a, %b : tensor<4xf32>, tensor<6xf32>
}

// Two ops on the same parameters are two steps of the optimizer.
// CHECK-LABEL: @same_parameters(
// CHECK-COUNT-2: aten._foreach_mul.Scalar
func.func @same_parameters(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                           %m0: tensor<4xf32> {spmd.arg = #spmd.state<"m", of = "a">}) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = aten._foreach_mul.Scalar %p0 {scalar = 0.9 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %b = aten._foreach_mul.Scalar %m0 {scalar = 0.9 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// Nor are ops on other roles, or of another segment, the same step.
// CHECK-LABEL: @other_roles(
// CHECK-COUNT-3: aten._foreach_neg %{{.+}} {
func.func @other_roles(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                       %m1: tensor<6xf32> {spmd.arg = #spmd.state<"m", of = "b">},
                       %p2: tensor<6xf32> {spmd.arg = #spmd.param<"c", trainable>})
    -> (tensor<4xf32>, tensor<6xf32>, tensor<6xf32>) {
  %a = aten._foreach_neg %p0 {spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %b = aten._foreach_neg %m1 {spmd.segment = 2} : (tensor<6xf32>) -> tensor<6xf32>
  %c = aten._foreach_neg %p2 {spmd.segment = 3} : (tensor<6xf32>) -> tensor<6xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<6xf32>, tensor<6xf32>
}

// An op that needs the other's result cannot join it.
// CHECK-LABEL: @dependent(
// CHECK: %[[A:.+]] = aten._foreach_neg
// CHECK: aten._foreach_neg %[[A]]
func.func @dependent(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                     %m1: tensor<4xf32> {spmd.arg = #spmd.state<"m", of = "b">}) -> tensor<4xf32> {
  %a = aten._foreach_neg %p0 {spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %b = aten._foreach_neg %a {spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %c = aten._foreach_add.List %m1, %b {spmd.segment = 2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// Only the first group has weight decay: the second is multiplied by one.
// CHECK-LABEL: @identity(
// CHECK-SAME: %[[P0:.+]]: tensor<4xf32> {{.*}}, %[[P1:.+]]: tensor<6xf32> {{.*}}, %[[G0:.+]]: tensor<4xf32>, %[[G1:.+]]: tensor<6xf32>
// CHECK: %[[D:.+]]:2 = aten._foreach_mul.ScalarList %[[P0]], %[[P1]] {scalars = [7.500000e-01, 1], spmd.segment = 2 : i64}
// CHECK: aten._foreach_add.List %[[D]]#0, %[[D]]#1, %[[G0]], %[[G1]] {alpha = -1.000000e-01 : f64, spmd.segment = 2 : i64}
func.func @identity(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                    %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>},
                    %g0: tensor<4xf32>, %g1: tensor<6xf32>) -> (tensor<4xf32>, tensor<6xf32>) {
  %d = aten._foreach_mul.Scalar %p0 {scalar = 0.75 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %a = aten._foreach_add.List %d, %g0 {alpha = -0.1 : f64, spmd.segment = 2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = aten._foreach_add.List %p1, %g1 {alpha = -0.1 : f64, spmd.segment = 2} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %a, %b : tensor<4xf32>, tensor<6xf32>
}

// Fused optimizers: hyper-parameters get an entry per group.
// CHECK-LABEL: @fused(
// CHECK-SAME: %[[P0:.+]]: tensor<4xf32>, %[[G0:.+]]: tensor<4xf32>, %[[L0:.+]]: tensor<f64>, %[[P1:.+]]: tensor<6xf32>, %[[G1:.+]]: tensor<6xf32>, %[[L1:.+]]: tensor<f64>
// CHECK: %[[S:.+]]:2 = aten._fused_sgd %[[P0]], %[[P1]], %[[G0]], %[[G1]], %[[L0]], %[[L1]] {dampening = array<f64: 0.000000e+00, 0.000000e+00>, groups = array<i64: 0, 1>
// CHECK-SAME: momentum = array<f64: 0.000000e+00, 0.000000e+00>, operandSegmentSizes = array<i32: 2, 2, 0, 2>, resultSegmentSizes = array<i32: 2, 0>
// CHECK-SAME: weight_decay = array<f64: 1.000000e-01, 0.000000e+00>
// CHECK: return %[[S]]#0, %[[S]]#1
func.func @fused(%p0: tensor<4xf32>, %g0: tensor<4xf32>, %lr0: tensor<f64>,
                 %p1: tensor<6xf32>, %g1: tensor<6xf32>, %lr1: tensor<f64>) -> (tensor<4xf32>, tensor<6xf32>) {
  %a = aten._fused_sgd %p0, %g0, %lr0 {weight_decay = array<f64: 0.1>, momentum = array<f64: 0.0>, dampening = array<f64: 0.0>,
      groups = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>,
      spmd.segment = 2} : (tensor<4xf32>, tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %b = aten._fused_sgd %p1, %g1, %lr1 {weight_decay = array<f64: 0.0>, momentum = array<f64: 0.0>, dampening = array<f64: 0.0>,
      groups = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>,
      spmd.segment = 2} : (tensor<6xf32>, tensor<6xf32>, tensor<f64>) -> tensor<6xf32>
  return %a, %b : tensor<4xf32>, tensor<6xf32>
}

// Flags that differ cannot be said per group.
// CHECK-LABEL: @flags(
// CHECK-COUNT-2: aten._fused_sgd
func.func @flags(%p0: tensor<4xf32>, %g0: tensor<4xf32>, %lr: tensor<f64>,
                 %p1: tensor<6xf32>, %g1: tensor<6xf32>) -> (tensor<4xf32>, tensor<6xf32>) {
  %a = aten._fused_sgd %p0, %g0, %lr {weight_decay = array<f64: 0.1>, momentum = array<f64: 0.0>, dampening = array<f64: 0.0>,
      groups = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>,
      spmd.segment = 2} : (tensor<4xf32>, tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %b = aten._fused_sgd %p1, %g1, %lr {weight_decay = array<f64: 0.1>, momentum = array<f64: 0.0>, dampening = array<f64: 0.0>,
      groups = array<i64: 0>, maximize = true, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>,
      spmd.segment = 2} : (tensor<6xf32>, tensor<6xf32>, tensor<f64>) -> tensor<6xf32>
  return %a, %b : tensor<4xf32>, tensor<6xf32>
}

// The same where the factor is a tensor.
// CHECK-LABEL: @identity_tensor(
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f64>
// CHECK: %[[ONE:.+]] = aten.scalar_tensor {s = 1.000000e+00 : f64, spmd.segment = 2 : i64} : () -> tensor<f64>
// CHECK: %[[D:.+]]:2 = aten._foreach_mul.List %{{.+}}, %{{.+}}, %[[LR]], %[[ONE]] {spmd.segment = 2 : i64}
// CHECK: aten._foreach_neg %[[D]]#0, %[[D]]#1 {
func.func @identity_tensor(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                           %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>},
                           %lr: tensor<f64>) -> (tensor<4xf32>, tensor<6xf32>) {
  %d = aten._foreach_mul.Tensor %p0, %lr {spmd.segment = 2} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %n:2 = aten._foreach_neg %d, %p1 {spmd.segment = 2} : (tensor<4xf32>, tensor<6xf32>) -> (tensor<4xf32>, tensor<6xf32>)
  return %n#0, %n#1 : tensor<4xf32>, tensor<6xf32>
}

// An op that was extended has a longer list itself: what is before it follows.
// CHECK-LABEL: @identity_chain(
// CHECK: %[[D:.+]]:2 = aten._foreach_mul.ScalarList %{{.+}}, %{{.+}} {scalars = [7.500000e-01, 1], spmd.segment = 2 : i64}
// CHECK: %[[E:.+]]:2 = aten._foreach_add.ScalarList %[[D]]#0, %[[D]]#1 {scalars = [2.500000e-01, 0], spmd.segment = 2 : i64}
// CHECK: aten._foreach_neg %[[E]]#0, %[[E]]#1 {
func.func @identity_chain(%p0: tensor<4xf32> {spmd.arg = #spmd.param<"a", trainable>},
                          %p1: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>}) -> (tensor<4xf32>, tensor<6xf32>) {
  %d = aten._foreach_mul.Scalar %p0 {scalar = 0.75 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %e = aten._foreach_add.Scalar %d {scalar = 0.25 : f64, spmd.segment = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %n:2 = aten._foreach_neg %e, %p1 {spmd.segment = 2} : (tensor<4xf32>, tensor<6xf32>) -> (tensor<4xf32>, tensor<6xf32>)
  return %n#0, %n#1 : tensor<4xf32>, tensor<6xf32>
}
