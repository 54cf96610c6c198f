// RUN: spmd-opt %s --spmd-split-means | FileCheck %s

// Batch statistics: the squares of what is left of the mean, in f32 for halves.
// CHECK-LABEL: func.func @variance
func.func @variance(%x: tensor<8x4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  // CHECK: %[[X:.*]] = aten._to_copy %{{.*}} {dtype = f32, spmd.segment = 0 : i64}
  // CHECK: %[[S:.*]] = aten.sum.dim_IntList %[[X]] {dim = array<i64: 0>, keepdim = true, spmd.segment = 0 : i64}
  // CHECK: %[[MEAN:.*]] = aten.div.Scalar %[[S]] {other = 8.000000e+00 : f64
  // CHECK: %[[D:.*]] = aten.sub.Tensor %[[X]], %[[MEAN]]
  // CHECK: %[[Q:.*]] = aten.mul.Tensor %[[D]], %[[D]]
  // CHECK: %[[T:.*]] = aten.sum.dim_IntList %[[Q]]
  // CHECK: %[[VAR:.*]] = aten.div.Scalar %[[T]] {other = 7.000000e+00 : f64
  // CHECK: aten._to_copy %[[VAR]] {dtype = bf16
  // CHECK: aten.view {{.*}} -> tensor<4xbf16>
  // CHECK: aten._to_copy %[[MEAN]] {dtype = bf16
  %0, %1 = aten.var_mean.correction %x {dim = array<i64: 0>, spmd.segment = 0 : i64} : (tensor<8x4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>)
  return %0, %1 : tensor<4xbf16>, tensor<4xbf16>
}

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<8x4xf32>, %t: tensor<8x4xf32>, %c: tensor<8xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>) {
  // CHECK: %[[S0:.*]] = aten.mse_loss %{{.*}}, %{{.*}} {reduction = 2 : i64, spmd.segment = 0 : i64}
  // CHECK-NEXT: %[[L0:.*]] = aten.div.Scalar %[[S0]] {other = 32 : i64, spmd.segment = 0 : i64}
  %0 = aten.mse_loss %x, %t {reduction = 1 : i64, spmd.segment = 0 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
  // CHECK: %[[S1:.*]] = aten.sum.dim_IntList %{{.*}} {dim = array<i64: 1>{{.*}}} : (tensor<8x4xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[L1:.*]] = aten.div.Scalar %[[S1]] {other = 4 : i64}
  %1 = aten.mean.dim %x {dim = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32>
  // The total weight is what the backward divides by; it is a sum already.
  // CHECK: %[[S2:.*]], %[[W:.*]] = aten.nll_loss_forward {{.*}} reduction = 2
  // CHECK-NEXT: %[[L2:.*]] = aten.div.Tensor %[[S2]], %[[W]]
  %2, %w = aten.nll_loss_forward %x, %c {ignore_index = -100 : i64, reduction = 1 : i64} : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>)
  // CHECK: %[[B:.*]] = aten.nll_loss_backward {{.*}} reduction = 1
  %3 = aten.nll_loss_backward %g, %x, %c, %w {ignore_index = -100 : i64, reduction = 1 : i64} : (tensor<f32>, tensor<8x4xf32>, tensor<8xi64>, tensor<f32>) -> tensor<8x4xf32>
  // CHECK: %[[S4:.*]] = aten.mse_loss_backward {{.*}} {reduction = 2 : i64}
  // CHECK-NEXT: %[[L4:.*]] = aten.div.Scalar %[[S4]] {other = 32 : i64}
  %4 = aten.mse_loss_backward %g, %x, %t {reduction = 1 : i64} : (tensor<f32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  // A sum stays.
  // CHECK: %[[L5:.*]] = aten.mse_loss {{.*}} {reduction = 2 : i64}
  // CHECK-NEXT: return %[[L0]], %[[L1]], %[[L2]], %[[W]], %[[B]], %[[L4]], %[[L5]]
  %5 = aten.mse_loss %x, %t {reduction = 2 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
  return %0, %1, %2, %w, %3, %4, %5 : tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
}
