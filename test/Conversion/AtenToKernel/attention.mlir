// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

// Splitting a packed projection into heads costs nothing: attention reads them where they lie, and writes its result
// as the next projection reads it.

// CHECK-LABEL: func.func @attention
// CHECK-NEXT:    %[[OUT:.*]], %{{.*}} = kernel.attention <batch = 2, heads = 4, kvHeads = 4, qLen = 16, kvLen = 16, headDim = 8, vDim = 8>
// CHECK-SAME:      causal
// CHECK-SAME:      q(%arg0 at <offset = 0, batch = 1536, head = 8, row = 96> : tensor<32x96xf32>)
// CHECK-SAME:      k(%arg0 at <offset = 32, batch = 1536, head = 8, row = 96> : tensor<32x96xf32>)
// CHECK-SAME:      v(%arg0 at <offset = 64, batch = 1536, head = 8, row = 96> : tensor<32x96xf32>)
// CHECK-SAME:      out(<offset = 0, batch = 512, head = 8, row = 32> : tensor<2x16x4x8xf32>)
// CHECK-NEXT:    kernel.gemm m 32 n 32 k 32 a(%[[OUT]] ld 32 : tensor<2x16x4x8xf32>)
func.func @attention(%qkv: tensor<32x96xf32>, %w: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = aten.view %qkv {size = array<i64: 2, 16, 96>} : (tensor<32x96xf32>) -> tensor<2x16x96xf32>
  %1:3 = aten.split.Tensor %0 {dim = 2 : i64, split_size = 32 : i64} : (tensor<2x16x96xf32>) -> (tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>)
  %2 = aten.view %1#0 {size = array<i64: 2, 16, 4, 8>} : (tensor<2x16x32xf32>) -> tensor<2x16x4x8xf32>
  %3 = aten.view %1#1 {size = array<i64: 2, 16, 4, 8>} : (tensor<2x16x32xf32>) -> tensor<2x16x4x8xf32>
  %4 = aten.view %1#2 {size = array<i64: 2, 16, 4, 8>} : (tensor<2x16x32xf32>) -> tensor<2x16x4x8xf32>
  %q = aten.permute %2 {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
  %k = aten.permute %3 {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
  %v = aten.permute %4 {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
  %out, %lse = aten.sdpa %q, %k, %v {dropout_p = 0.0, is_causal = true} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  %5 = aten.permute %out {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  %6 = aten.view %5 {size = array<i64: 32, 32>} : (tensor<2x16x4x8xf32>) -> tensor<32x32xf32>
  %y = aten.mm %6, %w : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

// The three gradients come out as the gradient of the packed projection; nothing is concatenated.

// CHECK-LABEL: func.func @backward
// CHECK:         %[[G:.*]] = kernel.attention_backward
// CHECK-SAME:      dq(<offset = 0, batch = 1536, head = 8, row = 96>)
// CHECK-SAME:      dk(<offset = 32, batch = 1536, head = 8, row = 96>)
// CHECK-SAME:      dv(<offset = 64, batch = 1536, head = 8, row = 96>)
// CHECK-SAME:      -> tensor<2x16x96xf32>
// CHECK-NEXT:    return %[[G]]
func.func @backward(%q: tensor<2x4x16x8xf32>, %g: tensor<2x4x16x8xf32>, %o: tensor<2x4x16x8xf32>, %lse: tensor<2x4x16xf32>) -> tensor<2x16x96xf32> {
  %dq, %dk, %dv = aten.sdpa_backward %g, %q, %q, %q, %o, %lse {dropout_p = 0.0, is_causal = true} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  %0 = aten.permute %dq {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  %1 = aten.permute %dk {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  %2 = aten.permute %dv {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  %3 = aten.view %0 {size = array<i64: 2, 16, 32>} : (tensor<2x16x4x8xf32>) -> tensor<2x16x32xf32>
  %4 = aten.view %1 {size = array<i64: 2, 16, 32>} : (tensor<2x16x4x8xf32>) -> tensor<2x16x32xf32>
  %5 = aten.view %2 {size = array<i64: 2, 16, 32>} : (tensor<2x16x4x8xf32>) -> tensor<2x16x32xf32>
  %6 = aten.cat %3, %4, %5 {dim = 2 : i64} : (tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>) -> tensor<2x16x96xf32>
  return %6 : tensor<2x16x96xf32>
}
