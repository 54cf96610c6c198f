// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenRandom.td.

// CHECK-LABEL: @philox_uniform(
// CHECK: aten.philox_uniform %arg0, %arg1, %arg2 {stream = 3 : i64} : (tensor<i64>, tensor<i64>, tensor<4x6xi64>) -> tensor<4x6xf32>
func.func @philox_uniform(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<4x6xi64>) -> tensor<4x6xf32> {
  %0 = aten.philox_uniform %arg0, %arg1, %arg2 {stream = 3 : i64} : (tensor<i64>, tensor<i64>, tensor<4x6xi64>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: @philox_uniform__1(
// CHECK: aten.philox_uniform %arg0, %arg1, %arg2 {stream = 3 : i64, word = 1 : i64} : (tensor<i64>, tensor<i64>, tensor<4xi64>) -> tensor<4xf32>
func.func @philox_uniform__1(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<4xi64>) -> tensor<4xf32> {
  %0 = aten.philox_uniform %arg0, %arg1, %arg2 {stream = 3 : i64, word = 1 : i64} : (tensor<i64>, tensor<i64>, tensor<4xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
