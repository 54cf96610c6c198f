// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

// Residual, statistics and scaling are one pass over the rows. Backward reads the row statistics, sums its columns in
// blocks of rows beside the gradient of the rows, and adds the blocks of both sums in one more kernel.

// CHECK-LABEL: func.func @layer_norm
// CHECK:         %[[F:.*]]:4 = kernel.cluster dims [64, 16] parallel 1
// CHECK-NEXT:        ins(%{{.*}} = %arg0 at (d0, d1) -> (d0 * 16 + d1) : tensor<64x16xf32>,
// CHECK-NEXT:            %{{.*}} = %arg1 at (d0, d1) -> (d0 * 16 + d1) : tensor<64x16xf32>,
// CHECK-NEXT:            %{{.*}} = %arg2 at (d0, d1) -> (d1) : tensor<16xf32>,
// CHECK-NEXT:            %{{.*}} = %arg3 at (d0, d1) -> (d1) : tensor<16xf32>)
// CHECK:           %[[SUM:.*]] = kernel.reduce <add> %[[X:.*]] over [1] : f32
// CHECK:           %[[MEAN:.*]] = arith.divf %[[SUM]]
// CHECK:           %[[D:.*]] = arith.subf %[[X]], %[[MEAN]]
// CHECK:           %[[SQ:.*]] = arith.mulf %[[D]], %[[D]]
// CHECK:           kernel.reduce <add> %[[SQ]] over [1] : f32
// CHECK:           math.sqrt
// CHECK:         %[[DN:.*]] = kernel.gemm
// CHECK-NEXT:    %[[B:.*]]:3 = kernel.cluster dims [32, 2, 16] parallel 1
// CHECK:             = %[[DN]] at (d0, d1, d2) -> (d0 * 32 + d1 * 16 + d2)
// CHECK:             at (d0, d1, d2) -> (d0 * 2 + d1) : tensor<64x1xf32>
// CHECK:           kernel.reduce <add> %{{.*}} over [2] : f32
// CHECK:           kernel.reduce <add> %{{.*}} over [2] : f32
// CHECK:           kernel.reduce <add> %{{.*}} over [1] : f32
// CHECK:           kernel.reduce <add> %{{.*}} over [1] : f32
// CHECK:         kernel.cluster dims [32, 16] parallel 0
// CHECK:             outs(at (d0, d1) -> (d1) : tensor<16xf32>,
// CHECK-NEXT:             at (d0, d1) -> (d1) : tensor<16xf32>)
// CHECK-NOT:     kernel.cluster
func.func @layer_norm(%h: tensor<64x16xf32>, %r: tensor<64x16xf32>, %w: tensor<16xf32>, %b: tensor<16xf32>,
                      %m: tensor<16x16xf32>, %g: tensor<64x16xf32>)
    -> (tensor<64x16xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %x = aten.add.Tensor %h, %r {spmd.segment = 0 : i64} : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
  %y, %mean, %rstd = aten.native_layer_norm %x, %w, %b {normalized_shape = array<i64: 16>, eps = 1.0e-5, operandSegmentSizes = array<i32: 1, 1, 1>, spmd.segment = 0 : i64} : (tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<64x16xf32>, tensor<64x1xf32>, tensor<64x1xf32>)
  %dn = aten.mm %g, %m {spmd.segment = 1 : i64} : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  %dx, %dw, %db = aten.native_layer_norm_backward %dn, %x, %mean, %rstd, %w, %b {normalized_shape = array<i64: 16>, output_mask = array<i1: true, true, true>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1>, spmd.segment = 1 : i64} : (tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x1xf32>, tensor<64x1xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>)
  return %y, %dx, %dw, %db : tensor<64x16xf32>, tensor<64x16xf32>, tensor<16xf32>, tensor<16xf32>
}
