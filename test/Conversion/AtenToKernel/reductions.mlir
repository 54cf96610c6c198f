// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s
// RUN: spmd-opt --spmd-convert-aten-to-kernel=reduction-blocks=264 %s | FileCheck %s --check-prefix=MANY

// How a sum is cut follows from its shape alone: rows together, columns in blocks of rows.

// CHECK-LABEL: func.func @columns
// CHECK:         kernel.cluster dims [32, 4, 256] parallel 1
// CHECK:           kernel.reduce <add> %{{.*}} over [1] : f32
// CHECK:         kernel.cluster dims [4, 32, 64] parallel 1
// CHECK-NEXT:        ins(%{{.*}} = %{{.*}} at (d0, d1, d2) -> (d0 * 64 + d1 * 256 + d2) : tensor<8192xf32>)
// CHECK-NEXT:        outs(at (d0, d1, d2) -> (d0 * 64 + d2) : tensor<256xf32>)
// CHECK:           kernel.reduce <add> %{{.*}} over [1] : f32
func.func @columns(%x: tensor<128x256xf32>) -> tensor<256xf32> {
  %0 = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<128x256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// A sum of everything: 64 rows of 512, then the 64.
// CHECK-LABEL: func.func @all
// CHECK:         kernel.cluster dims [64, 512] parallel 1
// CHECK:         kernel.cluster dims [64] parallel 0
func.func @all(%x: tensor<128x256xf32>) -> tensor<f32> {
  %0 = aten.mul.Tensor %x, %x : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
  %1 = aten.sum.dim_IntList %0 {dim = array<i64: 0, 1>} : (tensor<128x256xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Batch and pixels of each channel: rows first, then columns.
// CHECK-LABEL: func.func @channels
// CHECK:         kernel.cluster dims [32, 16] parallel 1
// CHECK:           kernel.reduce <add> %{{.*}} over [1] : f32
// CHECK:         kernel.cluster dims [8, 4] parallel 0
// CHECK:           kernel.reduce <add> %{{.*}} over [0] : f32
func.func @channels(%x: tensor<8x4x16xf32>) -> tensor<4xf32> {
  %0 = aten.sum.dim_IntList %x {dim = array<i64: 0, 2>} : (tensor<8x4x16xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A device with room for 264 blocks: 256 of 64 rows, then 32 of 8, then the 32.
// MANY-LABEL: func.func @many_rows
// MANY:         kernel.cluster dims [256, 64, 8] parallel 1
// MANY:         kernel.cluster dims [32, 8, 8] parallel 1
// MANY:         kernel.cluster dims [32, 8] parallel 0
// CHECK-LABEL: func.func @many_rows
// CHECK:         kernel.cluster dims [64, 256, 8] parallel 1
// CHECK:         kernel.cluster dims [64, 8] parallel 0
func.func @many_rows(%x: tensor<16384x8xf32>) -> tensor<8xf32> {
  %0 = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<16384x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A sum over one element is a view: of a sum that is repeated, or of a part of one.
// CHECK-LABEL: @sums_of_one
// CHECK: return {{.*}} : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>
func.func @sums_of_one(%x: tensor<32x4xf32>, %y: tensor<32x8x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) {
  %0 = aten.sum.dim_IntList %x {dim = array<i64: 0>, keepdim = true} : (tensor<32x4xf32>) -> tensor<1x4xf32>
  %1 = aten.cat %0, %0 {dim = 0 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %2 = aten.view %1 {size = array<i64: 1, 2, 4>} : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %3 = aten.sum.dim_IntList %2 {dim = array<i64: 0>, keepdim = false} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %4 = aten.expand %0 {size = array<i64: 2, 4>} : (tensor<1x4xf32>) -> tensor<2x4xf32>
  %5 = aten.view %4 {size = array<i64: 1, 2, 4>} : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %6 = aten.sum.dim_IntList %5 {dim = array<i64: 0>, keepdim = false} : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %7 = aten.sum.dim_IntList %y {dim = array<i64: 0>, keepdim = false} : (tensor<32x8x4xf32>) -> tensor<8x4xf32>
  %8 = aten.slice.Tensor %7 {dim = 0 : i64, end = 6 : i64, start = 2 : i64} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %9 = aten.view %8 {size = array<i64: 1, 4, 4>} : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
  %10 = aten.sum.dim_IntList %9 {dim = array<i64: 0>, keepdim = false} : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
  return %3, %6, %10 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>
}
