// What a library has in full, what ours has on CPUs, and one without `residual`.
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias,residual,relu,gelu_tanh" | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias,residual" | FileCheck %s --check-prefixes=CHECK,SUMS
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias" | FileCheck %s --check-prefix=BIAS
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=none" | FileCheck %s --check-prefix=NONE
// RUN: not spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias,silu" 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// ERROR: spmd-fuse-gemm-epilogues: epilogues=bias,silu: expected none, or some of bias, residual, relu, gelu, gelu_tanh

// NONE-NOT: kernel.gemm {{.*}} {{bias|residual|activation}}

// The cluster has nothing else to do, and its result's type is the GEMM's now.
// CHECK-LABEL: @bias
// CHECK-NEXT: %[[Y:.*]] = kernel.gemm m 4 n 6 k 8 a({{.*}}) b({{.*}}) bias(%arg2 : tensor<6xf32>) {spmd.segment = 0 : i64} -> tensor<2x2x6xf32>
// CHECK-NEXT: return %[[Y]] : tensor<2x2x6xf32>
// BIAS-LABEL: @bias
// BIAS: kernel.gemm {{.*}} bias(%arg2 : tensor<6xf32>)
// REMARK: GEMM takes over bias: clusters move 216 bytes less, the GEMM 24 more
func.func @bias(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>) -> tensor<2x2x6xf32> {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) {spmd.segment = 0 : i64}
      -> tensor<4x6xf32>
  %y = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, %f = %b at (d0, d1) -> (d1) : tensor<6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<2x2x6xf32>) {
    %0 = arith.addf %e, %f : f32
    kernel.yield %0 : f32
  }
  return %y : tensor<2x2x6xf32>
}

// What a norm reads is read again by the next residual: the GEMM writes it, the cluster only reads it.
// CHECK-LABEL: @residual
// SUMS: %[[S:.*]] = kernel.gemm {{.*}} bias(%arg2 : tensor<6xf32>) residual(%arg3 : tensor<4x6xf32>) -> tensor<4x6xf32>
// SUMS: %[[N:.*]] = kernel.cluster dims [4, 6] parallel 1
// SUMS-NEXT: ins(%[[E:.*]] = %[[S]] at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
// SUMS-NEXT: outs(at (d0, d1) -> (d0) : tensor<4xf32>) {
// SUMS-NEXT: kernel.reduce <add> %[[E]] over [1] : f32
// SUMS: return %[[S]], %[[N]]
// BIAS-LABEL: @residual
// BIAS: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<4x6xf32>
func.func @residual(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>, %r: tensor<4x6xf32>)
    -> (tensor<4x6xf32>, tensor<4xf32>) {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
  %s, %n = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>,
          %f = %b at (d0, d1) -> (d1) : tensor<6xf32>,
          %g = %r at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, at (d0, d1) -> (d0) : tensor<4xf32>) {
    %0 = arith.addf %e, %f : f32
    %1 = arith.addf %g, %0 : f32
    %2 = kernel.reduce <add> %1 over [1] : f32
    kernel.yield %1, %2 : f32, f32
  }
  return %s, %n : tensor<4x6xf32>, tensor<4xf32>
}

// The gradient of what three GEMMs read: one sum in one place, added in the order of the clusters.
// CHECK-LABEL: @accumulate
// CHECK: %[[Q:.*]] = kernel.gemm {{.*}} b(%arg3 ld 6 : tensor<6x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: %[[K:.*]] = kernel.gemm {{.*}} b(%arg4 ld 6 : tensor<6x6xf32>) residual(%[[Q]] : tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: %[[V:.*]] = kernel.gemm {{.*}} b(%arg5 ld 6 : tensor<6x6xf32>) residual(%[[K]] : tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: %[[D:.*]] = kernel.cluster
// CHECK-NEXT: ins(%[[E:.*]] = %[[V]] at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
// CHECK: math.exp %[[E]]
// CHECK: return %[[D]]
func.func @accumulate(%dq: tensor<4x6xf32>, %dk: tensor<4x6xf32>, %dv: tensor<4x6xf32>, %q: tensor<6x6xf32>,
                      %k: tensor<6x6xf32>, %v: tensor<6x6xf32>) -> tensor<4x6xf32> {
  %0 = kernel.gemm m 4 n 6 k 6 a(%dq ld 6 : tensor<4x6xf32>) b(%q ld 6 : tensor<6x6xf32>) -> tensor<4x6xf32>
  %1 = kernel.gemm m 4 n 6 k 6 a(%dk ld 6 : tensor<4x6xf32>) b(%k ld 6 : tensor<6x6xf32>) -> tensor<4x6xf32>
  %2 = kernel.cluster dims [24] parallel 1
      ins(%e = %0 at (d0) -> (d0) : tensor<4x6xf32>, %f = %1 at (d0) -> (d0) : tensor<4x6xf32>)
      outs(at (d0) -> (d0) : tensor<4x6xf32>) {
    %s = arith.addf %e, %f : f32
    kernel.yield %s : f32
  }
  %3 = kernel.gemm m 4 n 6 k 6 a(%dv ld 6 : tensor<4x6xf32>) b(%v ld 6 : tensor<6x6xf32>) -> tensor<4x6xf32>
  %4 = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %2 at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>,
          %f = %3 at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %s = arith.addf %e, %f : f32
    %r = math.exp %s : f32
    kernel.yield %r : f32
  }
  return %4 : tensor<4x6xf32>
}

// A bias before something that a library lacks saves nothing: the cluster reads the GEMM anyway. With gelu, what it is
// applied to is kept for the gradient.
// CHECK-LABEL: @gelu
// ALL-NEXT: %[[Y:.*]], %[[X:.*]] = kernel.gemm {{.*}} bias(%arg2 : tensor<6xf32>) activation gelu_tanh -> tensor<4x6xf32>, pre_activation tensor<4x6xf32>
// ALL-NEXT: %[[G:.*]] = kernel.cluster
// ALL-NEXT: ins(%[[E:.*]] = %[[X]] at
// ALL-NEXT: outs
// ALL-NEXT: math.sin %[[E]]
// ALL: return %[[Y]], %[[G]]
// SUMS: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<4x6xf32>
// SUMS: arith.addf
// SUMS: math.exp2
func.func @gelu(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
  %y = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, %f = %b at (d0, d1) -> (d1) : tensor<6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %0 = arith.addf %e, %f : f32
    %beta = arith.constant -2.30220819 : f32
    %kappa = arith.constant -0.102943242 : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.mulf %kappa, %1 : f32
    %3 = arith.addf %beta, %2 : f32
    %one = arith.constant 1.0 : f32
    %4 = arith.mulf %0, %3 : f32
    %5 = math.exp2 %4 : f32
    %6 = arith.addf %one, %5 : f32
    %7 = arith.divf %0, %6 : f32
    kernel.yield %7 : f32
  }
  %g = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, %f = %b at (d0, d1) -> (d1) : tensor<6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %0 = arith.addf %e, %f : f32
    %1 = math.sin %0 : f32
    kernel.yield %1 : f32
  }
  return %y, %g : tensor<4x6xf32>, tensor<4x6xf32>
}

// The gradient of relu reads its result: nothing is kept besides.
// CHECK-LABEL: @relu
// ALL-NEXT: %[[Y:.*]] = kernel.gemm {{.*}} activation relu -> tensor<4x6xf32>
// ALL-NEXT: return %[[Y]]
func.func @relu(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
  %y = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %zero = arith.constant 0.0 : f32
    %isLess = arith.cmpf olt, %e, %zero : f32
    %0 = arith.select %isLess, %zero, %e : f32
    kernel.yield %0 : f32
  }
  return %y : tensor<4x6xf32>
}

// Libraries keep the sign of what relu is applied to, not the value.
// CHECK-LABEL: @relu_and_what_it_is_applied_to
// CHECK-NEXT: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<4x6xf32>
func.func @relu_and_what_it_is_applied_to(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
  %y, %z = kernel.cluster dims [4, 6] parallel 1 ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %zero = arith.constant 0.0 : f32
    %isLess = arith.cmpf olt, %e, %zero : f32
    %0 = arith.select %isLess, %zero, %e : f32
    %1 = math.sin %e : f32
    kernel.yield %0, %1 : f32, f32
  }
  return %y, %z : tensor<4x6xf32>, tensor<4x6xf32>
}

// Both ways of adding in bf16.
// CHECK-LABEL: @bf16
// SUMS-NEXT: %[[S:.*]] = kernel.gemm {{.*}} bias(%arg2 : tensor<6xbf16>) residual(%arg3 : tensor<4x6xbf16>) -> tensor<4x6xbf16>
// SUMS-NEXT: return %[[S]]
func.func @bf16(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>, %b: tensor<6xbf16>, %r: tensor<4x6xbf16>)
    -> tensor<4x6xbf16> {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xbf16>) b(%w ld 8 trans : tensor<6x8xbf16>) -> tensor<4x6xbf16>
  %s = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xbf16>,
          %f = %b at (d0, d1) -> (d1) : tensor<6xbf16>,
          %g = %r at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xbf16>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xbf16>) {
    %0 = arith.addf %e, %f : bf16
    %1 = arith.extf %g : bf16 to f32
    %2 = arith.extf %0 : bf16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    kernel.yield %4 : bf16
  }
  return %s : tensor<4x6xbf16>
}

// A sum that is not rounded between is another sum.
// CHECK-LABEL: @bf16_rounded_once
// CHECK-NEXT: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<4x6xbf16>
func.func @bf16_rounded_once(%x: tensor<4x8xbf16>, %w: tensor<6x8xbf16>, %b: tensor<6xbf16>) -> tensor<4x6xf32> {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xbf16>) b(%w ld 8 trans : tensor<6x8xbf16>) -> tensor<4x6xbf16>
  %s = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xbf16>, %f = %b at (d0, d1) -> (d1) : tensor<6xbf16>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.extf %f : bf16 to f32
    %2 = arith.addf %0, %1 : f32
    kernel.yield %2 : f32
  }
  return %s : tensor<4x6xf32>
}

// Not there when the GEMM runs.
// CHECK-LABEL: @later
// CHECK-NEXT: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<4x6xf32>
func.func @later(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %r: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
  %l = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %r at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %0 = math.exp %e : f32
    kernel.yield %0 : f32
  }
  %s = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>,
          %f = %l at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %0 = arith.addf %e, %f : f32
    kernel.yield %0 : f32
  }
  return %s : tensor<4x6xf32>
}

// Somebody reads the GEMM itself: a cluster, or something else.
// CHECK-LABEL: @read
// CHECK-NEXT: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<4x6xf32>
// CHECK-NEXT: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<4x6xf32>
func.func @read(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %p = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
  %q = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<4x6xf32>
  %y, %z = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, %f = %b at (d0, d1) -> (d1) : tensor<6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %0 = arith.addf %e, %f : f32
    %1 = math.exp %e : f32
    kernel.yield %0, %1 : f32, f32
  }
  %s = kernel.cluster dims [4, 6] parallel 1
      ins(%e = %q at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>, %f = %b at (d0, d1) -> (d1) : tensor<6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<4x6xf32>) {
    %0 = arith.addf %e, %f : f32
    kernel.yield %0 : f32
  }
  return %y, %z, %s, %q : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// Neither one element per column nor one per element: a bias of rows, a transpose, a slice.
// CHECK-LABEL: @maps
// CHECK-COUNT-3: kernel.gemm {{.*}} b({{[^)]*}}) -> tensor<6x6xf32>
func.func @maps(%x: tensor<6x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xf32>, %r: tensor<6x6xf32>, %h: tensor<48xf32>)
    -> (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>) {
  %p = kernel.gemm m 6 n 6 k 8 a(%x ld 8 : tensor<6x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<6x6xf32>
  %q = kernel.gemm m 6 n 6 k 8 a(%x ld 8 : tensor<6x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<6x6xf32>
  %s = kernel.gemm m 6 n 6 k 8 a(%x ld 8 : tensor<6x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>) -> tensor<6x6xf32>
  %0 = kernel.cluster dims [6, 6] parallel 1
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>, %f = %b at (d0, d1) -> (d0) : tensor<6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>) {
    %t = arith.addf %e, %f : f32
    kernel.yield %t : f32
  }
  %1 = kernel.cluster dims [6, 6] parallel 1
      ins(%e = %q at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>,
          %f = %r at (d0, d1) -> (d0 + d1 * 6) : tensor<6x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>) {
    %t = arith.addf %e, %f : f32
    kernel.yield %t : f32
  }
  %2 = kernel.cluster dims [6, 6] parallel 1
      ins(%e = %s at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>, %f = %h at (d0, d1) -> (d0 * 6 + d1) : tensor<48xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>) {
    %t = arith.addf %e, %f : f32
    kernel.yield %t : f32
  }
  return %0, %1, %2 : tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
}
