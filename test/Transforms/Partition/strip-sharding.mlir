// RUN: spmd-opt %s --spmd-strip-sharding | FileCheck %s

// CHECK: func.func @step(%[[X:.*]]: tensor<4x16xf32>
// How results and batch inputs were cut stays as an attribute, for the runtime.
// CHECK-SAME: -> (tensor<4x16xf32> {spmd.layout = #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>})
// CHECK: aten.relu %[[X]] : (tensor<4x16xf32>) -> tensor<4x16xf32>
func.func @step(%x: tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>) -> tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>> {
  %0 = aten.relu %x : (tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>) -> tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>
  return %0 : tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>
}
