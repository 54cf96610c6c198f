// What is left is what the test script wants to see: one matrix product.
// RUN: spmd-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-product.sh' | FileCheck %s

// CHECK-NOT: aten.relu
// CHECK: func.func @product
// CHECK: aten.mm
// CHECK-NOT: aten.relu
func.func @activation(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = aten.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func @product(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = aten.mm %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func @both(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = aten.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
