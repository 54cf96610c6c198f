// RUN: spmd-opt %s -spmd-strip-sharding | FileCheck %s

spmd.mesh @mesh ["data" = 2]

// Types lose their encoding; batch inputs and outputs keep it as an attribute, new values of arguments do not.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %{{.*}}: tensor<4xf32> {spmd.arg = #spmd.buffer<"b">}
// CHECK-SAME: %{{.*}}: tensor<4x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>, spmd.layout = #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>})
// CHECK-SAME: -> (tensor<4x16xf32> {spmd.layout = #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>, spmd.result = #spmd.output<"">}
// CHECK-SAME: tensor<4xf32> {spmd.result = #spmd.update<#spmd.buffer<"b">>})
func.func @step(
    %b: tensor<4xf32, #spmd.sharding<global = [4], [replicated]>> {spmd.arg = #spmd.buffer<"b">},
    %x: tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>> {spmd.result = #spmd.output<"">},
        tensor<4xf32, #spmd.sharding<global = [4], [replicated]>> {spmd.result = #spmd.update<#spmd.buffer<"b">>}) {
  // CHECK: aten.relu %{{.*}} : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = aten.relu %x : (tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>)
      -> tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>
  return %y, %b : tensor<4x16xf32, #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>>,
                  tensor<4xf32, #spmd.sharding<global = [4], [replicated]>>
}
