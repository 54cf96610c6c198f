// Rows whose target the loss ignores have no gradient, though the kernels know the sum of a row's gradients without
// adding them up.

// RUN: spmd-opt %s --spmd-convert-aten-to-kernel -o %t.mlir
// RUN: spmd-interpret %t.mlir --compare=%s --rtol=1e-6 | FileCheck %s
// CHECK: outputs

module attributes {spmd.phases = ["forward", "backward"]} {
  func.func @step(%x: tensor<64x5xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}, %y: tensor<64xi64> {spmd.arg = #spmd.batch<"y", dim = 0>, spmd.ignore_index = -100 : i64, spmd.index_bound = 5 : i64}, %one: tensor<f32> {spmd.arg = #spmd.batch<"one", dim = none>}) -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<f32> {spmd.result = #spmd.output<"1">}, tensor<64x5xf32> {spmd.result = #spmd.output<"2">}) {
    %p = aten._log_softmax %x {dim = 1 : i64, half_to_float = false, spmd.segment = 0 : i64} : (tensor<64x5xf32>) -> tensor<64x5xf32>
    %l, %n = aten.nll_loss_forward %p, %y {reduction = 1 : i64, ignore_index = -100 : i64, spmd.segment = 0 : i64} : (tensor<64x5xf32>, tensor<64xi64>) -> (tensor<f32>, tensor<f32>)
    %dp = aten.nll_loss_backward %one, %p, %y, %n {reduction = 1 : i64, ignore_index = -100 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<64x5xf32>, tensor<64xi64>, tensor<f32>) -> tensor<64x5xf32>
    %dx = aten._log_softmax_backward_data %dp, %p {dim = 1 : i64, input_dtype = f32, spmd.segment = 1 : i64} : (tensor<64x5xf32>, tensor<64x5xf32>) -> tensor<64x5xf32>
    return %l, %n, %dx : tensor<f32>, tensor<f32>, tensor<64x5xf32>
  }
}
