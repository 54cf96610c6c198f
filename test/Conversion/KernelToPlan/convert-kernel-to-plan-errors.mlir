// RUN: spmd-opt %s -split-input-file -spmd-convert-kernel-to-plan -verify-diagnostics

// expected-error @+1 {{argument 0 has no role}}
func.func @step(%x: tensor<4xf32>) {
  return
}

// -----

// expected-error @+1 {{result 0 has no role, or updates an argument that there is not}}
func.func @step(%x: tensor<4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4xf32> {spmd.result = #spmd.output<"">}) {
  // expected-error @+1 {{has no symbol; run spmd-outline-kernels before the plan}}
  %y = kernel.cluster dims [4] parallel 1 ins(%p = %x at (d0) -> (d0) : tensor<4xf32>)
      outs(at (d0) -> (d0) : tensor<4xf32>) {
    kernel.yield %p : f32
  }
  return %y : tensor<4xf32>
}

// -----

spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<2xf32> {spmd.result = #spmd.output<"">}) {
  // expected-error @+1 {{has no command; it must be lowered to kernels before the plan}}
  %y = spmd.slice %x on @mesh ["data"] dim 0 pre 1 chunk 2 : tensor<4xf32> -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<4x3xf32> {spmd.arg = #spmd.batch<"x", dim = 1>})
    -> (tensor<4x6xf32> {spmd.result = #spmd.output<"">}) {
  // expected-error @+1 {{is not flat (dim 1, pre 1, 6 rows in chunks of 3 over 2 ranks); run spmd-flatten-collectives before the plan}}
  %y = spmd.all_gather %x on @mesh ["data"] dim 1 pre 1 total 6 : tensor<4x3xf32> -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
