// RUN: spmd-opt %s --spmd-share-key-value-heads --split-input-file | FileCheck %s

// Forward and backward read the heads and give the gradients of the heads; grad_value's sum keeps its dim, grad_key's does not.
// CHECK-LABEL: @both
// CHECK-SAME: %[[Q:.*]]: tensor<2x6x4x8xf32>, %[[K:.*]]: tensor<2x2x4x8xf32>, %[[V:.*]]: tensor<2x2x4x8xf32>, %[[G:.*]]: tensor<2x6x4x8xf32>
// CHECK-NOT: aten.expand
// CHECK: %[[O:.*]], %[[L:.*]] = aten.sdpa %[[Q]], %[[K]], %[[V]] {{.*}}enable_gqa = true
// CHECK: %{{.*}}, %[[DK:.*]], %[[DV:.*]] = aten.sdpa_backward %[[G]], %[[Q]], %[[K]], %[[V]], %[[O]], %[[L]]
// CHECK-SAME: enable_gqa = true
// CHECK-SAME: -> (tensor<2x6x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>)
// CHECK-NOT: aten.sum
// CHECK-DAG: aten.view %[[DK]] {size = array<i64: 2, 2, 4, 8>
// CHECK-DAG: aten.view %[[DV]] {size = array<i64: 2, 2, 1, 4, 8>
func.func @both(%q: tensor<2x6x4x8xf32>, %k: tensor<2x2x4x8xf32>, %v: tensor<2x2x4x8xf32>, %g: tensor<2x6x4x8xf32>)
    -> (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x1x4x8xf32>) {
  %k1 = aten.view %k {size = array<i64: 2, 2, 1, 4, 8>} : (tensor<2x2x4x8xf32>) -> tensor<2x2x1x4x8xf32>
  %k2 = aten.expand %k1 {size = array<i64: 2, 2, 3, 4, 8>} : (tensor<2x2x1x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %k3 = aten.clone %k2 : (tensor<2x2x3x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %kr = aten.view %k3 {size = array<i64: 2, 6, 4, 8>} : (tensor<2x2x3x4x8xf32>) -> tensor<2x6x4x8xf32>
  %v1 = aten.view %v {size = array<i64: 2, 2, 1, 4, 8>} : (tensor<2x2x4x8xf32>) -> tensor<2x2x1x4x8xf32>
  %v2 = aten.expand %v1 {size = array<i64: 2, 2, 3, 4, 8>} : (tensor<2x2x1x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %vr = aten.view %v2 {size = array<i64: 2, 6, 4, 8>} : (tensor<2x2x3x4x8xf32>) -> tensor<2x6x4x8xf32>
  %out, %lse = aten.sdpa %q, %kr, %vr {dropout_p = 0.0, is_causal = true, spmd.segment = 0} : (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x6x4xf32>)
  %dq, %dkr, %dvr = aten.sdpa_backward %g, %q, %kr, %vr, %out, %lse {dropout_p = 0.0, is_causal = true, spmd.segment = 1} : (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>)
  %dk1 = aten.view %dkr {size = array<i64: 2, 2, 3, 4, 8>} : (tensor<2x6x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %dk = aten.sum.dim_IntList %dk1 {dim = array<i64: 2>, keepdim = false} : (tensor<2x2x3x4x8xf32>) -> tensor<2x2x4x8xf32>
  %dv1 = aten.view %dvr {size = array<i64: 2, 2, 3, 4, 8>} : (tensor<2x6x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %dv = aten.sum.dim_IntList %dv1 {dim = array<i64: 2>, keepdim = true} : (tensor<2x2x3x4x8xf32>) -> tensor<2x2x1x4x8xf32>
  return %out, %dq, %dk, %dv : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x1x4x8xf32>
}

// -----

// Only the keys are repeated: values have all heads. A gradient that is read head by head keeps its heads.
// CHECK-LABEL: @neither
// CHECK: aten.sdpa %{{.*}} {dropout_p = 0.000000e+00 : f64, is_causal = true}
// CHECK-SAME: (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>)
// CHECK: aten.sdpa_backward
// CHECK-SAME: -> (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>)
// CHECK: aten.sum
func.func @neither(%q: tensor<2x6x4x8xf32>, %k: tensor<2x2x1x4x8xf32>, %v: tensor<2x6x4x8xf32>, %g: tensor<2x6x4x8xf32>, %lse: tensor<2x6x4xf32>)
    -> (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x2x4x8xf32>) {
  %k2 = aten.expand %k {size = array<i64: 2, 2, 3, 4, 8>} : (tensor<2x2x1x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %kr = aten.view %k2 {size = array<i64: 2, 6, 4, 8>} : (tensor<2x2x3x4x8xf32>) -> tensor<2x6x4x8xf32>
  %out, %l = aten.sdpa %q, %kr, %v {dropout_p = 0.0, is_causal = true} : (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x6x4xf32>)
  %dq, %dkr, %dvr = aten.sdpa_backward %g, %q, %kr, %kr, %out, %l {dropout_p = 0.0, is_causal = true} : (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>)
  %dk1 = aten.view %dkr {size = array<i64: 2, 2, 3, 4, 8>} : (tensor<2x6x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %dk = aten.sum.dim_IntList %dk1 {dim = array<i64: 2>, keepdim = false} : (tensor<2x2x3x4x8xf32>) -> tensor<2x2x4x8xf32>
  return %out, %dvr, %dk : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x2x4x8xf32>
}

// -----

// Heads that are repeated one after the other, not each for its group, are another pairing.
// CHECK-LABEL: @tiled
// CHECK: aten.sdpa
// CHECK-SAME: (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>)
func.func @tiled(%q: tensor<2x6x4x8xf32>, %k: tensor<2x1x2x4x8xf32>) -> tensor<2x6x4x8xf32> {
  %k2 = aten.expand %k {size = array<i64: 2, 3, 2, 4, 8>} : (tensor<2x1x2x4x8xf32>) -> tensor<2x3x2x4x8xf32>
  %kr = aten.view %k2 {size = array<i64: 2, 6, 4, 8>} : (tensor<2x3x2x4x8xf32>) -> tensor<2x6x4x8xf32>
  %out, %l = aten.sdpa %q, %kr, %kr {dropout_p = 0.0, is_causal = true} : (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x6x4xf32>)
  return %out : tensor<2x6x4x8xf32>
}

// -----

// Repeated over the batch as well: there are no keys of each sample to read.
// CHECK-LABEL: @oneSample
// CHECK: aten.expand
// CHECK: aten.sdpa
// CHECK-SAME: (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>)
func.func @oneSample(%q: tensor<2x6x4x8xf32>, %k: tensor<1x2x1x4x8xf32>) -> tensor<2x6x4x8xf32> {
  %k2 = aten.expand %k {size = array<i64: 2, 2, 3, 4, 8>} : (tensor<1x2x1x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %kr = aten.view %k2 {size = array<i64: 2, 6, 4, 8>} : (tensor<2x2x3x4x8xf32>) -> tensor<2x6x4x8xf32>
  %out, %l = aten.sdpa %q, %kr, %kr {dropout_p = 0.0, is_causal = true} : (tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>) -> (tensor<2x6x4x8xf32>, tensor<2x6x4xf32>)
  return %out : tensor<2x6x4x8xf32>
}
