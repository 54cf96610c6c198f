// RUN: spmd-opt %s -split-input-file -spmd-convert-kernel-to-plan -spmd-verify-plan -verify-diagnostics | FileCheck %s

// Where values cannot lie where they are wanted there is a copy, and a remark with its bytes.

// An argument's new value is computed while the old one is still read, so it is copied at the end.
// CHECK-LABEL: plan.program
// CHECK: plan.kernel @k0(r @b0[0 : 512], w @[[NEW:.*]][0 : 512])
// CHECK: plan.kernel @k1(r @b0[0 : 512], w @[[LOSS:.*]][0 : 4])
// CHECK: plan.copy(r @[[NEW]][0 : 512], w @b0[0 : 512]) on compute
func.func @step(%w: tensor<128xf32> {spmd.arg = #spmd.param<"w", trainable>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">},
        tensor<128xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  // expected-remark @+1 {{the new value of w is copied: 512 bytes}}
  %w1 = kernel.cluster dims [128] parallel 1 ins(%p = %w at (d0) -> (d0) : tensor<128xf32>)
      outs(at (d0) -> (d0) : tensor<128xf32>) attributes {symbol = "k0"} {
    kernel.yield %p : f32
  }
  %l = kernel.cluster dims [128] parallel 0 ins(%p = %w at (d0) -> (d0) : tensor<128xf32>)
      outs(at (d0) -> (0) : tensor<f32>) attributes {symbol = "k1"} {
    %s = kernel.reduce <add> %p over [0] : f32
    kernel.yield %s : f32
  }
  return %l, %w1 : tensor<f32>, tensor<128xf32>
}

// -----

// Each element is read after another has taken its place: a kernel does not overwrite what it reads elsewhere.
// CHECK-LABEL: plan.program
// CHECK: plan.kernel @k0(r @b0[0 : 64], w @[[NEW:b[^0].*]][0 : 64])
// CHECK: plan.copy(r @[[NEW]][0 : 64], w @b0[0 : 64]) on compute
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  // expected-remark @+1 {{the new value of w is copied: 64 bytes}}
  %w1 = kernel.cluster dims [4, 4] parallel 2 ins(%p = %w at (d0, d1) -> (d1 * 4 + d0) : tensor<4x4xf32>)
      outs(at (d0, d1) -> (d0 * 4 + d1) : tensor<4x4xf32>) attributes {symbol = "k0"} {
    kernel.yield %p : f32
  }
  return %w1 : tensor<4x4xf32>
}

// -----

// A gradient that is in two places of the flat buffer is written once and copied once; an output that is an argument has
// bytes of its own.
// CHECK-LABEL: plan.program
// CHECK: plan.kernel @k0(r @b0[0 : 512], w @[[G:.*]][512 : 512])
// CHECK: plan.copy(r @[[G]][512 : 512], w @[[G]][0 : 512])
// CHECK: plan.copy(r @b1[0 : 4], w @[[OUT:.*]][0 : 4])
spmd.mesh @mesh ["data" = 1]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] replicate layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"v", shape = [128], group = 0, offset = 0, numel = 128, trainable = true>,
  #spmd.segment<"w", shape = [128], group = 0, offset = 128, numel = 128, trainable = true>]>
func.func @step(%x: tensor<128xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                // expected-remark @+1 {{output 1 is copied: 4 bytes}}
                %s: tensor<f32> {spmd.arg = #spmd.batch<"s", dim = none>})
    -> (tensor<256xf32> {spmd.result = #spmd.output<"0">}, tensor<f32> {spmd.result = #spmd.output<"1">}) {
  %g = kernel.cluster dims [128] parallel 1 ins(%p = %x at (d0) -> (d0) : tensor<128xf32>)
      outs(at (d0) -> (d0) : tensor<128xf32>) attributes {symbol = "k0"} {
    kernel.yield %p : f32
  }
  // expected-remark @+1 {{the gradient of v is copied: 512 bytes}}
  %flat = spmd.pack %g, %g unit @unit0 ["w", "v"] : (tensor<128xf32>, tensor<128xf32>) -> tensor<256xf32>
  return %flat, %s : tensor<256xf32>, tensor<f32>
}

// -----

// A mask of the parameters' elements: a byte each, whatever the unit's dtype.
// CHECK-LABEL: plan.program
// CHECK: plan.fill(w @[[G:.*]][0 : 128])
// CHECK: plan.kernel @k0(r @b0[0 : 128], w @[[G]][128 : 128])
spmd.mesh @mesh ["data" = 1]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] replicate layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"v", shape = [128], group = 0, offset = 0, numel = 128, trainable = true>,
  #spmd.segment<"w", shape = [128], group = 0, offset = 128, numel = 128, trainable = true>]>
func.func @step(%x: tensor<128xi1> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<256xi1> {spmd.result = #spmd.output<"0">}) {
  %g = kernel.cluster dims [128] parallel 1 ins(%p = %x at (d0) -> (d0) : tensor<128xi1>)
      outs(at (d0) -> (d0) : tensor<128xi1>) attributes {symbol = "k0"} {
    kernel.yield %p : i1
  }
  %flat = spmd.pack %g unit @unit0 ["w"] : (tensor<128xi1>) -> tensor<256xi1>
  return %flat : tensor<256xi1>
}

// -----

// A value that is read while it is reduced is reduced in a copy.
// CHECK-LABEL: plan.program
// CHECK: plan.kernel @k0(r @b0[0 : 8], w @[[V:.*]][0 : 4])
// CHECK: plan.copy(r @[[V]][0 : 4], w @[[SUM:.*]][0 : 4])
// CHECK: plan.all_reduce [sum](rw @[[SUM]][0 : 4])
// CHECK: plan.kernel @k1(r @[[V]][0 : 4], r @[[SUM]][0 : 4], w @[[V]][0 : 4])
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<2xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">}) {
  %v = kernel.cluster dims [2] parallel 0 ins(%p = %x at (d0) -> (d0) : tensor<2xf32>)
      outs(at (d0) -> (0) : tensor<f32>) attributes {symbol = "k0"} {
    %s = kernel.reduce <add> %p over [0] : f32
    kernel.yield %s : f32
  }
  // expected-remark @+1 {{a value that is all-reduced and still read is copied: 4 bytes}}
  %sum = spmd.all_reduce [sum] %v on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  %l = kernel.cluster dims [1] parallel 1
      ins(%p = %v at (d0) -> (0) : tensor<f32>, %q = %sum at (d0) -> (0) : tensor<f32>)
      outs(at (d0) -> (0) : tensor<f32>) attributes {symbol = "k1"} {
    %d = arith.divf %p, %q : f32
    kernel.yield %d : f32
  }
  return %l : tensor<f32>
}

// -----

// States that take each other's old values: a chain from its end, a circle with one old value kept.
// CHECK-LABEL: plan.program
// CHECK: plan.copy(r @b1[0 : 16], w @b2[0 : 16])
// CHECK-NEXT: plan.copy(r @b0[0 : 16], w @b1[0 : 16])
// CHECK-NEXT: plan.copy(r @b4[0 : 32], w @[[KEPT:b[5-9]]][0 : 32])
// CHECK-NEXT: plan.copy(r @b3[0 : 32], w @b4[0 : 32])
// CHECK-NEXT: plan.copy(r @[[KEPT]][0 : 32], w @b3[0 : 32])
func.func @step(// expected-remark @+1 {{the new value of b is copied: 16 bytes}}
                %a: tensor<4xf32> {spmd.arg = #spmd.buffer<"a">},
                // expected-remark @+1 {{the new value of c is copied: 16 bytes}}
                %b: tensor<4xf32> {spmd.arg = #spmd.buffer<"b">},
                %c: tensor<4xf32> {spmd.arg = #spmd.buffer<"c">},
                // expected-remark @+1 {{the new value of e is copied: 32 bytes}}
                %d: tensor<8xf32> {spmd.arg = #spmd.buffer<"d">},
                // expected-remark @+2 {{the old value of e is copied: 32 bytes}}
                // expected-remark @+1 {{the new value of d is copied: 32 bytes}}
                %e: tensor<8xf32> {spmd.arg = #spmd.buffer<"e">})
    -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.buffer<"b">>},
        tensor<4xf32> {spmd.result = #spmd.update<#spmd.buffer<"c">>},
        tensor<8xf32> {spmd.result = #spmd.update<#spmd.buffer<"d">>},
        tensor<8xf32> {spmd.result = #spmd.update<#spmd.buffer<"e">>}) {
  return %a, %b, %e, %d : tensor<4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>
}
