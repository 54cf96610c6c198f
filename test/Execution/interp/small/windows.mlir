// Windows that reach beyond the image: of a pool that rounds up, and of a convolution with a stride and padding.

// RUN: spmd-opt %s --spmd-convert-aten-to-kernel -o %t.mlir
// RUN: spmd-interpret %t.mlir --compare=%s --rtol=1e-6 | FileCheck %s
// CHECK: outputs

module attributes {spmd.phases = ["forward", "backward"]} {
  func.func @step(%x: tensor<2x3x5x5xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}, %w: tensor<4x3x3x3xf32> {spmd.arg = #spmd.batch<"w", dim = none>}, %g: tensor<2x4x3x3xf32> {spmd.arg = #spmd.batch<"g", dim = 0>}) -> (tensor<2x3x3x3xf32> {spmd.result = #spmd.output<"0">}, tensor<2x3x3x3xi64> {spmd.result = #spmd.output<"1">}, tensor<2x4x3x3xf32> {spmd.result = #spmd.output<"2">}, tensor<2x3x5x5xf32> {spmd.result = #spmd.output<"3">}, tensor<4x3x3x3xf32> {spmd.result = #spmd.output<"4">}) {
    %p:2 = aten.max_pool2d_with_indices %x {ceil_mode = true, dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>, spmd.segment = 0 : i64} : (tensor<2x3x5x5xf32>) -> (tensor<2x3x3x3xf32>, tensor<2x3x3x3xi64>)
    %y = aten.convolution %x, %w {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>, spmd.segment = 0 : i64} : (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x3xf32>
    %d:2 = aten.convolution_backward %g, %x, %w {dilation = array<i64: 1, 1>, groups = 1 : i64, output_mask = array<i1: true, true, false>, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, resultSegmentSizes = array<i32: 1, 1, 0>, stride = array<i64: 2, 2>, spmd.segment = 1 : i64} : (tensor<2x4x3x3xf32>, tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>) -> (tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>)
    return %p#0, %p#1, %y, %d#0, %d#1 : tensor<2x3x3x3xf32>, tensor<2x3x3x3xi64>, tensor<2x4x3x3xf32>, tensor<2x3x5x5xf32>, tensor<4x3x3x3xf32>
  }
}
