// RUN: spmd-opt %s -split-input-file -verify-diagnostics --spmd-outline-kernels --spmd-emit-kernels=path=%t.so

func.func @columns(%x: tensor<4x300000xf32>) -> tensor<300000xf32> {
  // expected-error @below {{keeps 300000 sums of 'f32' at a time, more than 1048576 bytes of stack; cut the summed dim into blocks of fewer columns}}
  %0 = kernel.cluster dims [4, 300000] parallel 0
      ins(%a = %x at (d0, d1) -> (d0 * 300000 + d1) : tensor<4x300000xf32>)
      outs(at (d0, d1) -> (d1) : tensor<300000xf32>) {
    %s = kernel.reduce <add> %a over [0] : f32
    kernel.yield %s : f32
  }
  return %0 : tensor<300000xf32>
}

// -----

func.func @unknown(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = kernel.cluster dims [4] parallel 1 ins(%a = %x at (d0) -> (d0) : tensor<4xf64>)
      outs(at (d0) -> (d0) : tensor<4xf64>) {
    // expected-error @below {{no code generation for math.cbrt on 'f64'}}
    %s = math.cbrt %a : f64
    kernel.yield %s : f64
  }
  return %0 : tensor<4xf64>
}

// -----

func.func @head(%q: tensor<1x1x4x4096xf32>) -> tensor<1x1x4x4096xf32> {
  // expected-error @below {{needs 4231680 bytes of stack for head sizes 4096 and 4096, more than 2097152}}
  %0, %1 = kernel.attention
      <batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 256, headDim = 4096, vDim = 4096> scale 1.0
      q(%q at <offset = 0, batch = 0, head = 0, row = 4096> : tensor<1x1x4x4096xf32>)
      k(%q at <offset = 0, batch = 0, head = 0, row = 0> : tensor<1x1x4x4096xf32>)
      v(%q at <offset = 0, batch = 0, head = 0, row = 0> : tensor<1x1x4x4096xf32>)
      out(<offset = 0, batch = 0, head = 0, row = 4096> : tensor<1x1x4x4096xf32>) lse(tensor<4xf32>)
  return %0 : tensor<1x1x4x4096xf32>
}
