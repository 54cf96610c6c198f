// Two batches one behind the other, cut between them and inside of one, on 2 ranks; and extremes of rows of which one
// rank has fewer than the other.

// RUN: spmd-opt %s --spmd-assign-shard-units=ranks=2 --spmd-split-means --spmd-partition --spmd-verify-partition -o %t.mlir 2> %t.err
// RUN: spmd-interpret %t.mlir --ranks=2 --compare=%s | FileCheck %s
// One for the result that is a whole batch, one for the slice that needs rows of both ranks.
// CHECK: collectives: all_gather 2 (
// CHECK: collectives: all_reduce 3 (

module @slices attributes {spmd.phases = ["forward"], spmd.step = {format = 1 : i64, name = "slices", torch = "2.13.0"}} {
  spmd.module_tree @tree {
    spmd.module "" class "Net" bases [] params [] buffers [] children []
  }
  func.func @step(%x: tensor<8x3xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}, %y: tensor<8x3xf32> {spmd.arg = #spmd.batch<"y", dim = 0>}, %z: tensor<5x3xf32> {spmd.arg = #spmd.batch<"z", dim = 0>}) -> (tensor<8x3xf32> {spmd.result = #spmd.output<"0">}, tensor<8x3xf32> {spmd.result = #spmd.output<"1">}, tensor<3xf32> {spmd.result = #spmd.output<"2">}, tensor<3xf32> {spmd.result = #spmd.output<"3">}, tensor<3xf32> {spmd.result = #spmd.output<"4">}) {
    %both = aten.cat %x, %y {dim = 0 : i64, spmd.segment = 0 : i64} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<16x3xf32>
    %exp = aten.exp %both {spmd.segment = 0 : i64} : (tensor<16x3xf32>) -> tensor<16x3xf32>
    %second = aten.slice.Tensor %exp {dim = 0 : i64, end = 16 : i64, start = 8 : i64, spmd.segment = 0 : i64} : (tensor<16x3xf32>) -> tensor<8x3xf32>
    %middle = aten.slice.Tensor %exp {dim = 0 : i64, end = 12 : i64, start = 4 : i64, spmd.segment = 0 : i64} : (tensor<16x3xf32>) -> tensor<8x3xf32>
    %positive = aten.exp %z {spmd.segment = 0 : i64} : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %least = aten.amin %positive {dim = array<i64: 0>, spmd.segment = 0 : i64} : (tensor<5x3xf32>) -> tensor<3xf32>
    %negative = aten.neg %positive {spmd.segment = 0 : i64} : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %greatest = aten.amax %negative {dim = array<i64: 0>, spmd.segment = 0 : i64} : (tensor<5x3xf32>) -> tensor<3xf32>
    %sum = aten.sum.dim_IntList %positive {dim = array<i64: 0>, spmd.segment = 0 : i64} : (tensor<5x3xf32>) -> tensor<3xf32>
    return %second, %middle, %least, %greatest, %sum : tensor<8x3xf32>, tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
