// RUN: spmd-opt %s -split-input-file -spmd-infer-index-bounds | FileCheck %s

// CHECK-LABEL: func.func @step
// A parameter is no input.
// CHECK-SAME: %[[W:.*]]: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>}
// CHECK-SAME: {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.index_bound = 65 : i64}
// A label may be the ignored one; a number that an embedding also reads may not.
// CHECK-SAME: {spmd.arg = #spmd.batch<"y", dim = 0>, spmd.ignore_index = -100 : i64, spmd.index_bound = 4 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"z", dim = 0>, spmd.index_bound = 4 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"s", dim = 0>})
// CHECK-NOT: check_index
func.func @step(%w: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<2x3xi64> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %y: tensor<2x3xi64> {spmd.arg = #spmd.batch<"y", dim = 0>},
                %z: tensor<6xi64> {spmd.arg = #spmd.batch<"z", dim = 0>},
                %s: tensor<6x4xf32> {spmd.arg = #spmd.batch<"s", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<f32> {spmd.result = #spmd.output<"1">},
        tensor<2x3x4xf32> {spmd.result = #spmd.output<"2">}, tensor<6x4xf32> {spmd.result = #spmd.output<"3">}) {
  %xc = aten.check_index %x {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %e = aten.embedding %w, %xc : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %t = aten.view %y {size = array<i64: 6>} : (tensor<2x3xi64>) -> tensor<6xi64>
  %tc = aten.check_index %t {low = 0 : i64, high = 4 : i64, ignore_index = -100 : i64, use = "nll_loss"} : (tensor<6xi64>) -> tensor<6xi64>
  %l, %n = aten.nll_loss_forward %s, %tc {reduction = 1 : i64, ignore_index = -100 : i64}
      : (tensor<6x4xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<f32>)
  %zc = aten.check_index %z {low = 0 : i64, high = 4 : i64, ignore_index = -100 : i64, use = "nll_loss"} : (tensor<6xi64>) -> tensor<6xi64>
  %m, %o = aten.nll_loss_forward %s, %zc {reduction = 1 : i64, ignore_index = -100 : i64}
      : (tensor<6x4xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<f32>)
  %zd = aten.check_index %z {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<6xi64>) -> tensor<6xi64>
  %f = aten.embedding %w, %zd : (tensor<65x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  return %l, %m, %e, %f : tensor<f32>, tensor<f32>, tensor<2x3x4xf32>, tensor<6x4xf32>
}

// -----

// Ids may come as another integer type, or put together. Numbers that are computed are checked where they are used,
// unless the ops that compute them say enough.
// CHECK-LABEL: func.func @step
// CHECK-SAME: {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.index_bound = 65 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"y", dim = 0>, spmd.index_bound = 65 : i64}
// CHECK-SAME: {spmd.arg = #spmd.batch<"f", dim = 0>})
// CHECK: %[[CAST:.*]] = aten._to_copy %{{.*}} : (tensor<2x3xf32>)
// CHECK: aten.check_index %[[CAST]] {high = 65
// CHECK: %[[PLUS:.*]] = aten.add.Scalar
// CHECK: aten.check_index %[[PLUS]] {high = 65
// CHECK: aten.clamp
// CHECK-NOT: check_index
func.func @step(%w: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<2x3xi32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %y: tensor<2x3xi64> {spmd.arg = #spmd.batch<"y", dim = 0>},
                %f: tensor<2x3xf32> {spmd.arg = #spmd.batch<"f", dim = 0>})
    -> (tensor<4x3x4xf32> {spmd.result = #spmd.output<"0">}, tensor<2x3x4xf32> {spmd.result = #spmd.output<"1">},
        tensor<2x3x4xf32> {spmd.result = #spmd.output<"2">}, tensor<2x3x4xf32> {spmd.result = #spmd.output<"3">}) {
  %c = aten._to_copy %x {dtype = i64} : (tensor<2x3xi32>) -> tensor<2x3xi64>
  %b = aten.cat %c, %y {dim = 0 : i64} : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<4x3xi64>
  %bc = aten.check_index %b {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<4x3xi64>) -> tensor<4x3xi64>
  %e = aten.embedding %w, %bc : (tensor<65x4xf32>, tensor<4x3xi64>) -> tensor<4x3x4xf32>
  %i = aten._to_copy %f {dtype = i64} : (tensor<2x3xf32>) -> tensor<2x3xi64>
  %ic = aten.check_index %i {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %g = aten.embedding %w, %ic : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %p = aten.add.Scalar %y {other = 1 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %pc = aten.check_index %p {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %h = aten.embedding %w, %pc : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %k = aten.clamp %p {min = 0 : i64, max = 64 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %kc = aten.check_index %k {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %j = aten.embedding %w, %kc : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  return %e, %g, %h, %j : tensor<4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// Clamped to what is one too high for the table.
// CHECK-LABEL: func.func @step
// CHECK: %[[CLAMPED:.*]] = aten.clamp
// CHECK: aten.check_index %[[CLAMPED]] {high = 65
func.func @step(%w: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %y: tensor<2x3xi64> {spmd.arg = #spmd.batch<"y", dim = 0>})
    -> (tensor<2x3x4xf32> {spmd.result = #spmd.output<"0">}) {
  %k = aten.clamp %y {min = 0 : i64, max = 65 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %kc = aten.check_index %k {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %e = aten.embedding %w, %kc : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  return %e : tensor<2x3x4xf32>
}

// -----

// Some are what a mask fills in.
// CHECK-LABEL: func.func @step
// CHECK: %[[FILLED:.*]] = aten.masked_fill.Scalar
// CHECK: aten.check_index %[[FILLED]] {high = 65
func.func @step(%w: tensor<65x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %y: tensor<2x3xi64> {spmd.arg = #spmd.batch<"y", dim = 0>},
                %m: tensor<2x3xi1> {spmd.arg = #spmd.batch<"m", dim = 0>})
    -> (tensor<2x3x4xf32> {spmd.result = #spmd.output<"0">}) {
  %k = aten.clamp %y {min = 0 : i64, max = 64 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %f = aten.masked_fill.Scalar %k, %m {value = 70 : i64} : (tensor<2x3xi64>, tensor<2x3xi1>) -> tensor<2x3xi64>
  %kc = aten.check_index %f {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %e = aten.embedding %w, %kc : (tensor<65x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  return %e : tensor<2x3x4xf32>
}
