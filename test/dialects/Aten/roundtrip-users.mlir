// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// What is the user's own: functions in libraries, collectives that a step calls.

// CHECK-LABEL: @custom_call(
// CHECK: aten.custom_call %arg0, %arg1 {arguments = [unit, unit, 2.000000e+00, array<i64: 3, 4>], hash = "0123", library = "libgained.so", op = "mylib::gained", reduce = ["", "sum"], sharding = "row column, column -> row column, column", symbol = "gained"} : (tensor<4x12xf32>, tensor<12xf32>) -> (tensor<4x12xf32>, tensor<12xf32>)
func.func @custom_call(%arg0: tensor<4x12xf32>, %arg1: tensor<12xf32>) -> (tensor<4x12xf32>, tensor<12xf32>) {
  %0:2 = aten.custom_call %arg0, %arg1 {arguments = [unit, unit, 2.000000e+00 : f64, array<i64: 3, 4>], hash = "0123", library = "libgained.so", op = "mylib::gained", reduce = ["", "sum"], sharding = "row column, column -> row column, column", symbol = "gained"} : (tensor<4x12xf32>, tensor<12xf32>) -> (tensor<4x12xf32>, tensor<12xf32>)
  return %0#0, %0#1 : tensor<4x12xf32>, tensor<12xf32>
}

// CHECK-LABEL: @custom_kernel(
// CHECK: aten.custom_call %arg0, %arg1 {arguments = [unit, 2.000000e+00, unit], cubins = ["sm_90 0123 gained.cubin"], launch = "gained<<<(row * column + 255) / 256, dim3(64, 2)>>>(x, gain, float power, result, int row)", names = ["x", "power", "gain"], op = "mylib::gained", reduce = [""], sharding = "row column, column -> row column"} : (tensor<4x12xf32>, tensor<12xf32>) -> tensor<4x12xf32>
func.func @custom_kernel(%arg0: tensor<4x12xf32>, %arg1: tensor<12xf32>) -> tensor<4x12xf32> {
  %0 = aten.custom_call %arg0, %arg1 {arguments = [unit, 2.000000e+00 : f64, unit], cubins = ["sm_90 0123 gained.cubin"], launch = "gained<<<(row * column + 255) / 256, dim3(64, 2)>>>(x, gain, float power, result, int row)", names = ["x", "power", "gain"], op = "mylib::gained", reduce = [""], sharding = "row column, column -> row column"} : (tensor<4x12xf32>, tensor<12xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}

// CHECK-LABEL: @c10d_all_reduce(
// CHECK: aten.c10d_all_reduce %arg0 {kind = "avg", ranks = 4 : i64} : (tensor<8x3xf32>) -> tensor<8x3xf32>
func.func @c10d_all_reduce(%arg0: tensor<8x3xf32>) -> tensor<8x3xf32> {
  %0 = aten.c10d_all_reduce %arg0 {kind = "avg", ranks = 4 : i64} : (tensor<8x3xf32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// CHECK-LABEL: @c10d_all_gather(
// CHECK: aten.c10d_all_gather %arg0 {ranks = 4 : i64} : (tensor<8x3xf32>) -> tensor<32x3xf32>
func.func @c10d_all_gather(%arg0: tensor<8x3xf32>) -> tensor<32x3xf32> {
  %0 = aten.c10d_all_gather %arg0 {ranks = 4 : i64} : (tensor<8x3xf32>) -> tensor<32x3xf32>
  return %0 : tensor<32x3xf32>
}

// CHECK-LABEL: @c10d_reduce_scatter(
// CHECK: aten.c10d_reduce_scatter %arg0 {kind = "sum", ranks = 4 : i64} : (tensor<8x3xf32>) -> tensor<2x3xf32>
func.func @c10d_reduce_scatter(%arg0: tensor<8x3xf32>) -> tensor<2x3xf32> {
  %0 = aten.c10d_reduce_scatter %arg0 {kind = "sum", ranks = 4 : i64} : (tensor<8x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
