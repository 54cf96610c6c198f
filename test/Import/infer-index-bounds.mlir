// RUN: spmd-opt %s -split-input-file -spmd-infer-index-bounds | FileCheck %s

// CHECK-LABEL: func.func @step
// A parameter is no input.
// CHECK-SAME: %[[W:.*]]: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>}
// CHECK-SAME: {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.index_bound = 65 : i64}
// A label may be the ignored one; a number that an embedding also reads may not.
// CHECK-SAME: {spmd.arg = #spmd.batch<"y", dim = 0>, spmd.ignore_index = -100 : i64, spmd.index_bound = 4 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"z", dim = 0>, spmd.index_bound = 4 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"s", dim = 0>})
func.func @step(%w: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<2x3xi64> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %y: tensor<2x3xi64> {spmd.arg = #spmd.batch<"y", dim = 0>},
                %z: tensor<6xi64> {spmd.arg = #spmd.batch<"z", dim = 0>},
                %s: tensor<6x4xf32> {spmd.arg = #spmd.batch<"s", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<f32> {spmd.result = #spmd.output<"1">},
        tensor<2x3x4xf32> {spmd.result = #spmd.output<"2">}, tensor<6x4xf32> {spmd.result = #spmd.output<"3">}) {
  %e = aten.embedding %w, %x : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %t = aten.view %y {size = array<i64: 6>} : (tensor<2x3xi64>) -> tensor<6xi64>
  %l, %n = aten.nll_loss_forward %s, %t {reduction = 1 : i64, ignore_index = -100 : i64}
      : (tensor<6x4xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<f32>)
  %m, %o = aten.nll_loss_forward %s, %z {reduction = 1 : i64, ignore_index = -100 : i64}
      : (tensor<6x4xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<f32>)
  %f = aten.embedding %w, %z : (tensor<65x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  return %l, %m, %e, %f : tensor<f32>, tensor<f32>, tensor<2x3x4xf32>, tensor<6x4xf32>
}

// -----

// Ids may come as another integer type, or put together; of numbers computed from them nothing is known.
// CHECK-LABEL: func.func @step
// CHECK-SAME: {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.index_bound = 65 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"y", dim = 0>, spmd.index_bound = 65 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"f", dim = 0>})
func.func @step(%w: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<2x3xi32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %y: tensor<2x3xi64> {spmd.arg = #spmd.batch<"y", dim = 0>},
                %f: tensor<2x3xf32> {spmd.arg = #spmd.batch<"f", dim = 0>})
    -> (tensor<4x3x4xf32> {spmd.result = #spmd.output<"0">}, tensor<2x3x4xf32> {spmd.result = #spmd.output<"1">}) {
  %c = aten._to_copy %x {dtype = i64} : (tensor<2x3xi32>) -> tensor<2x3xi64>
  %b = aten.cat %c, %y {dim = 0 : i64} : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<4x3xi64>
  %e = aten.embedding %w, %b : (tensor<65x4xf32>, tensor<4x3xi64>) -> tensor<4x3x4xf32>
  %i = aten._to_copy %f {dtype = i64} : (tensor<2x3xf32>) -> tensor<2x3xi64>
  %g = aten.embedding %w, %i : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  return %e, %g : tensor<4x3x4xf32>, tensor<2x3x4xf32>
}
