// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias,gelu_tanh_backward" | FileCheck %s
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=bias,residual" | FileCheck %s --check-prefix=OFF
// RUN: spmd-opt %s --spmd-fuse-gemm-epilogues="epilogues=gelu_tanh_backward" | FileCheck %s --check-prefix=OFF

// What gelu was applied to is in no memory, and its bias is a parameter that is gathered once more for the gradient.

// OFF-NOT: gelu_tanh_backward
// OFF-NOT: bias(

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit modules ["unit"] mesh @mesh axes ["data"] fully_shard reshard_after_forward
  layout #spmd.flat<f32, padded = 512, [#spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
      #spmd.segment<"b", shape = [16], group = 0, offset = 128, numel = 16, trainable = true>,
      #spmd.segment<"c", shape = [16], group = 0, offset = 256, numel = 16, trainable = true>]>
spmd.shard_unit @other modules ["other"] mesh @mesh axes ["data"] fully_shard reshard_after_forward
  layout #spmd.flat<f32, padded = 512, [#spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
      #spmd.segment<"b", shape = [16], group = 0, offset = 128, numel = 16, trainable = true>,
      #spmd.segment<"c", shape = [16], group = 0, offset = 256, numel = 16, trainable = true>]>

// It is the same: the GEMM before adds it, and the gradient reads the sum.
// CHECK-LABEL: @gathered_again
// CHECK: %[[P:.*]]:3 = spmd.unpack
// CHECK-NEXT: %[[H:.*]] = kernel.gemm {{.*}} bias(%[[P]]#1 : tensor<16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT: kernel.cluster
// CHECK-NEXT: ins(%{{.*}} = %[[H]] at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>)
// CHECK-NOT: kernel.cluster
// CHECK: %[[D:.*]] = kernel.gemm {{.*}} activation gelu_tanh_backward pre_activation(%[[H]] : tensor<8x16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT: return %{{.*}}, %[[D]]
func.func @gathered_again(%p: tensor<256xf32>, %q: tensor<256xf32>, %x: tensor<8x4xf32>, %dy: tensor<8x4xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %start = spmd.all_gather_start %p on @mesh ["data"] unit @unit dim 0 pre 1 total 512 stream gather
      {spmd.segment = 0 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat = spmd.wait %start : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %w, %b, %c = spmd.unpack %flat unit @unit ["w", "b", "c"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>, tensor<16xf32>
  %m = kernel.gemm m 8 n 16 k 4 a(%x ld 4 : tensor<8x4xf32>) b(%w ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %y = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %b at (d0, d1) -> (d1) : tensor<16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
    %0 = arith.addf %e, %f : f32
    %1 = math.sin %0 : f32
    kernel.yield %1 : f32
  }
  spmd.release %flat : tensor<512xf32>
  %again = spmd.all_gather_start %p on @mesh ["data"] unit @unit dim 0 pre 1 total 512 stream gather
      {spmd.segment = 1 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat1 = spmd.wait %again : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %v, %d = spmd.unpack %flat1 unit @unit ["w", "b"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>
  %n = kernel.gemm m 8 n 16 k 4 a(%dy ld 4 : tensor<8x4xf32>) b(%v ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %d at (d0, d1) -> (d1) : tensor<16xf32>,
          %g = %n at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
      %0 = arith.addf %e, %f : f32
      %one = arith.constant 1.000000e+00 : f32
      %beta = arith.constant -2.30220819 : f32
      %kappa = arith.constant -0.102943242 : f32
      %1 = arith.mulf %0, %0 : f32
      %2 = arith.mulf %kappa, %1 : f32
      %3 = arith.addf %beta, %2 : f32
      %also = arith.constant 1.000000e+00 : f32
      %4 = arith.mulf %0, %3 : f32
      %5 = math.exp2 %4 : f32
      %6 = arith.addf %also, %5 : f32
      %7 = arith.divf %one, %6 : f32
      %inner = arith.constant 1.59576917 : f32
      %outer = arith.constant 0.214064449 : f32
      %8 = arith.mulf %0, %0 : f32
      %9 = arith.mulf %outer, %8 : f32
      %10 = arith.addf %inner, %9 : f32
      %11 = arith.subf %one, %7 : f32
      %12 = arith.mulf %7, %11 : f32
      %13 = arith.mulf %12, %0 : f32
      %14 = arith.mulf %13, %10 : f32
      %15 = arith.addf %7, %14 : f32
      %16 = arith.mulf %g, %15 : f32
      kernel.yield %16 : f32
  }
  return %y, %dh : tensor<8x16xf32>, tensor<8x16xf32>
}

// Another parameter of the unit, or of another one, or of the same unit but other values, is not.
// CHECK-LABEL: @another_name
// CHECK-NOT: gelu_tanh_backward
// CHECK-NOT: bias(
func.func @another_name(%p: tensor<256xf32>, %q: tensor<256xf32>, %x: tensor<8x4xf32>, %dy: tensor<8x4xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %start = spmd.all_gather_start %p on @mesh ["data"] unit @unit dim 0 pre 1 total 512 stream gather
      {spmd.segment = 0 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat = spmd.wait %start : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %w, %b, %c = spmd.unpack %flat unit @unit ["w", "b", "c"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>, tensor<16xf32>
  %m = kernel.gemm m 8 n 16 k 4 a(%x ld 4 : tensor<8x4xf32>) b(%w ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %y = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %b at (d0, d1) -> (d1) : tensor<16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
    %0 = arith.addf %e, %f : f32
    %1 = math.sin %0 : f32
    kernel.yield %1 : f32
  }
  spmd.release %flat : tensor<512xf32>
  %again = spmd.all_gather_start %p on @mesh ["data"] unit @unit dim 0 pre 1 total 512 stream gather
      {spmd.segment = 1 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat1 = spmd.wait %again : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %v, %d = spmd.unpack %flat1 unit @unit ["w", "c"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>
  %n = kernel.gemm m 8 n 16 k 4 a(%dy ld 4 : tensor<8x4xf32>) b(%v ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %d at (d0, d1) -> (d1) : tensor<16xf32>,
          %g = %n at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
      %0 = arith.addf %e, %f : f32
      %one = arith.constant 1.000000e+00 : f32
      %beta = arith.constant -2.30220819 : f32
      %kappa = arith.constant -0.102943242 : f32
      %1 = arith.mulf %0, %0 : f32
      %2 = arith.mulf %kappa, %1 : f32
      %3 = arith.addf %beta, %2 : f32
      %also = arith.constant 1.000000e+00 : f32
      %4 = arith.mulf %0, %3 : f32
      %5 = math.exp2 %4 : f32
      %6 = arith.addf %also, %5 : f32
      %7 = arith.divf %one, %6 : f32
      %inner = arith.constant 1.59576917 : f32
      %outer = arith.constant 0.214064449 : f32
      %8 = arith.mulf %0, %0 : f32
      %9 = arith.mulf %outer, %8 : f32
      %10 = arith.addf %inner, %9 : f32
      %11 = arith.subf %one, %7 : f32
      %12 = arith.mulf %7, %11 : f32
      %13 = arith.mulf %12, %0 : f32
      %14 = arith.mulf %13, %10 : f32
      %15 = arith.addf %7, %14 : f32
      %16 = arith.mulf %g, %15 : f32
      kernel.yield %16 : f32
  }
  return %y, %dh : tensor<8x16xf32>, tensor<8x16xf32>
}

// CHECK-LABEL: @another_unit
// CHECK-NOT: gelu_tanh_backward
// CHECK-NOT: bias(
func.func @another_unit(%p: tensor<256xf32>, %q: tensor<256xf32>, %x: tensor<8x4xf32>, %dy: tensor<8x4xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %start = spmd.all_gather_start %p on @mesh ["data"] unit @unit dim 0 pre 1 total 512 stream gather
      {spmd.segment = 0 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat = spmd.wait %start : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %w, %b, %c = spmd.unpack %flat unit @unit ["w", "b", "c"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>, tensor<16xf32>
  %m = kernel.gemm m 8 n 16 k 4 a(%x ld 4 : tensor<8x4xf32>) b(%w ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %y = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %b at (d0, d1) -> (d1) : tensor<16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
    %0 = arith.addf %e, %f : f32
    %1 = math.sin %0 : f32
    kernel.yield %1 : f32
  }
  spmd.release %flat : tensor<512xf32>
  %again = spmd.all_gather_start %p on @mesh ["data"] unit @other dim 0 pre 1 total 512 stream gather
      {spmd.segment = 1 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat1 = spmd.wait %again : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %v, %d = spmd.unpack %flat1 unit @other ["w", "b"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>
  %n = kernel.gemm m 8 n 16 k 4 a(%dy ld 4 : tensor<8x4xf32>) b(%v ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %d at (d0, d1) -> (d1) : tensor<16xf32>,
          %g = %n at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
      %0 = arith.addf %e, %f : f32
      %one = arith.constant 1.000000e+00 : f32
      %beta = arith.constant -2.30220819 : f32
      %kappa = arith.constant -0.102943242 : f32
      %1 = arith.mulf %0, %0 : f32
      %2 = arith.mulf %kappa, %1 : f32
      %3 = arith.addf %beta, %2 : f32
      %also = arith.constant 1.000000e+00 : f32
      %4 = arith.mulf %0, %3 : f32
      %5 = math.exp2 %4 : f32
      %6 = arith.addf %also, %5 : f32
      %7 = arith.divf %one, %6 : f32
      %inner = arith.constant 1.59576917 : f32
      %outer = arith.constant 0.214064449 : f32
      %8 = arith.mulf %0, %0 : f32
      %9 = arith.mulf %outer, %8 : f32
      %10 = arith.addf %inner, %9 : f32
      %11 = arith.subf %one, %7 : f32
      %12 = arith.mulf %7, %11 : f32
      %13 = arith.mulf %12, %0 : f32
      %14 = arith.mulf %13, %10 : f32
      %15 = arith.addf %7, %14 : f32
      %16 = arith.mulf %g, %15 : f32
      kernel.yield %16 : f32
  }
  return %y, %dh : tensor<8x16xf32>, tensor<8x16xf32>
}

// CHECK-LABEL: @other_values
// CHECK-NOT: gelu_tanh_backward
// CHECK-NOT: bias(
func.func @other_values(%p: tensor<256xf32>, %q: tensor<256xf32>, %x: tensor<8x4xf32>, %dy: tensor<8x4xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %start = spmd.all_gather_start %p on @mesh ["data"] unit @unit dim 0 pre 1 total 512 stream gather
      {spmd.segment = 0 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat = spmd.wait %start : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %w, %b, %c = spmd.unpack %flat unit @unit ["w", "b", "c"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>, tensor<16xf32>
  %m = kernel.gemm m 8 n 16 k 4 a(%x ld 4 : tensor<8x4xf32>) b(%w ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %y = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %b at (d0, d1) -> (d1) : tensor<16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
    %0 = arith.addf %e, %f : f32
    %1 = math.sin %0 : f32
    kernel.yield %1 : f32
  }
  spmd.release %flat : tensor<512xf32>
  %again = spmd.all_gather_start %q on @mesh ["data"] unit @unit dim 0 pre 1 total 512 stream gather
      {spmd.segment = 1 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat1 = spmd.wait %again : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %v, %d = spmd.unpack %flat1 unit @unit ["w", "b"] : tensor<512xf32> -> tensor<4x16xf32>, tensor<16xf32>
  %n = kernel.gemm m 8 n 16 k 4 a(%dy ld 4 : tensor<8x4xf32>) b(%v ld 16 : tensor<4x16xf32>) -> tensor<8x16xf32>
  %dh = kernel.cluster dims [8, 16] parallel 1
      ins(%e = %m at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>, %f = %d at (d0, d1) -> (d1) : tensor<16xf32>,
          %g = %n at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>)
      outs(at (d0, d1) -> (d0 * 16 + d1) : tensor<8x16xf32>) {
      %0 = arith.addf %e, %f : f32
      %one = arith.constant 1.000000e+00 : f32
      %beta = arith.constant -2.30220819 : f32
      %kappa = arith.constant -0.102943242 : f32
      %1 = arith.mulf %0, %0 : f32
      %2 = arith.mulf %kappa, %1 : f32
      %3 = arith.addf %beta, %2 : f32
      %also = arith.constant 1.000000e+00 : f32
      %4 = arith.mulf %0, %3 : f32
      %5 = math.exp2 %4 : f32
      %6 = arith.addf %also, %5 : f32
      %7 = arith.divf %one, %6 : f32
      %inner = arith.constant 1.59576917 : f32
      %outer = arith.constant 0.214064449 : f32
      %8 = arith.mulf %0, %0 : f32
      %9 = arith.mulf %outer, %8 : f32
      %10 = arith.addf %inner, %9 : f32
      %11 = arith.subf %one, %7 : f32
      %12 = arith.mulf %7, %11 : f32
      %13 = arith.mulf %12, %0 : f32
      %14 = arith.mulf %13, %10 : f32
      %15 = arith.addf %7, %14 : f32
      %16 = arith.mulf %g, %15 : f32
      kernel.yield %16 : f32
  }
  return %y, %dh : tensor<8x16xf32>, tensor<8x16xf32>
}
