// RUN: spmd-opt --spmd-convert-aten-to-kernel='reduction-blocks=264 fewer-launches' %s | FileCheck %s
// RUN: spmd-opt --spmd-convert-aten-to-kernel='reduction-blocks=264' %s | FileCheck %s --check-prefix=MORE

// Where launches count: the 256 blocks of both sums are added up by one kernel, which rounds the sums as well, and the
// weight is widened by who multiplies by it.
// CHECK-LABEL: func.func @gradients
// CHECK:         kernel.cluster dims [256, 64, 8] parallel 1
// CHECK-DAG:       at (d0, d1, d2) -> (d2) : tensor<8xbf16>
// CHECK:         kernel.cluster dims [256, 8] parallel 0
// CHECK:           outs(at (d0, d1) -> (d1) : tensor<8xbf16>,
// CHECK-NEXT:           at (d0, d1) -> (d1) : tensor<8xbf16>)
// CHECK-COUNT-2:   kernel.reduce <add> %{{.*}} over [0] : f32
// CHECK-COUNT-2:   arith.truncf
// CHECK-NOT:     kernel.cluster

// Elsewhere the sums take two kernels, and weight and sums one each to be converted.
// MORE-LABEL: func.func @gradients
// MORE:         kernel.cluster dims [8] parallel 1
// MORE:           arith.extf
// MORE:         kernel.cluster dims [256, 64, 8] parallel 1
// MORE:         kernel.cluster dims [32, 8, 8] parallel 1
// MORE:         kernel.cluster dims [32, 8] parallel 0
// MORE:         kernel.cluster dims [8] parallel 1
// MORE:           arith.truncf
func.func @gradients(%x: tensor<16384x8xbf16>, %w: tensor<8xbf16>) -> (tensor<8xbf16>, tensor<8xbf16>) {
  %0 = aten._to_copy %w {dtype = f32} : (tensor<8xbf16>) -> tensor<8xf32>
  %1 = aten._to_copy %x {dtype = f32} : (tensor<16384x8xbf16>) -> tensor<16384x8xf32>
  %2 = aten.mul.Tensor %1, %0 : (tensor<16384x8xf32>, tensor<8xf32>) -> tensor<16384x8xf32>
  %3 = aten.sum.dim_IntList %2 {dim = array<i64: 0>} : (tensor<16384x8xf32>) -> tensor<8xf32>
  %4 = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<16384x8xbf16>) -> tensor<8xbf16>
  %5 = aten._to_copy %3 {dtype = bf16} : (tensor<8xf32>) -> tensor<8xbf16>
  return %4, %5 : tensor<8xbf16>, tensor<8xbf16>
}
