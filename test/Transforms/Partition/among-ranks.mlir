// RUN: spmd-opt %s --spmd-partition=view=local --spmd-verify-partition -split-input-file -verify-diagnostics | FileCheck %s

// What all ranks get varies no more; a part of it is a rank's own. A mean is a sum and a division.
// CHECK-LABEL: @step(
module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<8x4xf32> {spmd.result = #spmd.output<"mean">}, tensor<16x4xf32> {spmd.result = #spmd.output<"every">},
        tensor<4x4xf32> {spmd.result = #spmd.output<"part">}, tensor<8x4xf32> {spmd.result = #spmd.output<"twice">},
        tensor<16x4xf32> {spmd.result = #spmd.output<"copies">}) {
  // CHECK: %[[SUM:.*]] = spmd.all_reduce [sum] %[[X:.*]] on @mesh ["data"] {{.*}}[varying]>>) -> tensor<8x4xf32, {{.*}}[replicated]>>
  // CHECK: %[[MEAN:.*]] = aten.div.Scalar %[[SUM]] {other = 2 : i64
  %mean = aten.c10d_all_reduce %x {kind = "avg", ranks = 2 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: %[[EVERY:.*]] = spmd.all_gather %[[X]] on @mesh ["data"] dim 0 pre 1 total 16 {{.*}}[varying]>> -> tensor<16x4xf32, {{.*}}[replicated]>>
  %every = aten.c10d_all_gather %x {ranks = 2 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>) -> tensor<16x4xf32>
  // CHECK: %[[MOST:.*]] = spmd.all_reduce [max] %[[X]]
  // CHECK: %[[PART:.*]] = spmd.slice %[[MOST]] on @mesh ["data"] dim 0 pre 1 chunk 4 {{.*}} -> tensor<4x4xf32, {{.*}}[varying]>>
  %part = aten.c10d_reduce_scatter %x {kind = "max", ranks = 2 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  // What is the same on all ranks needs no collective.
  // CHECK: %[[TWICE:.*]] = aten.mul.Scalar %[[MEAN]] {other = 2 : i64
  %twice = aten.c10d_all_reduce %mean {kind = "sum", ranks = 2 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: %[[COPIES:.*]] = aten.cat %[[MEAN]], %[[MEAN]] {dim = 0 : i64
  %copies = aten.c10d_all_gather %mean {ranks = 2 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>) -> tensor<16x4xf32>
  // CHECK: return %[[MEAN]], %[[EVERY]], %[[PART]], %[[TWICE]], %[[COPIES]]
  return %mean, %every, %part, %twice, %copies : tensor<8x4xf32>, tensor<16x4xf32>, tensor<4x4xf32>, tensor<8x4xf32>, tensor<16x4xf32>
}
}

// -----

module {
spmd.mesh @mesh ["data" = 2]
func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<8x4xf32> {spmd.result = #spmd.output<"mean">}) {
  // expected-error @+1 {{this collective is among 4 ranks, and the step is compiled for 2}}
  %mean = aten.c10d_all_reduce %x {kind = "avg", ranks = 4 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %mean : tensor<8x4xf32>
}
}
