// RUN: spmd-opt --spmd-convert-aten-to-kernel --split-input-file --verify-diagnostics %s

func.func @dropout(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  // expected-error @+1 {{has no kernel for dropout 1.000000e-01}}
  %0, %1 = aten.sdpa %q, %q, %q {dropout_p = 0.1, is_causal = true} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>)
  return %0 : tensor<1x1x4x8xf32>
}

// -----

func.func @integers(%a: tensor<4x8xi64>, %b: tensor<8x4xi64>) -> tensor<4x4xi64> {
  // expected-error @+1 {{has no kernel for element type 'i64', only for f32, f64, bf16 and f16}}
  %0 = aten.mm %a, %b : (tensor<4x8xi64>, tensor<8x4xi64>) -> tensor<4x4xi64>
  return %0 : tensor<4x4xi64>
}

// -----

func.func @unknown(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'aten._foreach_neg' op has no kernel}}
  %0 = aten._foreach_neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @sharded(%x: tensor<2xf32, #spmd.sharding<global = [4], [shard<0, 1, 2>]>>) -> tensor<2xf32, #spmd.sharding<global = [4], [shard<0, 1, 2>]>> {
  // expected-error @+1 {{run spmd-strip-sharding first}}
  return %x : tensor<2xf32, #spmd.sharding<global = [4], [shard<0, 1, 2>]>>
}

// -----

func.func @no_rows(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  // expected-error @+1 {{has an empty tensor of type 'tensor<0x4xf32>', which kernels do not support; call the step with at least one row}}
  %0 = aten.relu %x : (tensor<0x4xf32>) -> tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}
