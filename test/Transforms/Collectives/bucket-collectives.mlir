// RUN: spmd-opt %s --spmd-bucket-collectives | FileCheck %s

spmd.mesh @mesh ["data" = 2]

// The loss sum and the token count are one message: the division between them is
// no need. The norm depends on it and is a message of its own; so is what is only
// there after the first need.
// CHECK: func.func @step(%[[S:.*]]: tensor<f32>, %[[N:.*]]: tensor<f32>, %[[X:.*]]: tensor<80x8xf32>)
// CHECK-NEXT: %[[R:.*]]:2 = spmd.all_reduce [sum, sum] %[[S]], %[[N]] on @mesh ["data"]
// CHECK-NEXT: %[[L:.*]] = aten.div.Tensor %[[R]]#0, %[[R]]#1
// CHECK-NEXT: %[[Y:.*]] = aten.div.Tensor %[[X]], %[[R]]#1
// CHECK-NEXT: %[[P:.*]] = aten.linalg_vector_norm %[[Y]]
// CHECK-NEXT: %[[Q:.*]] = spmd.all_reduce [norm2] %[[P]]
// CHECK-NEXT: return %[[L]], %[[Q]]
func.func @step(%s: tensor<f32>, %n: tensor<f32>, %x: tensor<80x8xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = spmd.all_reduce [sum] %s on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  %1 = spmd.all_reduce [sum] %n on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  %2 = aten.div.Tensor %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %3 = aten.div.Tensor %x, %1 : (tensor<80x8xf32>, tensor<f32>) -> tensor<80x8xf32>
  %4 = aten.linalg_vector_norm %3 {dim = array<i64: 0, 1>} : (tensor<80x8xf32>) -> tensor<f32>
  %5 = spmd.all_reduce [norm2] %4 on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  return %2, %5 : tensor<f32>, tensor<f32>
}

