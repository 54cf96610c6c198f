// RUN: spmd-opt %s --spmd-bucket-collectives --spmd-start-collectives --spmd-verify-schedule | FileCheck %s

spmd.mesh @mesh ["data" = 2]

// A message has one element type: the loss sums travel together, the count of integers
// by itself.
// CHECK: func.func @step(%[[S:.*]]: tensor<f32>, %[[N:.*]]: tensor<i64>, %[[T:.*]]: tensor<f32>)
// CHECK-DAG: spmd.all_reduce_start [sum, sum] %[[S]], %[[T]] on @mesh
// CHECK-DAG: spmd.all_reduce_start [sum] %[[N]] on @mesh
func.func @step(%s: tensor<f32>, %n: tensor<i64>, %t: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = spmd.all_reduce [sum] %s on @mesh ["data"] {spmd.segment = 0} : (tensor<f32>) -> tensor<f32>
  %1 = spmd.all_reduce [sum] %n on @mesh ["data"] {spmd.segment = 0} : (tensor<i64>) -> tensor<i64>
  %2 = spmd.all_reduce [sum] %t on @mesh ["data"] {spmd.segment = 0} : (tensor<f32>) -> tensor<f32>
  %3 = aten.div.Tensor %0, %1 {spmd.segment = 0} : (tensor<f32>, tensor<i64>) -> tensor<f32>
  %4 = aten.add.Tensor %3, %2 {spmd.segment = 0} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %4, %3 : tensor<f32>, tensor<f32>
}
