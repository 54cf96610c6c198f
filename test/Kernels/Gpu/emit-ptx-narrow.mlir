// bf16 in memory, f32 between, a rounding after every op: 16 bytes are 8 elements, and roundings are the chip's own
// instructions, two at a time.

// RUN: spmd-opt %s --pass-pipeline='builtin.module(spmd-lower-gpu-kernels{chip=sm_90},spmd-emit-ptx{chip=sm_90})' -o /dev/null > %t.90
// RUN: FileCheck %s < %t.90
// RUN: FileCheck %s --check-prefix=NEVER < %t.90
// RUN: spmd-opt %s --pass-pipeline='builtin.module(spmd-lower-gpu-kernels{chip=sm_80},spmd-emit-ptx{chip=sm_80})' -o /dev/null > %t.80
// RUN: FileCheck %s < %t.80
// RUN: FileCheck %s --check-prefix=NEVER < %t.80

// NEVER-NOT: {{approx|\.ftz|call|__nv|ex2|global\.b16|global\.u16}}

func.func @f(%x: tensor<512x768xbf16>, %w: tensor<768xbf16>) -> (tensor<512x768xbf16>, tensor<512x768xbf16>) {
  // A row's sum of squares is f32.
  // CHECK: .visible .entry norm(
  // CHECK: ld.global.v4.b32
  // CHECK: add.rn.f32
  // CHECK-COUNT-4: cvt.rn.bf16x2.f32
  // CHECK: st.global.v4.b32
  %0 = kernel.cluster dims [512, 768] parallel 1
      ins(%a = %x at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xbf16>, %b = %w at (d0, d1) -> (d1) : tensor<768xbf16>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xbf16>) attributes {symbol = "norm"} {
    %e = arith.extf %a : bf16 to f32
    %q = arith.mulf %e, %e : f32
    %s = kernel.reduce <add> %q over [1] : f32
    %c = arith.constant 768.0 : f32
    %m = arith.divf %s, %c : f32
    %r = math.rsqrt %m : f32
    %n = arith.mulf %e, %r : f32
    %t = arith.truncf %n : f32 to bf16
    %y = arith.mulf %t, %b : bf16
    kernel.yield %y : bf16
  }
  // CHECK: .visible .entry pointwise(
  // CHECK-COUNT-2: ld.global.v4.b32
  // CHECK-COUNT-4: cvt.rn.bf16x2.f32
  // CHECK: st.global.v4.b32
  %1 = kernel.cluster dims [393216] parallel 1
      ins(%a = %x at (d0) -> (d0) : tensor<512x768xbf16>, %b = %0 at (d0) -> (d0) : tensor<512x768xbf16>)
      outs(at (d0) -> (d0) : tensor<512x768xbf16>) attributes {symbol = "pointwise"} {
    %p = arith.mulf %a, %b : bf16
    %e = math.exp %p : bf16
    %y = arith.addf %e, %b : bf16
    kernel.yield %y : bf16
  }
  return %0, %1 : tensor<512x768xbf16>, tensor<512x768xbf16>
}
