// RUN: spmd-opt %s --spmd-convert-aten-to-kernel --spmd-fuse-gemm-epilogues="epilogues=bias,gelu_tanh_backward dtypes=f32" | FileCheck %s
// RUN: spmd-opt %s --spmd-convert-aten-to-kernel --spmd-fuse-gemm-epilogues="epilogues=bias,gelu_tanh_backward,bias_gradient dtypes=f32" | FileCheck %s --check-prefix=SUMS
// RUN: spmd-opt %s --spmd-convert-aten-to-kernel --spmd-fuse-gemm-epilogues="epilogues=bias,residual,relu,gelu,gelu_tanh,bias_gradient" | FileCheck %s --check-prefix=OFF
// RUN: spmd-opt %s --spmd-convert-aten-to-kernel --spmd-fuse-gemm-epilogues="epilogues=bias,gelu_tanh_backward" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// The gradient of gelu(h) by tanh, of a GEMM that gives that of its result.

// OFF-NOT: gelu_tanh_backward

// CHECK-LABEL: @matrix
// CHECK-NEXT: %[[D:.*]] = kernel.gemm m 8 n 16 k 4 {{.*}} activation gelu_tanh_backward pre_activation(%arg2 : tensor<8x16xf32>) {spmd.segment = 1 : i64} -> tensor<8x16xf32>
// CHECK-NEXT: return %[[D]]
// REMARK: GEMM takes over gelu_tanh_backward: clusters move 1536 bytes less, the GEMM 512 more
func.func @matrix(%dy: tensor<8x4xf32>, %w: tensor<4x16xf32>, %h: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %g = aten.mm %dy, %w {spmd.segment = 1 : i64} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh", spmd.segment = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %dh : tensor<8x16xf32>
}

// Of narrow types, whatever else the library has of them, and of batches.
// CHECK-LABEL: @narrow
// CHECK-NEXT: kernel.gemm m 8 n 16 k 4 batch 2 {{.*}} activation gelu_tanh_backward pre_activation(%arg2 : tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
// CHECK-NEXT: return
func.func @narrow(%dy: tensor<2x8x4xbf16>, %w: tensor<2x4x16xbf16>, %h: tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16> {
  %g = aten.bmm %dy, %w : (tensor<2x8x4xbf16>, tensor<2x4x16xbf16>) -> tensor<2x8x16xbf16>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) -> tensor<2x8x16xbf16>
  return %dh : tensor<2x8x16xbf16>
}

// What gelu was applied to is in no memory: the GEMM before adds its bias, and both clusters read that. The sums of the
// gradient are those of a bias: the GEMM gives them, rather than the one that reads it.
// CHECK-LABEL: @layer
// CHECK-NEXT: %[[H:.*]] = kernel.gemm m 64 n 32 k 16 {{.*}} bias(%arg2 : tensor<32xf32>) -> tensor<64x32xf32>
// CHECK-NEXT: %[[Y:.*]] = kernel.cluster dims [64, 32] parallel 1
// CHECK-NEXT: ins(%{{.*}} = %[[H]] at (d0, d1) -> (d0 * 32 + d1) : tensor<64x32xf32>)
// CHECK:      kernel.gemm m 8 n 32 k 64 a(%arg4 ld 8 trans : tensor<64x8xf32>) b(%[[Y]] ld 32 : tensor<64x32xf32>)
// CHECK-NEXT: %[[D:.*]] = kernel.gemm m 64 n 32 k 8 {{.*}} activation gelu_tanh_backward pre_activation(%[[H]] : tensor<64x32xf32>) -> tensor<64x32xf32>
// CHECK-NEXT: kernel.cluster
// CHECK-NEXT: ins(%{{.*}} = %[[D]] at
// CHECK-NOT:  exp2
// CHECK:      kernel.gemm m 32 n 16 k 64 a(%[[D]] ld 32 trans : tensor<64x32xf32>)
// SUMS-LABEL: @layer
// SUMS:       %[[D:.*]], %[[B:.*]] = kernel.gemm m 64 n 32 k 8 {{.*}} activation gelu_tanh_backward pre_activation({{.*}}) bias_gradient_of c -> tensor<64x32xf32>, bias_gradient tensor<32xf32>
// SUMS-NEXT:  %[[W:.*]] = kernel.gemm m 32 n 16 k 64 a(%[[D]] ld 32 trans : tensor<64x32xf32>) b({{.*}}) -> tensor<32x16xf32>
// SUMS-NEXT:  return %{{.*}}, %[[W]], %[[B]]
// REMARK: GEMM takes over bias: clusters move {{.*}} bytes less, the GEMM 128 more
func.func @layer(%x: tensor<64x16xf32>, %w: tensor<32x16xf32>, %b: tensor<32xf32>, %v: tensor<8x32xf32>,
                 %dy: tensor<64x8xf32>) -> (tensor<8x32xf32>, tensor<32x16xf32>, tensor<32xf32>) {
  %wt = aten.permute %w {dims = array<i64: 1, 0>} : (tensor<32x16xf32>) -> tensor<16x32xf32>
  %h = aten.addmm %b, %x, %wt : (tensor<32xf32>, tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
  %y = aten.gelu %h {approximate = "tanh"} : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %dyt = aten.permute %dy {dims = array<i64: 1, 0>} : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %dv = aten.mm %dyt, %y : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %g = aten.mm %dy, %v : (tensor<64x8xf32>, tensor<8x32xf32>) -> tensor<64x32xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %db = aten.sum.dim_IntList %dh {dim = array<i64: 0>} : (tensor<64x32xf32>) -> tensor<32xf32>
  %dht = aten.permute %dh {dims = array<i64: 1, 0>} : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %dw = aten.mm %dht, %x : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
  return %dv, %dw, %db : tensor<8x32xf32>, tensor<32x16xf32>, tensor<32xf32>
}

// Not: gelu by erf; another reader of the GEMM; a matrix that lies otherwise, or is smaller; rows of no multiple of 8
// elements; f64; a matrix that is there only later; another type.
// CHECK-LABEL: @erf
// CHECK-NOT: gelu_tanh_backward
func.func @erf(%dy: tensor<8x4xf32>, %w: tensor<4x16xf32>, %h: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %g = aten.mm %dy, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "none"} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %dh : tensor<8x16xf32>
}
func.func @read_twice(%dy: tensor<8x4xf32>, %w: tensor<4x16xf32>, %h: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %g = aten.mm %dy, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %n = aten.neg %g : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %dh, %n : tensor<8x16xf32>, tensor<8x16xf32>
}
func.func @read_beside(%dy: tensor<8x4xf32>, %w: tensor<4x16xf32>, %h: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %g = aten.mm %dy, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = aten.add.Tensor %dh, %g : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %dh, %s : tensor<8x16xf32>, tensor<8x16xf32>
}
func.func @returned(%dy: tensor<8x4xf32>, %w: tensor<4x16xf32>, %h: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %g = aten.mm %dy, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %dh, %g : tensor<8x16xf32>, tensor<8x16xf32>
}
func.func @transposed(%dy: tensor<16x4xf32>, %w: tensor<4x16xf32>, %h: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %g = aten.mm %dy, %w : (tensor<16x4xf32>, tensor<4x16xf32>) -> tensor<16x16xf32>
  %t = aten.permute %h {dims = array<i64: 1, 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %dh = aten.gelu_backward %g, %t {approximate = "tanh"} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %dh : tensor<16x16xf32>
}
func.func @broadcast(%dy: tensor<8x4xf32>, %w: tensor<4x16xf32>, %h: tensor<1x16xf32>) -> tensor<8x16xf32> {
  %g = aten.mm %dy, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<8x16xf32>, tensor<1x16xf32>) -> tensor<8x16xf32>
  return %dh : tensor<8x16xf32>
}
func.func @odd_rows(%dy: tensor<8x4xf32>, %w: tensor<4x12xf32>, %h: tensor<8x12xf32>) -> tensor<8x12xf32> {
  %g = aten.mm %dy, %w : (tensor<8x4xf32>, tensor<4x12xf32>) -> tensor<8x12xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<8x12xf32>, tensor<8x12xf32>) -> tensor<8x12xf32>
  return %dh : tensor<8x12xf32>
}
func.func @double(%dy: tensor<8x4xf64>, %w: tensor<4x16xf64>, %h: tensor<8x16xf64>) -> tensor<8x16xf64> {
  %g = aten.mm %dy, %w : (tensor<8x4xf64>, tensor<4x16xf64>) -> tensor<8x16xf64>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<8x16xf64>, tensor<8x16xf64>) -> tensor<8x16xf64>
  return %dh : tensor<8x16xf64>
}
func.func @later(%dy: tensor<8x4xf32>, %w: tensor<4x16xf32>, %v: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %g = aten.mm %dy, %w : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %x = aten.sin %g : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %h = aten.mm %x, %v : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %g, %h {approximate = "tanh"} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %dh, %h : tensor<8x16xf32>, tensor<8x16xf32>
}
func.func @wide(%dy: tensor<8x4xbf16>, %w: tensor<4x16xbf16>, %h: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %g = aten.mm %dy, %w : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>
  %f = aten._to_copy %g {dtype = f32} : (tensor<8x16xbf16>) -> tensor<8x16xf32>
  %dh = aten.gelu_backward %f, %h {approximate = "tanh"} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %dh : tensor<8x16xf32>
}
