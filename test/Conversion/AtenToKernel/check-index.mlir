// RUN: spmd-opt %s -spmd-convert-aten-to-kernel | FileCheck %s --check-prefix=HOST
// RUN: spmd-opt %s -spmd-convert-aten-to-kernel=clamp-indices=true | FileCheck %s

// Where a check ends the step at once, what comes after it reads by the numbers as they are; where it is looked at when
// the step is over, by the nearest that is inside. The ignored one stays: a loss compares with it.

// HOST: kernel.check_index %[[IDS:.*]] in 0 to 7 or -1 for "embedding" : tensor<6xi64>
// HOST-NOT: arith.maxsi

// CHECK: kernel.check_index %[[IDS:.*]] in 0 to 7 or -1 for "embedding" : tensor<6xi64>
// CHECK: kernel.cluster
// CHECK: %[[LOW:.*]] = arith.maxsi %[[ID:.*]], %{{.*}} : i64
// CHECK: %[[NEAREST:.*]] = arith.minsi %[[LOW]], %{{.*}} : i64
// CHECK: %[[IGNORED:.*]] = arith.cmpi eq, %[[ID]], %{{.*}} : i64
// CHECK: arith.select %[[IGNORED]], %[[ID]], %[[NEAREST]] : i64
func.func @step(%table: tensor<7x4xf32>, %ids: tensor<6xi64>) -> tensor<6x4xf32> {
  %0 = aten.check_index %ids {low = 0 : i64, high = 7 : i64, ignore_index = -1 : i64, use = "embedding"} : (tensor<6xi64>) -> tensor<6xi64>
  %1 = aten.gather_rows %table, %0 {batch_dims = 0 : i64} : (tensor<7x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}
