// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

spmd.mesh @mesh ["data" = 2]

// Rotating halves: slices, a negation and their gradients are reads at shifted places in one kernel.
// CHECK-LABEL: func.func @halves
// CHECK:         kernel.cluster dims [6, 8] parallel 1
// CHECK-NEXT:        ins(%{{.*}} = %arg0 at (d0, d1) -> (d0 * 4 + d1) guarded : tensor<6x4xf32>,
// CHECK-NEXT:            %{{.*}} = %arg1 at (d0, d1) -> (d0 * 4 + d1 - 4) guarded : tensor<6x4xf32>)
// CHECK-NOT:     kernel.cluster
func.func @halves(%a: tensor<6x4xf32>, %b: tensor<6x4xf32>) -> tensor<6x8xf32> {
  %0 = aten.slice_backward %a {input_sizes = array<i64: 6, 8>, dim = 1 : i64, start = 0 : i64, end = 4 : i64, step = 1 : i64} : (tensor<6x4xf32>) -> tensor<6x8xf32>
  %1 = aten.slice_backward %b {input_sizes = array<i64: 6, 8>, dim = 1 : i64, start = 4 : i64, end = 8 : i64, step = 1 : i64} : (tensor<6x4xf32>) -> tensor<6x8xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}

// A rank's rows of a replicated value are an offset in its coordinate.
// CHECK-LABEL: func.func @rows
// CHECK:         ins(%{{.*}} = %arg0 at (d0)[s0] -> (d0 + s0 * 12) : tensor<8x3xf32>)
func.func @rows(%x: tensor<8x3xf32>) -> tensor<4x3xf32> {
  %0 = spmd.slice %x on @mesh ["data"] dim 0 pre 1 chunk 4 : tensor<8x3xf32> -> tensor<4x3xf32>
  %1 = aten.neg %0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// Padded rows get the fill by a select on the row's global number.
// CHECK-LABEL: func.func @padding
// CHECK:         kernel.coord 0
// CHECK:         arith.cmpi slt
// CHECK:         arith.select
func.func @padding(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = spmd.mask %x on @mesh ["data"] dim 0 pre 1 chunk 4 total 7 fill 0.0 : tensor<4x3xf32> -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// A reshape that no linear map says is a copy, and what follows reads the copy.
// CHECK-LABEL: func.func @merge
// CHECK:         %[[C:.*]] = kernel.cluster dims [3, 4] parallel
// CHECK-NEXT:        ins(%{{.*}} = %arg0 at (d0, d1) -> (d0 + d1 * 3) : tensor<4x3xf32>)
// CHECK:         kernel.cluster
// CHECK-NEXT:        ins(%{{.*}} = %[[C]] at (d0, d1) -> (d0 + d1 * 6)
func.func @merge(%x: tensor<4x3xf32>) -> tensor<6x2xf32> {
  %0 = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %1 = aten.view %0 {size = array<i64: 2, 6>} : (tensor<3x4xf32>) -> tensor<2x6xf32>
  %2 = aten.permute %1 {dims = array<i64: 1, 0>} : (tensor<2x6xf32>) -> tensor<6x2xf32>
  %3 = aten.neg %2 : (tensor<6x2xf32>) -> tensor<6x2xf32>
  return %3 : tensor<6x2xf32>
}

// An embedding of positions is a slice of the table.
// CHECK-LABEL: func.func @positions
// CHECK-NOT:     kernel.gather_rows
// CHECK:         ins(%{{.*}} = %arg0 at (d0) -> (d0) : tensor<10x3xf32>)
func.func @positions(%table: tensor<10x3xf32>) -> tensor<4x3xf32> {
  %0 = aten.arange.start_step {start = 0 : i64, end = 4 : i64} : () -> tensor<4xi64>
  %1 = aten.embedding %table, %0 : (tensor<10x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  %2 = aten.neg %1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// A table that is a view of a tensor with other rows.
// CHECK-LABEL: func.func @view_as_table
// CHECK:         kernel.gather_rows %arg0, %arg1 rows 10 : (tensor<5x8xf32>, tensor<6xi64>) -> tensor<6x4xf32>
func.func @view_as_table(%table: tensor<5x8xf32>, %ids: tensor<6xi64>) -> tensor<6x4xf32> {
  %rows = aten.view %table {size = array<i64: 10, 4>} : (tensor<5x8xf32>) -> tensor<10x4xf32>
  %result = aten.embedding %rows, %ids : (tensor<10x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  return %result : tensor<6x4xf32>
}
