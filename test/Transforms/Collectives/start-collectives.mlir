// RUN: spmd-opt %s --spmd-start-collectives --spmd-verify-schedule | FileCheck %s --check-prefix=AHEAD
// RUN: spmd-opt %s --spmd-start-collectives=prefetch=0 --spmd-verify-schedule | FileCheck %s --check-prefix=LEAST
// A unit that says 0 is gathered as with the option 0, whatever the option.
// RUN: sed -e 's/trainable = true>\]>$/& {prefetch = 0 : i64}/' %s > %t.mlir
// RUN: spmd-opt %t.mlir --spmd-start-collectives --spmd-verify-schedule | FileCheck %s --check-prefix=LEAST
// RUN: not spmd-opt %s --spmd-start-collectives=prefetch=2 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: prefetch is 2, expected 0 or 1

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
spmd.shard_unit @unit1 modules ["a"] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>

// AHEAD: func.func @step(%[[S0:.*]]: tensor<128xf32>, %[[S1:.*]]: tensor<128xf32>, %[[X:.*]]: tensor<2x16xf32>)
// AHEAD-NEXT: %[[H0:.*]] = spmd.all_gather_start %[[S0]] on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather
// AHEAD-NEXT: %[[G0:.*]] = spmd.wait %[[H0]]
// AHEAD-NEXT: %[[H1:.*]] = spmd.all_gather_start %[[S1]]
// AHEAD-NEXT: %[[W0:.*]] = spmd.unpack %[[G0]]
// AHEAD-NEXT: %[[T0:.*]] = aten.permute %[[W0]]
// AHEAD-NEXT: %[[Y0:.*]] = aten.mm %[[X]], %[[T0]]
// AHEAD-NEXT: spmd.release %[[G0]]
// AHEAD-NEXT: %[[G1:.*]] = spmd.wait %[[H1]]
// AHEAD-NEXT: %[[W1:.*]] = spmd.unpack %[[G1]]
// AHEAD-NEXT: %[[Y1:.*]] = aten.mm %[[Y0]], %[[W1]]
// AHEAD-NEXT: spmd.release %[[G1]]
// AHEAD-NEXT: %{{.*}} = aten.permute
// AHEAD-NEXT: %[[D:.*]] = aten.mm
// AHEAD-NEXT: %[[P:.*]] = spmd.pack %[[D]]
// AHEAD-NEXT: %[[HR:.*]] = spmd.reduce_scatter_start sum %[[P]] {{.*}} stream reduce
// AHEAD-NEXT: %[[L:.*]] = aten.sum.dim_IntList
// AHEAD-NEXT: %[[HL:.*]] = spmd.all_reduce_start [sum] %[[L]] {{.*}} stream scalar
// AHEAD-NEXT: %[[R:.*]] = spmd.wait %[[HR]]
// AHEAD-NEXT: %[[U:.*]] = aten.sub.Tensor %[[S0]], %[[R]]
// AHEAD-NEXT: %[[LR:.*]] = spmd.wait %[[HL]]
// AHEAD-NEXT: return %[[U]], %[[LR]]

// LEAST: %[[X0:.*]] = spmd.all_gather_start
// LEAST-NEXT: spmd.wait
// LEAST: spmd.release
// LEAST-NEXT: spmd.all_gather_start
// LEAST-NEXT: spmd.wait
// LEAST: spmd.release
func.func @step(%s0: tensor<128xf32>, %s1: tensor<128xf32>, %x: tensor<2x16xf32>) -> (tensor<128xf32>, tensor<f32>) {
  %0 = spmd.all_gather %s0 on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 : tensor<128xf32> -> tensor<256xf32>
  %w0 = spmd.unpack %0 unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
  %t0 = aten.permute %w0 {dims = array<i64: 1, 0>} : (tensor<4x16xf32>) -> tensor<16x4xf32>
  %y0 = aten.mm %x, %t0 : (tensor<2x16xf32>, tensor<16x4xf32>) -> tensor<2x4xf32>
  %1 = spmd.all_gather %s1 on @mesh ["data"] unit @unit1 dim 0 pre 1 total 256 : tensor<128xf32> -> tensor<256xf32>
  %w1 = spmd.unpack %1 unit @unit1 ["a.w"] : tensor<256xf32> -> tensor<4x4xf32>
  %y1 = aten.mm %y0, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %yt = aten.permute %y1 {dims = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %d = aten.mm %yt, %x : (tensor<4x2xf32>, tensor<2x16xf32>) -> tensor<4x16xf32>
  %p = spmd.pack %d unit @unit0 ["w"] : (tensor<4x16xf32>) -> tensor<256xf32>
  %r = spmd.reduce_scatter sum %p on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 : tensor<256xf32> -> tensor<128xf32>
  %l = aten.sum.dim_IntList %y1 {dim = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
  %lr = spmd.all_reduce [sum] %l on @mesh ["data"] : (tensor<f32>) -> tensor<f32>
  %u = aten.sub.Tensor %s0, %r : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  return %u, %lr : tensor<128xf32>, tensor<f32>
}
