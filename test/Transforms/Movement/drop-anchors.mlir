// RUN: spmd-opt %s --spmd-drop-anchors | FileCheck %s

// One after the other, of a partitioned value, and one that nobody reads.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>
// CHECK-NEXT: %[[Y:.*]] = aten.relu %[[X]]
// CHECK-NEXT: return %[[Y]]
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>)
    -> tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>> {
  %0 = aten.anchor %x {name = "first"} : (tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>) -> tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>
  %1 = aten.anchor %0 {name = "second"} : (tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>) -> tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>
  %2 = aten.relu %1 : (tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>) -> tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>
  %3 = aten.anchor %2 {name = "unread"} : (tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>) -> tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>
  return %2 : tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>
}
