// What a step returns that rearranges a gathered parameter is copied, and the buffer is free behind the copy; a buffer that is
// returned as it lies is never free.
// RUN: spmd-opt %s --spmd-start-collectives --spmd-verify-schedule | FileCheck %s

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
spmd.shard_unit @unit1 modules ["a"] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"a.w", shape = [6], group = 0, offset = 0, numel = 6, trainable = true>]>

// CHECK-LABEL: func.func @step
// CHECK:         %[[G0:.*]] = spmd.wait {{.*}} -> tensor<256xf32>
// CHECK:         %[[G1:.*]] = spmd.wait {{.*}} -> tensor<256xf32>
// CHECK-NEXT:    %[[W:.*]] = spmd.unpack %[[G1]]
// CHECK:         %[[ROWS:.*]] = aten.expand
// CHECK-NEXT:    %[[REPEATED:.*]] = aten.view %[[ROWS]]
// CHECK-NEXT:    %[[COPY:.*]] = aten.clone %[[REPEATED]]
// CHECK-NEXT:    spmd.release %[[G1]]
// CHECK-NOT:     spmd.release
// CHECK:         return %{{.*}}, %[[COPY]]
func.func @step(%s0: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "param">},
                %s1: tensor<128xf32> {spmd.arg = #spmd.shard<@unit1, "param">})
    -> (tensor<64xf32> {spmd.result = #spmd.output<"0">}, tensor<10x6xf32> {spmd.result = #spmd.output<"1">}) {
  %g0 = spmd.all_gather %s0 on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 : tensor<128xf32> -> tensor<256xf32>
  %w0 = spmd.unpack %g0 unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
  %flat = aten.view %w0 {size = array<i64: 64>} : (tensor<4x16xf32>) -> tensor<64xf32>
  %g1 = spmd.all_gather %s1 on @mesh ["data"] unit @unit1 dim 0 pre 1 total 256 : tensor<128xf32> -> tensor<256xf32>
  %w1 = spmd.unpack %g1 unit @unit1 ["a.w"] : tensor<256xf32> -> tensor<6xf32>
  %row = aten.view %w1 {size = array<i64: 1, 6>} : (tensor<6xf32>) -> tensor<1x6xf32>
  %rows = aten.expand %row {size = array<i64: 10, 6>} : (tensor<1x6xf32>) -> tensor<10x6xf32>
  %repeated = aten.view %rows {size = array<i64: 10, 6>} : (tensor<10x6xf32>) -> tensor<10x6xf32>
  return %flat, %repeated : tensor<64xf32>, tensor<10x6xf32>
}
