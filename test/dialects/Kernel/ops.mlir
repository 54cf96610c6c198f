// RUN: spmd-opt %s | spmd-opt | FileCheck %s
// RUN: spmd-opt %s --mlir-print-op-generic | spmd-opt | FileCheck %s

// CHECK-LABEL: @softmax
// CHECK: kernel.cluster dims [512, 768] parallel 1
// CHECK-NEXT: ins(%[[A:.*]] = %{{.*}} at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>)
// CHECK-NEXT: outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>) {
// CHECK-NEXT: kernel.reduce <max> %[[A]] over [1] : f32
func.func @softmax(%x: tensor<512x768xf32>) -> tensor<512x768xf32> {
  %y = kernel.cluster dims [512, 768] parallel 1
      ins(%a = %x at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>) {
    %m = kernel.reduce <max> %a over [1] : f32
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %s = kernel.reduce <add> %e over [1] : f32
    %r = arith.divf %e, %s : f32
    kernel.yield %r : f32
  }
  return %y : tensor<512x768xf32>
}

// Several operands and results, a guard, a mesh coordinate, a symbol.
// CHECK-LABEL: @shifted
// CHECK: kernel.cluster dims [8] parallel 1
// CHECK: %{{.*}} = %{{.*}} at (d0)[s0] -> (d0 + s0 * 8 - 1) guarded : tensor<16xf32>
// CHECK: attributes {symbol = "k3"}
// CHECK: kernel.index 0
// CHECK: kernel.coord 0
func.func @shifted(%x: tensor<16xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>) {
  %0:2 = kernel.cluster dims [8] parallel 1
      ins(%a = %x at (d0)[s0] -> (d0 + s0 * 8 - 1) guarded : tensor<16xf32>,
          %b = %y at (d0)[s0] -> (d0) : tensor<8xf32>)
      outs(at (d0)[s0] -> (d0) : tensor<8xf32>, at (d0)[s0] -> (d0) : tensor<8xi1>)
      attributes {symbol = "k3"} {
    %i = kernel.index 0
    %c = kernel.coord 0
    %eq = arith.cmpi eq, %i, %c : index
    %s = arith.addf %a, %b : f32
    kernel.yield %s, %eq : f32, i1
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xi1>
}

// No operands.
// CHECK-LABEL: @zero
// CHECK: kernel.cluster dims [] parallel 0
// CHECK-NEXT: outs(at () -> (0) : tensor<f32>)
func.func @zero() -> tensor<f32> {
  %0 = kernel.cluster dims [] parallel 0 outs(at () -> (0) : tensor<f32>) {
    %z = arith.constant 0.0 : f32
    kernel.yield %z : f32
  }
  return %0 : tensor<f32>
}

// CHECK-LABEL: @optimizer
// CHECK: kernel.segmented chunk 256 position ()[s0] -> (s0 * 256) segments [0, 128] to [100, 1000]
// CHECK-NEXT: elements(%{{.*}} = %{{.*}} : tensor<256xf32>, %{{.*}} = %{{.*}} : tensor<256xf32>)
// CHECK-NEXT: tables(%{{.*}} = %{{.*}} : tensor<2xf32>)
// CHECK-NEXT: scalars(%{{.*}} = %{{.*}} : tensor<f32>)
// CHECK-NEXT: outs(tensor<256xf32>) {
// CHECK: kernel.segment_constant dense<[1.000000e-01, 0.000000e+00]> : tensor<2xf32> : f32
// CHECK: kernel.segmented {{.*}} pieces 4
func.func @optimizer(%param: tensor<256xf32>, %grad: tensor<256xf32>, %decay: tensor<2xf32>, %rate: tensor<f32>)
    -> (tensor<256xf32>, tensor<2x4xf32>) {
  %0 = kernel.segmented chunk 256 position ()[s0] -> (s0 * 256) segments [0, 128] to [100, 1000]
      elements(%p = %param : tensor<256xf32>, %g = %grad : tensor<256xf32>)
      tables(%wd = %decay : tensor<2xf32>) scalars(%lr = %rate : tensor<f32>)
      outs(tensor<256xf32>) {
    %k = kernel.segment_constant dense<[0.1, 0.0]> : tensor<2xf32> : f32
    %w = arith.mulf %p, %wd : f32
    %u = arith.addf %w, %k : f32
    %s = arith.mulf %lr, %u : f32
    %r = arith.subf %p, %s : f32
    kernel.yield %r : f32
  }
  %1 = kernel.segmented chunk 256 position ()[s0] -> (s0 * 256) segments [0, 128] to [100, 1000] pieces 4
      elements(%g = %grad : tensor<256xf32>) outs(tensor<2x4xf32>) {
    %q = arith.mulf %g, %g : f32
    %s = kernel.reduce <add> %q over [0] : f32
    kernel.yield %s : f32
  }
  return %0, %1 : tensor<256xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: @gemm
// CHECK: kernel.gemm m 4 n 8 k 16 a(%{{.*}} ld 16 : tensor<4x16xf32>) b(%{{.*}} ld 16 offset 128 trans : tensor<16x16xf32>) -> tensor<4x8xf32>
// CHECK: kernel.gemm m 4 n 8 k 16 batch 2 a({{.*}} stride 64 : {{.*}}) b({{.*}} stride 128 : {{.*}}) residual(%{{.*}} : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
func.func @gemm(%a: tensor<4x16xf32>, %b: tensor<16x16xf32>, %d: tensor<2x4x16xf32>, %c: tensor<2x4x8xf32>)
    -> (tensor<4x8xf32>, tensor<2x4x8xf32>) {
  %0 = kernel.gemm m 4 n 8 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%b ld 16 offset 128 trans : tensor<16x16xf32>)
      -> tensor<4x8xf32>
  %1 = kernel.gemm m 4 n 8 k 16 batch 2 a(%d ld 16 stride 64 : tensor<2x4x16xf32>)
      b(%b ld 8 stride 128 : tensor<16x16xf32>) residual(%c : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<2x4x8xf32>
}

// CHECK-LABEL: @epilogue
// CHECK: kernel.gemm m 4 n 8 k 16 a({{.*}}) b({{.*}}) bias(%{{.*}} : tensor<8xf32>) residual(%{{.*}} : tensor<4x8xf32>) activation gelu_tanh {spmd.segment = 0 : i64} -> tensor<4x8xf32>, pre_activation tensor<32xf32>
// CHECK: kernel.gemm m 4 n 8 k 16 a({{.*}}) b({{.*}}) bias(%{{.*}} : tensor<8xf32>) -> tensor<4x8xf32>
func.func @epilogue(%a: tensor<4x16xf32>, %b: tensor<16x16xf32>, %bias: tensor<8xf32>, %c: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xf32>) {
  %0, %1 = kernel.gemm m 4 n 8 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%b ld 16 trans : tensor<16x16xf32>)
      bias(%bias : tensor<8xf32>) residual(%c : tensor<4x8xf32>) activation gelu_tanh {spmd.segment = 0 : i64}
      -> tensor<4x8xf32>, pre_activation tensor<32xf32>
  %2 = kernel.gemm m 4 n 8 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%b ld 16 trans : tensor<16x16xf32>)
      bias(%bias : tensor<8xf32>) -> tensor<4x8xf32>
  return %0, %1, %2 : tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @gelu_backward
// CHECK: kernel.gemm m 4 n 8 k 16 batch 2 a({{.*}}) b({{.*}}) activation gelu_tanh_backward pre_activation(%{{.*}} : tensor<2x4x8xf32>) -> tensor<64xf32>
// CHECK: kernel.gemm m 4 n 8 k 16 {{.*}} activation gelu_tanh_backward pre_activation(%{{.*}} : tensor<4x10xf32>) bias_gradient_of c ldc 10 {spmd.segment = 1 : i64} -> tensor<4x10xf32>, bias_gradient tensor<8xf32>
func.func @gelu_backward(%a: tensor<2x4x16xf32>, %b: tensor<16x8xf32>, %h: tensor<2x4x8xf32>, %i: tensor<4x10xf32>)
    -> (tensor<64xf32>, tensor<4x10xf32>, tensor<8xf32>) {
  %0 = kernel.gemm m 4 n 8 k 16 batch 2 a(%a ld 16 stride 64 : tensor<2x4x16xf32>) b(%b ld 8 : tensor<16x8xf32>)
      activation gelu_tanh_backward pre_activation(%h : tensor<2x4x8xf32>) -> tensor<64xf32>
  %1, %2 = kernel.gemm m 4 n 8 k 16 a(%a ld 16 : tensor<2x4x16xf32>) b(%b ld 8 : tensor<16x8xf32>)
      activation gelu_tanh_backward pre_activation(%i : tensor<4x10xf32>) bias_gradient_of c ldc 10
      {spmd.segment = 1 : i64} -> tensor<4x10xf32>, bias_gradient tensor<8xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<4x10xf32>, tensor<8xf32>
}

// CHECK-LABEL: @bias_gradient
// CHECK: kernel.gemm m 6 n 4 k 8 a({{.*}} trans : tensor<8x6xbf16>) b({{.*}}) bias_gradient_of a {spmd.segment = 1 : i64} -> tensor<6x4xbf16>, bias_gradient tensor<6xbf16>
// CHECK: kernel.gemm m 6 n 4 k 8 {{.*}} residual(%{{.*}} : tensor<6x4xbf16>) bias_gradient_of b -> tensor<6x4xbf16>, bias_gradient tensor<1x4xbf16>
func.func @bias_gradient(%a: tensor<8x6xbf16>, %b: tensor<8x4xbf16>)
    -> (tensor<6x4xbf16>, tensor<6xbf16>, tensor<1x4xbf16>) {
  %0, %1 = kernel.gemm m 6 n 4 k 8 a(%a ld 6 trans : tensor<8x6xbf16>) b(%b ld 4 : tensor<8x4xbf16>)
      bias_gradient_of a {spmd.segment = 1 : i64} -> tensor<6x4xbf16>, bias_gradient tensor<6xbf16>
  %2, %3 = kernel.gemm m 6 n 4 k 8 a(%a ld 6 trans : tensor<8x6xbf16>) b(%b ld 4 : tensor<8x4xbf16>)
      residual(%0 : tensor<6x4xbf16>) bias_gradient_of b -> tensor<6x4xbf16>, bias_gradient tensor<1x4xbf16>
  return %2, %1, %3 : tensor<6x4xbf16>, tensor<6xbf16>, tensor<1x4xbf16>
}

// CHECK-LABEL: @attention
// CHECK: kernel.attention <batch = 2, heads = 3, kvHeads = 3, qLen = 8, kvLen = 8, headDim = 4, vDim = 4> scale 5.000000e-01
// CHECK-SAME: q(%{{.*}} at <offset = 0, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
// CHECK-SAME: v(%{{[^)]*}}) mask() {
// CHECK: arith.cmpi sle
// CHECK: } out(<offset = 0, batch = 96, head = 4, row = 12> : tensor<2x8x12xf32>) lse(tensor<2x3x8xf32>)
// CHECK: kernel.attention_backward
// CHECK: dv(<offset = 24, batch = 288, head = 4, row = 36>) -> tensor<2x8x36xf32>
// CHECK: kernel.attention {{.*}} mask(%[[M:.*]] = %{{.*}} at (d0, d1, d2, d3) -> (d2 * 8 + d3) : tensor<8x8xf32>) {
// CHECK-NEXT: kernel.yield %[[M]] : f32
// CHECK: kernel.attention_backward
// CHECK: mask_grad(tensor<1x1x8x8xf32>) -> tensor<2x8x36xf32>
func.func @attention(%qkv: tensor<2x8x36xf32>, %dout: tensor<2x8x12xf32>, %bias: tensor<8x8xf32>)
    -> (tensor<2x8x12xf32>, tensor<2x8x36xf32>, tensor<2x8x12xf32>, tensor<1x1x8x8xf32>) {
  %out, %lse = kernel.attention
      <batch = 2, heads = 3, kvHeads = 3, qLen = 8, kvLen = 8, headDim = 4, vDim = 4> scale 0.5
      q(%qkv at <offset = 0, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      k(%qkv at <offset = 12, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      v(%qkv at <offset = 24, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      mask() {
        %t = kernel.index 2
        %s = kernel.index 3
        %sees = arith.cmpi sle, %s, %t : index
        kernel.yield %sees : i1
      }
      out(<offset = 0, batch = 96, head = 4, row = 12> : tensor<2x8x12xf32>) lse(tensor<2x3x8xf32>)
  %dqkv = kernel.attention_backward
      <batch = 2, heads = 3, kvHeads = 3, qLen = 8, kvLen = 8, headDim = 4, vDim = 4> scale 0.5
      dout(%dout at <offset = 0, batch = 96, head = 4, row = 12> : tensor<2x8x12xf32>)
      q(%qkv at <offset = 0, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      k(%qkv at <offset = 12, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      v(%qkv at <offset = 24, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      out(%out at <offset = 0, batch = 96, head = 4, row = 12> : tensor<2x8x12xf32>) lse(%lse : tensor<2x3x8xf32>)
      dq(<offset = 0, batch = 288, head = 4, row = 36>) dk(<offset = 12, batch = 288, head = 4, row = 36>)
      dv(<offset = 24, batch = 288, head = 4, row = 36>) -> tensor<2x8x36xf32>
  %masked, %lse2 = kernel.attention
      <batch = 2, heads = 3, kvHeads = 3, qLen = 8, kvLen = 8, headDim = 4, vDim = 4> scale 0.5
      q(%qkv at <offset = 0, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      k(%qkv at <offset = 12, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      v(%qkv at <offset = 24, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      mask(%m = %bias at (d0, d1, d2, d3) -> (d2 * 8 + d3) : tensor<8x8xf32>) {
        kernel.yield %m : f32
      }
      out(<offset = 0, batch = 96, head = 4, row = 12> : tensor<2x8x12xf32>) lse(tensor<2x3x8xf32>)
  %masked_dqkv, %dmask = kernel.attention_backward
      <batch = 2, heads = 3, kvHeads = 3, qLen = 8, kvLen = 8, headDim = 4, vDim = 4> scale 0.5
      dout(%dout at <offset = 0, batch = 96, head = 4, row = 12> : tensor<2x8x12xf32>)
      q(%qkv at <offset = 0, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      k(%qkv at <offset = 12, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      v(%qkv at <offset = 24, batch = 288, head = 4, row = 36> : tensor<2x8x36xf32>)
      mask(%m = %bias at (d0, d1, d2, d3) -> (d2 * 8 + d3) : tensor<8x8xf32>) {
        kernel.yield %m : f32
      }
      out(%masked at <offset = 0, batch = 96, head = 4, row = 12> : tensor<2x8x12xf32>) lse(%lse2 : tensor<2x3x8xf32>)
      dq(<offset = 0, batch = 288, head = 4, row = 36>) dk(<offset = 12, batch = 288, head = 4, row = 36>)
      dv(<offset = 24, batch = 288, head = 4, row = 36>) mask_grad(tensor<1x1x8x8xf32>) -> tensor<2x8x36xf32>
  return %out, %masked_dqkv, %masked, %dmask : tensor<2x8x12xf32>, tensor<2x8x36xf32>, tensor<2x8x12xf32>, tensor<1x1x8x8xf32>
}

// CHECK-LABEL: @rows
// CHECK: kernel.gather_rows %{{.*}}, %{{.*}} : (tensor<65x16xf32>, tensor<2x8xi64>) -> tensor<2x8x16xf32>
// CHECK: kernel.scatter_rows <add> %{{.*}}, %{{.*}} rows 65 padding_idx 3 : (tensor<2x8x16xf32>, tensor<2x8xi64>) -> tensor<65x16xf32>
// CHECK: kernel.scatter_rows <add> %{{.*}}, %{{.*}} into %{{.*}} rows 65 :
func.func @rows(%table: tensor<65x16xf32>, %ids: tensor<2x8xi64>) -> tensor<65x16xf32> {
  %0 = kernel.gather_rows %table, %ids : (tensor<65x16xf32>, tensor<2x8xi64>) -> tensor<2x8x16xf32>
  %1 = kernel.scatter_rows <add> %0, %ids rows 65 padding_idx 3
      : (tensor<2x8x16xf32>, tensor<2x8xi64>) -> tensor<65x16xf32>
  %2 = kernel.scatter_rows <add> %0, %ids into %1 rows 65
      : (tensor<2x8x16xf32>, tensor<2x8xi64>, tensor<65x16xf32>) -> tensor<65x16xf32>
  return %2 : tensor<65x16xf32>
}

// CHECK-LABEL: @tables
// CHECK: kernel.gather_rows %{{.*}}, %{{.*}} batch 2 rows 5 : (tensor<2x5x3xf32>, tensor<2x4xi64>) -> tensor<2x4x3xf32>
// CHECK: kernel.scatter_rows <max> %{{.*}}, %{{.*}} into %{{.*}} batch 2 rows 5 :
// CHECK: kernel.check_index %{{.*}} in 0 to 5 or -100 for "nll_loss" : tensor<2x4xi64>
// CHECK: kernel.sort %{{.*}} size 3 descending : (tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x3xi64>)
func.func @tables(%tables: tensor<2x5x3xf32>, %ids: tensor<2x4xi64>) -> (tensor<2x5x3xf32>, tensor<2x5x3xi64>) {
  %0 = kernel.gather_rows %tables, %ids batch 2 rows 5 : (tensor<2x5x3xf32>, tensor<2x4xi64>) -> tensor<2x4x3xf32>
  %1 = kernel.scatter_rows <max> %0, %ids into %tables batch 2 rows 5
      : (tensor<2x4x3xf32>, tensor<2x4xi64>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  kernel.check_index %ids in 0 to 5 or -100 for "nll_loss" : tensor<2x4xi64>
  %2, %3 = kernel.sort %1 size 3 descending : (tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x3xi64>)
  return %2, %3 : tensor<2x5x3xf32>, tensor<2x5x3xi64>
}

// CHECK-LABEL: @grouped
// CHECK: kernel.grouped_gemm m 8 n 6 k 4 groups 3(%{{.*}} : tensor<8xi64>) a(%{{.*}} : tensor<8x4xf32>)
// CHECK-SAME: b(%{{.*}} ld 4 stride 24 trans : tensor<3x6x4xf32>) -> tensor<8x6xf32>
// CHECK: kernel.grouped_outer rows 8 m 4 n 6 groups 3(%{{.*}} : tensor<8xi64>) a(%{{.*}} : tensor<8x4xf32>)
// CHECK-SAME: b(%{{.*}} : tensor<8x6xf32>) -> tensor<3x4x6xf32>
func.func @grouped(%x: tensor<8x4xf32>, %w: tensor<3x6x4xf32>, %g: tensor<8xi64>) -> tensor<3x4x6xf32> {
  %0 = kernel.grouped_gemm m 8 n 6 k 4 groups 3(%g : tensor<8xi64>) a(%x : tensor<8x4xf32>)
      b(%w ld 4 stride 24 trans : tensor<3x6x4xf32>) -> tensor<8x6xf32>
  %1 = kernel.grouped_outer rows 8 m 4 n 6 groups 3(%g : tensor<8xi64>) a(%x : tensor<8x4xf32>)
      b(%0 : tensor<8x6xf32>) -> tensor<3x4x6xf32>
  return %1 : tensor<3x4x6xf32>
}

// CHECK-LABEL: @copy
// CHECK: kernel.copy %{{.*}}, %{{.*}} pieces [#kernel.piece<0 [4, 8] (d0, d1) -> (d0 * 8 + d1) to (d0, d1) -> (d0 * 20 + d1)>, #kernel.piece<1 [4, 8]
// CHECK-SAME: #kernel.piece<zero [4, 4] to (d0, d1) -> (d0 * 20 + d1 + 16)>]
func.func @copy(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x20xf32> {
  %0 = kernel.copy %a, %b pieces [
      #kernel.piece<0 [4, 8] (d0, d1) -> (d0 * 8 + d1) to (d0, d1) -> (d0 * 20 + d1)>,
      #kernel.piece<1 [4, 8] (d0, d1) -> (d1 * 4 + d0) to (d0, d1) -> (d0 * 20 + d1 + 8)>,
      #kernel.piece<zero [4, 4] to (d0, d1) -> (d0 * 20 + d1 + 16)>]
      : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x20xf32>
  return %0 : tensor<4x20xf32>
}

// CHECK-LABEL: @custom_call
// CHECK: kernel.custom_call "gained" of "libgained.so" hash "0123"(%{{.*}}, %{{.*}}) arguments [unit, unit, 2.000000e+00] shapes [array<i64: 4, 12>, array<i64: 12>] : (tensor<48xf32>, tensor<12xf32>) -> tensor<4x12xf32>
func.func @custom_call(%x: tensor<48xf32>, %gain: tensor<12xf32>) -> tensor<4x12xf32> {
  %0 = kernel.custom_call "gained" of "libgained.so" hash "0123"(%x, %gain) arguments [unit, unit, 2.000000e+00] shapes [array<i64: 4, 12>, array<i64: 12>] : (tensor<48xf32>, tensor<12xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}

// CHECK-LABEL: @custom_kernel
// CHECK: kernel.custom_call(%{{.*}}, %{{.*}}) arguments [unit, unit, 2.000000e+00] shapes [array<i64: 4, 12>, array<i64: 12>] launch <"gained" grid[1, 1, 1] block[64, 2, 1] shared 16 parameters [0 : index, 2 : index, 4 : i32, 2.000000e+00 : f32, true]> of ["sm_90 0123 gained.cubin"] : (tensor<48xf32>, tensor<12xf32>) -> tensor<4x12xf32>
func.func @custom_kernel(%x: tensor<48xf32>, %gain: tensor<12xf32>) -> tensor<4x12xf32> {
  %0 = kernel.custom_call (%x, %gain) arguments [unit, unit, 2.000000e+00] shapes [array<i64: 4, 12>, array<i64: 12>] launch <"gained" grid [1, 1, 1] block [64, 2, 1] shared 16 parameters [0 : index, 2 : index, 4 : i32, 2.000000e+00 : f32, true]> of ["sm_90 0123 gained.cubin"] : (tensor<48xf32>, tensor<12xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}
