// RUN: spmd-opt %s --spmd-guard-updates -split-input-file | FileCheck %s --check-prefixes=CHECK,GLOBAL
// RUN: spmd-opt %s "--spmd-guard-updates=view=local ranks=4" -split-input-file | FileCheck %s --check-prefixes=CHECK,LOCAL
// RUN: spmd-opt %s --spmd-guard-updates=enable=false -split-input-file | FileCheck %s --check-prefix=OFF

// A parameter keeps its value where a row number is bad; seen as one rank's program, where any rank's is.
// OFF-NOT: aten.where.self
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<9x4xf32>
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8xi64>
func.func @step(%w: tensor<9x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8xi64> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">},
        tensor<9x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  // CHECK: %[[LOW:.*]] = aten.lt.Scalar %{{.*}} {other = 0
  // CHECK: %[[HIGH:.*]] = aten.ge.Scalar %{{.*}} {other = 9
  // CHECK: %[[OUT:.*]] = aten.logical_or %[[LOW]], %[[HIGH]]
  // GLOBAL: %[[ANY:.*]] = aten.amax
  // GLOBAL-NOT: c10d
  // LOCAL: %[[MINE:.*]] = aten.amax
  // LOCAL: %[[ANY:.*]] = aten.c10d_all_reduce %[[MINE]] {kind = "max", ranks = 4
  // CHECK: %[[BAD:.*]] = aten.gt.Scalar %[[ANY]] {other = 0
  // CHECK: %[[LOSS:.*]] = aten.sum
  // CHECK: %[[NEW:.*]] = aten.sub.Tensor %[[W]]
  // CHECK: %[[KEPT:.*]] = aten.where.self %[[BAD]], %[[W]], %[[NEW]]
  // CHECK: return %[[LOSS]], %[[KEPT]]
  %c = aten.check_index %x {low = 0 : i64, high = 9 : i64, use = "embedding"} : (tensor<8xi64>) -> tensor<8xi64>
  %y = aten.embedding %w, %c : (tensor<9x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  %s = aten.sum.dim_IntList %y {dim = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
  %n = aten.sub.Tensor %w, %s : (tensor<9x4xf32>, tensor<f32>) -> tensor<9x4xf32>
  return %s, %n : tensor<f32>, tensor<9x4xf32>
}

// -----

// Where nothing is checked nothing is kept.
// CHECK-LABEL: func.func @step(
// CHECK-NOT: aten.where.self
func.func @step(%w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>})
    -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %n = aten.neg %w : (tensor<4xf32>) -> tensor<4xf32>
  return %n : tensor<4xf32>
}
