// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias_gradient dtypes=f32" | FileCheck %s
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias,residual" | FileCheck %s --check-prefix=OFF
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias_gradient" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Sums of the columns of what a GEMM contracts by its rows.

// OFF-NOT: bias_gradient

// In one step, of the first operand.
// CHECK-LABEL: @one_step
// CHECK-NEXT: %[[W:.*]], %[[B:.*]] = kernel.gemm m 6 n 4 k 8 a(%arg0 ld 6 trans : tensor<8x6xf32>) b(%arg1 ld 4 : tensor<8x4xf32>) bias_gradient_of a {spmd.segment = 1 : i64} -> tensor<6x4xf32>, bias_gradient tensor<6xf32>
// CHECK-NEXT: return %[[W]], %[[B]]
// REMARK: GEMM gives a bias gradient: clusters move 216 bytes less
func.func @one_step(%dy: tensor<8x6xf32>, %x: tensor<8x4xf32>) -> (tensor<6x4xf32>, tensor<6xf32>) {
  %b = kernel.cluster dims [8, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xf32>) outs(at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %w = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xf32>) b(%x ld 4 : tensor<8x4xf32>) {spmd.segment = 1 : i64}
      -> tensor<6x4xf32>
  return %w, %b : tensor<6x4xf32>, tensor<6xf32>
}

// In blocks of rows, where dY is made in bf16, then over the blocks in two halves of the columns, then rounded: what makes
// dY keeps that, and the sum of squares of its rows.
// CHECK-LABEL: @blocks
// CHECK-NEXT: %[[Y:.*]]:2 = kernel.cluster dims [4, 2, 6] parallel 1
// CHECK-NEXT: ins(%[[E:.*]] = %arg0 at (d0, d1, d2) -> (d0 * 12 + d1 * 6 + d2) : tensor<8x6xf32>)
// CHECK-NEXT: outs(at (d0, d1, d2) -> (d0 * 12 + d1 * 6 + d2) : tensor<8x6xbf16>,
// CHECK-NEXT: at (d0, d1, d2) -> (d0 * 2 + d1) : tensor<8xf32>) {
// CHECK-NEXT: %[[N:.*]] = arith.truncf %[[E]] : f32 to bf16
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[E]], %[[E]] : f32
// CHECK-NEXT: %[[S:.*]] = kernel.reduce <add> %[[Q]] over [2] : f32
// CHECK-NEXT: kernel.yield %[[N]], %[[S]] : bf16, f32
// CHECK-NEXT: }
// CHECK-NEXT: %[[W:.*]], %[[B:.*]] = kernel.gemm m 6 n 4 k 8 a(%[[Y]]#0 ld 6 trans : tensor<8x6xbf16>) {{.*}} bias_gradient_of a -> tensor<6x4xbf16>, bias_gradient tensor<6xbf16>
// CHECK-NEXT: return %[[W]], %[[B]], %[[Y]]#1
func.func @blocks(%g: tensor<8x6xf32>, %x: tensor<8x4xbf16>) -> (tensor<6x4xbf16>, tensor<6xbf16>, tensor<8xf32>) {
  %dy, %p, %q = kernel.cluster dims [4, 2, 6] parallel 1
      ins(%e = %g at (d0, d1, d2) -> (d0 * 12 + d1 * 6 + d2) : tensor<8x6xf32>)
      outs(at (d0, d1, d2) -> (d0 * 12 + d1 * 6 + d2) : tensor<8x6xbf16>, at (d0, d1, d2) -> (d0 * 6 + d2) : tensor<24xf32>,
           at (d0, d1, d2) -> (d0 * 2 + d1) : tensor<8xf32>) {
    %0 = arith.truncf %e : f32 to bf16
    %1 = arith.extf %0 : bf16 to f32
    %2 = kernel.reduce <add> %1 over [1] : f32
    %3 = arith.mulf %e, %e : f32
    %4 = kernel.reduce <add> %3 over [2] : f32
    kernel.yield %0, %2, %4 : bf16, f32, f32
  }
  %s = kernel.cluster dims [2, 4, 3] parallel 1
      ins(%e = %p at (d0, d1, d2) -> (d0 * 3 + d1 * 6 + d2) : tensor<24xf32>)
      outs(at (d0, d1, d2) -> (d0 * 3 + d2) : tensor<1x6xf32>) {
    %0 = kernel.reduce <add> %e over [1] : f32
    kernel.yield %0 : f32
  }
  %b = kernel.cluster dims [6] parallel 1
      ins(%e = %s at (d0) -> (d0) : tensor<1x6xf32>) outs(at (d0) -> (d0) : tensor<6xbf16>) {
    %0 = arith.truncf %e : f32 to bf16
    kernel.yield %0 : bf16
  }
  %w = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xbf16>) b(%x ld 4 : tensor<8x4xbf16>) -> tensor<6x4xbf16>
  return %w, %b, %q : tensor<6x4xbf16>, tensor<6xbf16>, tensor<8xf32>
}

// Of the second operand, by a GEMM that adds; what rounds the sums and goes on reads them rounded.
// CHECK-LABEL: @second
// CHECK-NEXT: %[[W:.*]], %[[B:.*]] = kernel.gemm m 4 n 6 k 8 {{.*}} residual(%arg2 : tensor<4x6xbf16>) bias_gradient_of b -> tensor<4x6xbf16>, bias_gradient tensor<6xbf16>
// CHECK-NEXT: %[[T:.*]] = kernel.cluster dims [6] parallel 1
// CHECK-NEXT: ins(%[[E:.*]] = %[[B]] at (d0) -> (d0) : tensor<6xbf16>)
// CHECK-NEXT: outs(at (d0) -> (d0) : tensor<6xf32>) {
// CHECK-NEXT: %[[X:.*]] = arith.extf %[[E]] : bf16 to f32
// CHECK-NEXT: kernel.yield %[[X]] : f32
func.func @second(%dy: tensor<8x6xbf16>, %x: tensor<8x4xbf16>, %sum: tensor<4x6xbf16>)
    -> (tensor<4x6xbf16>, tensor<6xf32>) {
  %s = kernel.cluster dims [8, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xbf16>) outs(at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = arith.extf %e : bf16 to f32
    %1 = kernel.reduce <add> %0 over [0] : f32
    kernel.yield %1 : f32
  }
  %w = kernel.gemm m 4 n 6 k 8 a(%x ld 4 trans : tensor<8x4xbf16>) b(%dy ld 6 : tensor<8x6xbf16>)
      residual(%sum : tensor<4x6xbf16>) -> tensor<4x6xbf16>
  %t = kernel.cluster dims [6] parallel 1
      ins(%e = %s at (d0) -> (d0) : tensor<6xf32>) outs(at (d0) -> (d0) : tensor<6xf32>) {
    %0 = arith.truncf %e : f32 to bf16
    %1 = arith.extf %0 : bf16 to f32
    kernel.yield %1 : f32
  }
  return %w, %t : tensor<4x6xbf16>, tensor<6xf32>
}

// Rounded by the cluster that sums.
// CHECK-LABEL: @rounded
// CHECK-NEXT: kernel.gemm {{.*}} bias_gradient_of a -> tensor<6x4xf16>, bias_gradient tensor<6xf16>
// CHECK-NEXT: return
func.func @rounded(%dy: tensor<8x6xf16>, %x: tensor<8x4xf16>) -> (tensor<6x4xf16>, tensor<6xf16>) {
  %b = kernel.cluster dims [8, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xf16>) outs(at (d0, d1) -> (d1) : tensor<6xf16>) {
    %0 = arith.extf %e : f16 to f32
    %1 = kernel.reduce <add> %0 over [0] : f32
    %2 = arith.truncf %1 : f32 to f16
    kernel.yield %2 : f16
  }
  %w = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xf16>) b(%x ld 4 : tensor<8x4xf16>) -> tensor<6x4xf16>
  return %w, %b : tensor<6x4xf16>, tensor<6xf16>
}

// What adds the sums to those of an earlier microbatch waits for the GEMM.
// CHECK-LABEL: @waits
// CHECK-NEXT: %[[W:.*]], %[[B:.*]] = kernel.gemm {{.*}} bias_gradient_of a -> tensor<6x4xf32>, bias_gradient tensor<6xf32>
// CHECK-NEXT: %[[S:.*]] = kernel.cluster dims [6] parallel 1
// CHECK-NEXT: ins(%{{.*}} = %[[B]] at (d0) -> (d0) : tensor<6xf32>,
// CHECK-NEXT: %{{.*}} = %arg2 at (d0) -> (d0) : tensor<6xf32>)
// CHECK: return %[[W]], %[[S]]
func.func @waits(%dy: tensor<8x6xf32>, %x: tensor<8x4xf32>, %sum: tensor<6xf32>) -> (tensor<6x4xf32>, tensor<6xf32>) {
  %b = kernel.cluster dims [8, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xf32>) outs(at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %c = kernel.cluster dims [6] parallel 1
      ins(%e = %b at (d0) -> (d0) : tensor<6xf32>, %f = %sum at (d0) -> (d0) : tensor<6xf32>)
      outs(at (d0) -> (d0) : tensor<6xf32>) {
    %0 = arith.addf %f, %e : f32
    kernel.yield %0 : f32
  }
  %w = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xf32>) b(%x ld 4 : tensor<8x4xf32>) -> tensor<6x4xf32>
  return %w, %c : tensor<6x4xf32>, tensor<6xf32>
}

// What stays as it is, each with its reason.

// Sums of bf16 that are used in f32; of unrounded values.
// CHECK-LABEL: @not_rounded
// CHECK-NOT: bias_gradient
func.func @not_rounded(%g: tensor<8x6xf32>, %x: tensor<8x4xbf16>) -> (tensor<6x4xbf16>, tensor<6xf32>, tensor<6xbf16>) {
  %dy, %s, %t = kernel.cluster dims [8, 6] parallel 0
      ins(%e = %g at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xf32>)
      outs(at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xbf16>, at (d0, d1) -> (d1) : tensor<6xf32>,
           at (d0, d1) -> (d1) : tensor<6xbf16>) {
    %0 = arith.truncf %e : f32 to bf16
    %1 = arith.extf %0 : bf16 to f32
    %2 = kernel.reduce <add> %1 over [0] : f32
    %3 = kernel.reduce <add> %e over [0] : f32
    %4 = arith.truncf %3 : f32 to bf16
    kernel.yield %0, %2, %4 : bf16, f32, bf16
  }
  %w = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xbf16>) b(%x ld 4 : tensor<8x4xbf16>) -> tensor<6x4xbf16>
  return %w, %s, %t : tensor<6x4xbf16>, tensor<6xf32>, tensor<6xbf16>
}

// Readers that cannot come later: one is read before the GEMM itself; between the other and the GEMM is what may be the end
// of something that it reads.
// CHECK-LABEL: @early
// CHECK-NOT: bias_gradient
func.func @early(%dy: tensor<8x6xf32>, %x: tensor<8x4xf32>) -> (tensor<6x4xf32>, tensor<6xf32>) {
  %b = kernel.cluster dims [8, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xf32>) outs(at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %c = kernel.cluster dims [6] parallel 1
      ins(%e = %b at (d0) -> (d0) : tensor<6xf32>) outs(at (d0) -> (d0) : tensor<6xf32>) {
    %0 = arith.negf %e : f32
    kernel.yield %0 : f32
  }
  %d = kernel.cluster dims [6] parallel 1
      ins(%e = %c at (d0) -> (d0) : tensor<6xf32>) outs(at (d0) -> (d0) : tensor<6xf32>) {
    %0 = arith.negf %e : f32
    kernel.yield %0 : f32
  }
  %w = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xf32>) b(%x ld 4 : tensor<8x4xf32>) -> tensor<6x4xf32>
  return %w, %d : tensor<6x4xf32>, tensor<6xf32>
}
// CHECK-LABEL: @beyond
// CHECK-NOT: bias_gradient
func.func @beyond(%dy: tensor<8x6xf32>, %x: tensor<8x4xf32>) -> (tensor<6x4xf32>, tensor<6xf32>, i1) {
  %b = kernel.cluster dims [8, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<8x6xf32>) outs(at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %c = kernel.cluster dims [6] parallel 1
      ins(%e = %b at (d0) -> (d0) : tensor<6xf32>) outs(at (d0) -> (d0) : tensor<6xf32>) {
    %0 = arith.negf %e : f32
    kernel.yield %0 : f32
  }
  %true = arith.constant true
  %w = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xf32>) b(%x ld 4 : tensor<8x4xf32>) -> tensor<6x4xf32>
  return %w, %c, %true : tensor<6x4xf32>, tensor<6xf32>, i1
}

// Sums of rows of a square matrix; of columns in another order; of one row less; the greatest; partial sums that are used.
// CHECK-LABEL: @others
// CHECK-NOT: bias_gradient
func.func @others(%dy: tensor<6x6xf32>, %x: tensor<6x4xf32>)
    -> (tensor<6x4xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<12xf32>) {
  %r, %m = kernel.cluster dims [6, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>)
      outs(at (d0, d1) -> (d0) : tensor<6xf32>, at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [1] : f32
    %1 = kernel.reduce <max> %e over [0] : f32
    kernel.yield %0, %1 : f32, f32
  }
  %c = kernel.cluster dims [6, 2, 3] parallel 0
      ins(%e = %dy at (d0, d1, d2) -> (d0 * 6 + d1 * 3 + d2) : tensor<6x6xf32>)
      outs(at (d0, d1, d2) -> (d1 + d2 * 2) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %l = kernel.cluster dims [5, 6] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 6 + d1) : tensor<6x6xf32>) outs(at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %p = kernel.cluster dims [2, 3, 6] parallel 1
      ins(%e = %dy at (d0, d1, d2) -> (d0 * 18 + d1 * 6 + d2) : tensor<6x6xf32>)
      outs(at (d0, d1, d2) -> (d0 * 6 + d2) : tensor<12xf32>) {
    %0 = kernel.reduce <add> %e over [1] : f32
    kernel.yield %0 : f32
  }
  %s = kernel.cluster dims [2, 6] parallel 0
      ins(%e = %p at (d0, d1) -> (d0 * 6 + d1) : tensor<12xf32>) outs(at (d0, d1) -> (d1) : tensor<6xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %w = kernel.gemm m 6 n 4 k 6 a(%dy ld 6 trans : tensor<6x6xf32>) b(%x ld 4 : tensor<6x4xf32>) -> tensor<6x4xf32>
  return %w, %r, %m, %c, %l, %s, %p : tensor<6x4xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<12xf32>
}

// The GEMM contracts the columns; has a bias; reads a part of the matrix; is two; is of f64.
// CHECK-LABEL: @gemms
// CHECK-NOT: bias_gradient
func.func @gemms(%dy: tensor<4x4xf32>, %x: tensor<4x4xf32>, %z: tensor<4xf32>, %wide: tensor<4x4xf64>)
    -> (tensor<4xf32>, tensor<4xf64>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<4x4xf64>) {
  %b = kernel.cluster dims [4, 4] parallel 0
      ins(%e = %dy at (d0, d1) -> (d0 * 4 + d1) : tensor<4x4xf32>) outs(at (d0, d1) -> (d1) : tensor<4xf32>) {
    %0 = kernel.reduce <add> %e over [0] : f32
    kernel.yield %0 : f32
  }
  %d = kernel.cluster dims [4, 4] parallel 0
      ins(%e = %wide at (d0, d1) -> (d0 * 4 + d1) : tensor<4x4xf64>) outs(at (d0, d1) -> (d1) : tensor<4xf64>) {
    %0 = kernel.reduce <add> %e over [0] : f64
    kernel.yield %0 : f64
  }
  %1 = kernel.gemm m 4 n 4 k 4 a(%dy ld 4 : tensor<4x4xf32>) b(%x ld 4 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = kernel.gemm m 4 n 4 k 4 a(%dy ld 4 trans : tensor<4x4xf32>) b(%x ld 4 : tensor<4x4xf32>) bias(%z : tensor<4xf32>)
      -> tensor<4x4xf32>
  %3 = kernel.gemm m 2 n 4 k 4 a(%dy ld 4 offset 2 trans : tensor<4x4xf32>) b(%x ld 4 : tensor<4x4xf32>)
      -> tensor<2x4xf32>
  %4 = kernel.gemm m 4 n 4 k 2 batch 2 a(%dy ld 4 stride 8 trans : tensor<4x4xf32>)
      b(%x ld 4 stride 8 : tensor<4x4xf32>) -> tensor<8x4xf32>
  %5 = kernel.gemm m 4 n 4 k 4 a(%wide ld 4 trans : tensor<4x4xf64>) b(%wide ld 4 : tensor<4x4xf64>) -> tensor<4x4xf64>
  return %b, %d, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf64>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<4x4xf64>
}
