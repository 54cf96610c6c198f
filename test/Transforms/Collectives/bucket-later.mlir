// RUN: spmd-opt %s --spmd-bucket-collectives | FileCheck %s

// A value that is there before the first need joins its message, though it is needed
// much later; small ops that used it go below the message. A message does not take
// what depends on it.

spmd.mesh @mesh ["data" = 2]

// CHECK: func.func @step(%[[A:.*]]: tensor<f32>, %[[X:.*]]: tensor<80x8xf32>)
// CHECK-NEXT: %[[B:.*]] = aten.sum.dim_IntList %[[X]]
// CHECK-NEXT: %[[R:.*]]:2 = spmd.all_reduce [sum, max] %[[A]], %[[B]]
// CHECK-NEXT: %[[A2:.*]] = aten.sqrt %[[R]]#0
// CHECK-NEXT: %[[C:.*]] = aten.mul.Tensor %[[A2]], %[[R]]#1
// CHECK-NEXT: %[[D:.*]] = spmd.all_reduce [sum] %[[C]]
// CHECK-NEXT: %[[Y:.*]] = aten.mul.Tensor %[[X]], %[[R]]#1
// CHECK-NEXT: return %[[Y]], %[[D]]
func.func @step(%a: tensor<f32>, %x: tensor<80x8xf32>) -> (tensor<80x8xf32>, tensor<f32>) {
  %0 = spmd.all_reduce [sum] %a on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  %1 = aten.sqrt %0 : (tensor<f32>) -> tensor<f32>
  %b = aten.sum.dim_IntList %x {dim = array<i64: 0, 1>} : (tensor<80x8xf32>) -> tensor<f32>
  %2 = spmd.all_reduce [max] %b on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  %3 = aten.mul.Tensor %1, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %4 = spmd.all_reduce [sum] %3 on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  %5 = aten.mul.Tensor %x, %2 : (tensor<80x8xf32>, tensor<f32>) -> tensor<80x8xf32>
  return %5, %4 : tensor<80x8xf32>, tensor<f32>
}
