// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

// Splitting a packed projection into heads costs nothing: attention reads them where they lie, and writes its result
// as the next projection reads it.

// CHECK-LABEL: func.func @attention
// CHECK-NEXT:    %[[OUT:.*]], %{{.*}} = kernel.attention <batch = 2, heads = 4, kvHeads = 4, qLen = 16, kvLen = 16, headDim = 8, vDim = 8>
// CHECK-SAME:      q(%arg0 at <offset = 0, batch = 1536, head = 8, row = 96> : tensor<32x96xf32>)
// CHECK-SAME:      k(%arg0 at <offset = 32, batch = 1536, head = 8, row = 96> : tensor<32x96xf32>)
// CHECK-SAME:      v(%arg0 at <offset = 64, batch = 1536, head = 8, row = 96> : tensor<32x96xf32>)
// CHECK-SAME:      mask() {
// CHECK:           %[[SEES:.*]] = arith.cmpi sle
// CHECK-NEXT:      kernel.yield %[[SEES]] : i1
// CHECK-NEXT:    } out(<offset = 0, batch = 512, head = 8, row = 32> : tensor<2x16x4x8xf32>)
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
// CHECK:         dq(<offset = 0, batch = 1536, head = 8, row = 96>)
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

// Causality, a window of 4 keys and padding, as models build them: scalar code in the attention. Nothing of
// queries x keys is left, and what a mask needs of memory is what it was made of.

// CHECK-LABEL: func.func @masked
// CHECK-NEXT:    kernel.attention
// CHECK-SAME:      mask(%[[P:.*]] = %arg1 at (d0, d1, d2, d3) -> (d0 * 16 + d3) : tensor<2x16xi64>) {
// CHECK:           arith.cmpi sgt
// CHECK:           arith.cmpi sle
// CHECK:           arith.cmpi ne, %[[P]]
// CHECK:           kernel.yield %{{.*}} : i1
// CHECK:         } out(
// CHECK-NEXT:    return
func.func @masked(%q: tensor<2x4x16x8xf32>, %padding: tensor<2x16xi64>) -> tensor<2x16x4x8xf32> {
  %positions = aten.arange.start_step {start = 0 : i64, end = 16 : i64, step = 1 : i64} : () -> tensor<16xi64>
  %query = aten.view %positions {size = array<i64: 1, 1, 16, 1>} : (tensor<16xi64>) -> tensor<1x1x16x1xi64>
  %key = aten.view %positions {size = array<i64: 1, 1, 1, 16>} : (tensor<16xi64>) -> tensor<1x1x1x16xi64>
  %first = aten.sub.Scalar %query {other = 4 : i64} : (tensor<1x1x16x1xi64>) -> tensor<1x1x16x1xi64>
  %inside = aten.gt.Tensor %key, %first : (tensor<1x1x1x16xi64>, tensor<1x1x16x1xi64>) -> tensor<1x1x16x16xi1>
  %causal = aten.le.Tensor %key, %query : (tensor<1x1x1x16xi64>, tensor<1x1x16x1xi64>) -> tensor<1x1x16x16xi1>
  %window = aten.bitwise_and.Tensor %inside, %causal : (tensor<1x1x16x16xi1>, tensor<1x1x16x16xi1>) -> tensor<1x1x16x16xi1>
  %bool = aten._to_copy %padding {dtype = i1} : (tensor<2x16xi64>) -> tensor<2x16xi1>
  %columns = aten.view %bool {size = array<i64: 2, 1, 1, 16>} : (tensor<2x16xi1>) -> tensor<2x1x1x16xi1>
  %mask = aten.bitwise_and.Tensor %window, %columns : (tensor<1x1x16x16xi1>, tensor<2x1x1x16xi1>) -> tensor<2x1x16x16xi1>
  %expanded = aten.expand %mask {size = array<i64: 2, 1, 16, 16>} : (tensor<2x1x16x16xi1>) -> tensor<2x1x16x16xi1>
  %out, %lse = aten.sdpa %q, %q, %q, %expanded {dropout_p = 0.0, is_causal = false} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x1x16x16xi1>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  %0 = aten.permute %out {dims = array<i64: 0, 2, 1, 3>} : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  return %0 : tensor<2x16x4x8xf32>
}

// A relative bias with a gradient: the bias is read where scores are, its gradient is summed over the batch.

// CHECK-LABEL: func.func @bias
// CHECK-NEXT:    kernel.attention
// CHECK-SAME:      mask(%[[B:.*]] = %arg1 at (d0, d1, d2, d3) -> (d1 + d2 * 64 + d3 * 4) : tensor<16x16x4xf32>) {
// CHECK-NEXT:      kernel.yield %[[B]] : f32
// CHECK:         kernel.attention_backward
// CHECK:         mask_grad(tensor<1x4x16x16xf32>)
func.func @bias(%q: tensor<2x4x16x8xf32>, %table: tensor<16x16x4xf32>, %g: tensor<2x4x16x8xf32>) -> tensor<1x4x16x16xf32> {
  %heads = aten.permute %table {dims = array<i64: 2, 0, 1>} : (tensor<16x16x4xf32>) -> tensor<4x16x16xf32>
  %mask = aten.view %heads {size = array<i64: 1, 4, 16, 16>} : (tensor<4x16x16xf32>) -> tensor<1x4x16x16xf32>
  %out, %lse = aten.sdpa %q, %q, %q, %mask {dropout_p = 0.0, is_causal = false} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x4x16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  %dq, %dk, %dv, %dmask = aten.sdpa_backward %g, %q, %q, %q, %mask, %out, %lse {dropout_p = 0.0, is_causal = false} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x4x16x16xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x4x16x16xf32>)
  return %dmask : tensor<1x4x16x16xf32>
}

// A bias that all heads share has two dims; the kernel's gradient has four, which say what it sums over.
// CHECK-LABEL: func.func @shared_bias
// CHECK:         kernel.attention_backward
// CHECK:         mask_grad(tensor<1x1x16x16xf32>)
func.func @shared_bias(%g: tensor<2x4x16x8xf32>, %q: tensor<2x4x16x8xf32>, %bias: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %out, %lse = aten.sdpa %q, %q, %q, %bias {dropout_p = 0.0, is_causal = false} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  %dq, %dk, %dv, %dmask = aten.sdpa_backward %g, %q, %q, %q, %bias, %out, %lse {dropout_p = 0.0, is_causal = false} : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x16xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x16xf32>)
  return %dmask : tensor<16x16xf32>
}
