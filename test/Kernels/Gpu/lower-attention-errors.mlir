// RUN: not spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_80 2>&1 | FileCheck %s

// CHECK: lower-attention-errors.mlir:[[# @LINE + 2]]:{{.*}}: error: 'kernel.attention' op with head sizes 2048 and 1 needs 263936 bytes of shared memory, more than the 166912 a block has on sm_80
func.func @f(%x: tensor<1x1x8x2048xf32>) -> tensor<1x1x8x1xf32> {
  %out, %lse = kernel.attention <batch = 1, heads = 1, kvHeads = 1, qLen = 8, kvLen = 8, headDim = 2048, vDim = 1> scale 0.5
      q(%x at <offset = 0, batch = 0, head = 0, row = 2048> : tensor<1x1x8x2048xf32>)
      k(%x at <offset = 0, batch = 0, head = 0, row = 2048> : tensor<1x1x8x2048xf32>)
      v(%x at <offset = 0, batch = 0, head = 0, row = 2048> : tensor<1x1x8x2048xf32>)
      out(<offset = 0, batch = 8, head = 8, row = 1> : tensor<1x1x8x1xf32>) lse(tensor<1x1x8xf32>) {symbol = "k0"}
  return %out : tensor<1x1x8x1xf32>
}
