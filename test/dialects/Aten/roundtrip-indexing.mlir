// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// Printing and parsing of every op of AtenIndexing.td.

// CHECK-LABEL: @gather_rows(
// CHECK: aten.gather_rows %arg0, %arg1 {batch_dims = 1 : i64} : (tensor<2x5x3xf32>, tensor<2x4xi64>) -> tensor<2x4x3xf32>
func.func @gather_rows(%arg0: tensor<2x5x3xf32>, %arg1: tensor<2x4xi64>) -> tensor<2x4x3xf32> {
  %0 = aten.gather_rows %arg0, %arg1 {batch_dims = 1 : i64} : (tensor<2x5x3xf32>, tensor<2x4xi64>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}

// CHECK-LABEL: @scatter_rows(
// CHECK: aten.scatter_rows %arg0, %arg1, %arg2 {reduce = "amax", rows = 5 : i64} : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
// CHECK: aten.scatter_rows %arg1, %arg2 {reduce = "sum", rows = 5 : i64} : (tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
func.func @scatter_rows(%arg0: tensor<5x3xf32>, %arg1: tensor<4xi64>, %arg2: tensor<4x3xf32>) -> tensor<5x3xf32> {
  %0 = aten.scatter_rows %arg0, %arg1, %arg2 {rows = 5 : i64, reduce = "amax"} : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %1 = aten.scatter_rows %arg1, %arg2 {rows = 5 : i64, batch_dims = 0 : i64, reduce = "sum"} : (tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}

// CHECK-LABEL: @check_index(
// CHECK: aten.check_index %arg0 {high = 5 : i64, ignore_index = -100 : i64, low = 0 : i64, use = "embedding"} : (tensor<4xi64>) -> tensor<4xi64>
func.func @check_index(%arg0: tensor<4xi64>) -> tensor<4xi64> {
  %0 = aten.check_index %arg0 {low = 0 : i64, high = 5 : i64, ignore_index = -100 : i64, use = "embedding"} : (tensor<4xi64>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// CHECK-LABEL: @sort_stable(
// CHECK: %values, %indices = aten.sort.stable %arg0 {descending = true, dim = 1 : i64} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xi64>)
func.func @sort_stable(%arg0: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xi64>) {
  %0, %1 = aten.sort.stable %arg0 {dim = 1 : i64, descending = true} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xi64>)
  return %0, %1 : tensor<4x6xf32>, tensor<4x6xi64>
}
