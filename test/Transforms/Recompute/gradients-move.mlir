// RUN: spmd-opt %s --spmd-choose-recomputed=count=1 | FileCheck %s --check-prefix=CHOSEN
// RUN: spmd-opt %s --spmd-choose-recomputed=count=1 --spmd-recompute-values | FileCheck %s --check-prefix=ONE
// RUN: spmd-opt %s --spmd-choose-recomputed=count=3 --spmd-recompute-values | FileCheck %s --check-prefix=ALL

// A feed-forward block with a gate between two residuals. The product of gate and up is the cheapest value to compute
// again. The copy is an output of the kernel that reads %g and %u behind %dh, so the gradient of the weight moves there, with its cast.

module attributes {spmd.phases = ["forward", "backward"]} {

// CHOSEN: aten.mul.Tensor {{.*}} {spmd.recompute, spmd.segment = 0 : i64}
// CHOSEN-NOT: spmd.recompute

// ONE-NOT: spmd.recompute,
// ONE: %[[X:.*]] = aten.mm %arg0, %arg5
// ONE: %[[G:.*]] = aten.mm %[[X]], %arg1
// ONE: %[[U:.*]] = aten.mm %[[X]], %arg2
// ONE: %[[S:.*]] = aten.silu %[[G]] {spmd.recomputed, spmd.segment = 1 : i64}
// ONE: %[[H:.*]] = aten.mul.Tensor %[[S]], %[[U]] {spmd.recomputed, spmd.segment = 1 : i64}
// ONE: %[[DH:.*]] = aten.mm {{.*}}%arg4
// ONE-NEXT: %[[DW:.*]] = aten.mm %[[H]],
// ONE-NEXT: %[[WIDE:.*]] = aten._to_copy %[[DW]]
// ONE: aten.silu_backward
// ONE: return {{.*}}%[[WIDE]]

// With three values the products %g and %u run again as well, and nothing reads the first ones in backward.
// ALL: %[[X:.*]] = aten.mm %arg0, %arg5
// ALL: %[[G:.*]] = aten.mm %[[X]], %arg1 {spmd.segment = 0 : i64}
// ALL: %[[U:.*]] = aten.mm %[[X]], %arg2 {spmd.segment = 0 : i64}
// ALL: %[[G2:.*]] = aten.mm %[[X]], %arg1 {spmd.recomputed, spmd.segment = 1 : i64}
// ALL: %[[U2:.*]] = aten.mm %[[X]], %arg2 {spmd.recomputed, spmd.segment = 1 : i64}
// ALL: aten.silu_backward {{.*}}, %[[G2]]
func.func @step(%in: tensor<64x256xf32>, %wg: tensor<64x64xf32>, %wu: tensor<64x64xf32>, %wd: tensor<64x64xf32>,
                %wdt: tensor<64x64xf32>, %w0: tensor<256x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf64>) {
  %x = aten.mm %in, %w0 {spmd.segment = 0 : i64} : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %g = aten.mm %x, %wg {spmd.segment = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %u = aten.mm %x, %wu {spmd.segment = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = aten.silu %g {spmd.segment = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = aten.mul.Tensor %s, %u {spmd.segment = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = aten.mm %h, %wd {spmd.segment = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = aten.add.Tensor %x, %y {spmd.segment = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = aten.mm %r, %wd {spmd.segment = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dy = aten.neg %z {spmd.segment = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %dw = aten.mm %h, %dy {spmd.segment = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dwc = aten._to_copy %dw {dtype = f64, spmd.segment = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf64>
  %dh = aten.mm %dy, %wdt {spmd.segment = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %du = aten.mul.Tensor %dh, %s {spmd.segment = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %ds = aten.mul.Tensor %dh, %u {spmd.segment = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dg = aten.silu_backward %ds, %g {spmd.segment = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dwg = aten.mm %x, %dg {spmd.segment = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %dwg, %dg, %du, %dwc : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf64>
}
}
