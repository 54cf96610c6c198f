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
