// A truth value filled with a whole number is whether that is not zero.
// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

// CHECK: arith.constant true
func.func @f(%self: tensor<8xi1>, %mask: tensor<8xi1>) -> tensor<8xi1> {
  %0 = aten.masked_fill.Scalar %self, %mask {value = 10 : i64} : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
  return %0 : tensor<8xi1>
}
