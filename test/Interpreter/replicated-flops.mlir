// Products whose operands are the same on all ranks are counted: right, but no faster than on one rank.
// RUN: spmd-interpret %s | FileCheck %s
// CHECK: replicated matmul flops: 75.0%

#rows = #spmd.sharding<global = [4, 8], [shard<0, 1, 2>]>
#all = #spmd.sharding<global = [4, 8], [replicated]>
#weight = #spmd.sharding<global = [8, 8], [replicated]>
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<2x8xf32, #rows> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %w: tensor<8x8xf32, #weight> {spmd.arg = #spmd.param<"w", trainable>})
    -> (tensor<2x8xf32, #rows> {spmd.result = #spmd.output<"sharded">},
        tensor<4x8xf32, #all> {spmd.result = #spmd.output<"replicated">}) {
  // 2 x 8 x 8 on each of two ranks, and 4 x 8 x 8 and 2 x 8 x 8 that both do.
  %all = spmd.all_gather %x on @mesh ["data"] dim 0 pre 1 total 4 : tensor<2x8xf32, #rows> -> tensor<4x8xf32, #all>
  %y = aten.mm %x, %w : (tensor<2x8xf32, #rows>, tensor<8x8xf32, #weight>) -> tensor<2x8xf32, #rows>
  %z = aten.mm %all, %w : (tensor<4x8xf32, #all>, tensor<8x8xf32, #weight>) -> tensor<4x8xf32, #all>
  %half = aten.slice.Tensor %all {dim = 0 : i64, start = 0 : i64, end = 2 : i64} : (tensor<4x8xf32, #all>) -> tensor<2x8xf32>
  %v = aten.mm %half, %w : (tensor<2x8xf32>, tensor<8x8xf32, #weight>) -> tensor<2x8xf32>
  return %y, %z : tensor<2x8xf32, #rows>, tensor<4x8xf32, #all>
}
