// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s
// RUN: spmd-opt --spmd-convert-aten-to-kernel=fuse=false %s | FileCheck %s --check-prefix=ALONE

// A linear layer reads its weight as it lies, its bias joins what follows the product, and the input of the gelu in
// backward is computed again from the product instead of being kept.

// CHECK-LABEL: func.func @linear
// CHECK:         %[[P:.*]] = kernel.gemm m 64 n 32 k 16 a(%arg0 ld 16 : tensor<64x16xf32>) b(%arg1 ld 16 trans : tensor<32x16xf32>)
// CHECK-NEXT:    %[[Y:.*]] = kernel.cluster dims [64, 32] parallel 1
// CHECK-NEXT:        ins(%{{.*}} = %[[P]] at (d0, d1) -> (d0 * 32 + d1) : tensor<64x32xf32>,
// CHECK-NEXT:            %{{.*}} = %arg2 at (d0, d1) -> (d1) : tensor<32xf32>)
// CHECK-NEXT:        outs(at (d0, d1) -> (d0 * 32 + d1) : tensor<64x32xf32>)
// CHECK:           arith.addf
// CHECK:           math.exp
// CHECK:           kernel.yield %{{.*}} : f32
// CHECK:         %[[DY:.*]] = kernel.gemm m 64 n 32 k 8
// CHECK-NEXT:    %[[DP:.*]] = kernel.cluster dims [64, 32] parallel 1
// CHECK:             = %[[P]] at
// CHECK:           arith.addf
// CHECK:           math.exp
// CHECK:         kernel.gemm m 32 n 16 k 64 a(%[[DP]] ld 32 trans : tensor<64x32xf32>) b(%arg0 ld 16 : tensor<64x16xf32>)

// Without fusion every light op is a kernel.
// ALONE-LABEL: func.func @linear
// ALONE-COUNT-3: kernel.cluster
// ALONE-NOT:     kernel.cluster
func.func @linear(%x: tensor<64x16xf32>, %w: tensor<32x16xf32>, %b: tensor<32xf32>, %v: tensor<8x32xf32>,
                  %g: tensor<64x8xf32>) -> (tensor<8x32xf32>, tensor<32x16xf32>) {
  %wt = aten.permute %w {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %y = aten.addmm %b, %x, %wt {spmd.segment = 0 : i64} : (tensor<32xf32>, tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
  %a = aten.gelu %y {approximate = "tanh", spmd.segment = 0 : i64} : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %gt = aten.permute %g {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %dv = aten.mm %gt, %a {spmd.segment = 1 : i64} : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %da = aten.mm %g, %v {spmd.segment = 1 : i64} : (tensor<64x8xf32>, tensor<8x32xf32>) -> tensor<64x32xf32>
  %dy = aten.gelu_backward %da, %y {approximate = "tanh", spmd.segment = 1 : i64} : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %dyt = aten.permute %dy {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %dw = aten.mm %dyt, %x {spmd.segment = 1 : i64} : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
  return %dv, %dw : tensor<8x32xf32>, tensor<32x16xf32>
}
