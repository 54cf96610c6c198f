// RUN: spmd-opt %s -split-input-file -spmd-flatten-collectives | FileCheck %s

spmd.mesh @mesh ["data" = 2]

// Rows inside a tensor, five of them in chunks of three: the chunks are gathered whole, and the padding is dropped.
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x3xf32> {spmd.arg = #spmd.batch<"x", dim = 1>},
                %g: tensor<6x10xf32> {spmd.arg = #spmd.batch<"g", dim = 1>})
    -> (tensor<4x5xf32> {spmd.result = #spmd.output<"0">}, tensor<6x10xf32> {spmd.result = #spmd.output<"1">},
        tensor<6x5xf32> {spmd.result = #spmd.output<"2">}, tensor<3x10xf32> {spmd.result = #spmd.output<"3">}) {
  // CHECK: %[[G:.*]] = spmd.all_gather %{{.*}} on @mesh ["data"] dim 0 pre 1 total 8 : tensor<4x3xf32> -> tensor<8x3xf32>
  // CHECK: %[[Y:.*]] = kernel.copy %[[G]] pieces [#kernel.piece<0 [4, 3, 1] (d0, d1, d2) -> (d0 * 3 + d1 + d2) to (d0, d1, d2) -> (d0 * 5 + d1 + d2)>
  // CHECK-SAME: #kernel.piece<0 [4, 2, 1] (d0, d1, d2) -> (d0 * 3 + d1 + d2 + 12) to (d0, d1, d2) -> (d0 * 5 + d1 + d2 + 3)>
  %y = spmd.all_gather %x on @mesh ["data"] dim 1 pre 1 total 5 : tensor<4x3xf32> -> tensor<4x5xf32>
  // Flat ones stay.
  // CHECK: spmd.all_gather %{{.*}} on @mesh ["data"] dim 0 pre 1 total 6 : tensor<3x10xf32> -> tensor<6x10xf32>
  %s = spmd.reduce_scatter sum %g on @mesh ["data"] dim 0 pre 1 chunk 3 : tensor<6x10xf32> -> tensor<3x10xf32>
  %f = spmd.all_gather %s on @mesh ["data"] dim 0 pre 1 total 6 : tensor<3x10xf32> -> tensor<6x10xf32>
  // CHECK: %[[SORTED:.*]] = kernel.copy %{{.*}} pieces [#kernel.piece<0 [6, 5, 1]
  // CHECK: %[[H:.*]] = spmd.reduce_scatter_start sum %[[SORTED]] on @mesh ["data"] dim 0 pre 1 chunk 6 stream reduce : tensor<12x5xf32> -> !spmd.handle<tensor<6x5xf32>>
  // CHECK: spmd.wait %[[H]]
  %h = spmd.reduce_scatter_start sum %g on @mesh ["data"] dim 1 pre 1 chunk 5 stream reduce
      : tensor<6x10xf32> -> !spmd.handle<tensor<6x5xf32>>
  %w = spmd.wait %h : !spmd.handle<tensor<6x5xf32>> -> tensor<6x5xf32>
  return %y, %f, %w, %s : tensor<4x5xf32>, tensor<6x10xf32>, tensor<6x5xf32>, tensor<3x10xf32>
}

// -----

// Fewer rows than ranks times chunk: the reduce-scatter sends zeros for the rows that there are not.
// CHECK-LABEL: func.func @step
// CHECK: kernel.copy %{{.*}} pieces [#kernel.piece<0 [1, 2, 1]
// CHECK-SAME: #kernel.piece<0 [1, 1, 1]
// CHECK-SAME: #kernel.piece<zero [1, 1, 1] to (d0, d1, d2) -> (d0 * 2 + d1 + d2 + 3)>] : (tensor<3xf32>) -> tensor<4xf32>
spmd.mesh @mesh ["data" = 2]
func.func @step(%g: tensor<3xf32> {spmd.arg = #spmd.batch<"g", dim = 0>})
    -> (tensor<2xf32> {spmd.result = #spmd.output<"0">}) {
  %s = spmd.reduce_scatter sum %g on @mesh ["data"] dim 0 pre 1 chunk 2 : tensor<3xf32> -> tensor<2xf32>
  return %s : tensor<2xf32>
}
