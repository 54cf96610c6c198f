// Sharding rules by execution, where the shapes, reductions and options of the round-trip tests do not reach.
// RUN: spmd-interpret %s --check-rules | FileCheck %s

// Broadcasting: dims that are missing, of size 1, shared.
// CHECK: aten.add.Tensor: 3 factors
func.func @broadcast(%a: tensor<2x1x5xf32>, %b: tensor<3x5xf32>) -> tensor<2x3x5xf32> {
  %0 = aten.add.Tensor %a, %b {alpha = 2 : i64} : (tensor<2x1x5xf32>, tensor<3x5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// CHECK: aten.sum.dim_IntList: 6 factors
func.func @sums(%a: tensor<2x3x5xf32>) -> (tensor<2x1x1xf32>, tensor<3xf32>) {
  %0 = aten.sum.dim_IntList %a {dim = array<i64: 1, 2>, keepdim = true} : (tensor<2x3x5xf32>) -> tensor<2x1x1xf32>
  %1 = aten.sum.dim_IntList %a {dim = array<i64: 0, 2>} : (tensor<2x3x5xf32>) -> tensor<3xf32>
  return %0, %1 : tensor<2x1x1xf32>, tensor<3xf32>
}

// CHECK: aten.amax: 2 factors
func.func @max(%a: tensor<3x5xf32>) -> tensor<3x1xf32> {
  %0 = aten.amax %a {dim = array<i64: 1>, keepdim = true} : (tensor<3x5xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}

// CHECK: aten.linalg_vector_norm: {{[0-9]+}} factors
func.func @norms(%a: tensor<3x5xf32>) -> (tensor<f32>, tensor<5xf32>, tensor<3xf32>, tensor<f32>) {
  %0 = aten.linalg_vector_norm %a {dim = array<i64: 0, 1>, ord = 2.0 : f64} : (tensor<3x5xf32>) -> tensor<f32>
  %1 = aten.linalg_vector_norm %a {dim = array<i64: 0>, ord = 0x7FF0000000000000 : f64} : (tensor<3x5xf32>) -> tensor<5xf32>
  %2 = aten.linalg_vector_norm %a {dim = array<i64: 1>, ord = 0xFFF0000000000000 : f64} : (tensor<3x5xf32>) -> tensor<3xf32>
  %3 = aten.linalg_vector_norm %a {dim = array<i64: 0, 1>, ord = 1 : i64} : (tensor<3x5xf32>) -> tensor<f32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<5xf32>, tensor<3xf32>, tensor<f32>
}

// Losses: targets that are ignored, class weights, every reduction that has a rule.
// CHECK: aten.nll_loss_forward: 3 factors
// CHECK: aten.nll_loss_backward: 3 factors
func.func @nll(%x: tensor<7x5xf32>, %t: tensor<7xi64>, %w: tensor<5xf32>, %g: tensor<f32>, %gn: tensor<7xf32>)
    -> (tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>) {
  %l0, %t0 = aten.nll_loss_forward %x, %t, %w {reduction = 2 : i64, ignore_index = -100 : i64} : (tensor<7x5xf32>, tensor<7xi64>, tensor<5xf32>) -> (tensor<f32>, tensor<f32>)
  %l1, %t1 = aten.nll_loss_forward %x, %t {reduction = 2 : i64, ignore_index = 3 : i64} : (tensor<7x5xf32>, tensor<7xi64>) -> (tensor<f32>, tensor<f32>)
  %l2, %t2 = aten.nll_loss_forward %x, %t {reduction = 0 : i64, ignore_index = -100 : i64} : (tensor<7x5xf32>, tensor<7xi64>) -> (tensor<7xf32>, tensor<f32>)
  %b0 = aten.nll_loss_backward %g, %x, %t, %w, %t0 {reduction = 1 : i64, ignore_index = -100 : i64} : (tensor<f32>, tensor<7x5xf32>, tensor<7xi64>, tensor<5xf32>, tensor<f32>) -> tensor<7x5xf32>
  %b1 = aten.nll_loss_backward %g, %x, %t, %t1 {reduction = 2 : i64, ignore_index = 3 : i64} : (tensor<f32>, tensor<7x5xf32>, tensor<7xi64>, tensor<f32>) -> tensor<7x5xf32>
  %b2 = aten.nll_loss_backward %gn, %x, %t, %t2 {reduction = 0 : i64, ignore_index = -100 : i64} : (tensor<7xf32>, tensor<7x5xf32>, tensor<7xi64>, tensor<f32>) -> tensor<7x5xf32>
  return %b0, %b1, %b2 : tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>
}
// CHECK: aten.mse_loss: 4 factors
// CHECK: aten.mse_loss_backward: 4 factors
func.func @mse(%a: tensor<3x5xf32>, %b: tensor<3x5xf32>, %g: tensor<f32>) -> (tensor<f32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
  %0 = aten.mse_loss %a, %b {reduction = 2 : i64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<f32>
  %1 = aten.mse_loss %a, %b {reduction = 0 : i64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %2 = aten.mse_loss_backward %g, %a, %b {reduction = 2 : i64} : (tensor<f32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %3 = aten.mse_loss_backward %a, %a, %b {reduction = 0 : i64} : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>
}

// Attention: heads by themselves, those together that share a head of keys, also where all share one; a mask per batch row, a
// mask for all, one per head.
// CHECK: aten.sdpa: 12 factors
// CHECK: aten.sdpa_backward: 4 factors
func.func @sdpa(%q: tensor<3x4x5x6xf32>, %k: tensor<3x2x7x6xf32>, %full: tensor<3x4x7x6xf32>, %rows: tensor<3x1x5x7xf32>, %all: tensor<5x7xi1>, %heads: tensor<1x4x5x7xf32>, %one: tensor<3x1x7x6xf32>)
    -> (tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x2x7x6xf32>, tensor<3x1x7x6xf32>) {
  %0, %l0 = aten.sdpa %q, %k, %k {dropout_p = 0.0 : f64, is_causal = true, enable_gqa = true} : (tensor<3x4x5x6xf32>, tensor<3x2x7x6xf32>, tensor<3x2x7x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5xf32>)
  %1, %l1 = aten.sdpa %q, %full, %full, %rows {dropout_p = 0.0 : f64} : (tensor<3x4x5x6xf32>, tensor<3x4x7x6xf32>, tensor<3x4x7x6xf32>, tensor<3x1x5x7xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5xf32>)
  %2, %l2 = aten.sdpa %q, %full, %full, %all {dropout_p = 0.0 : f64} : (tensor<3x4x5x6xf32>, tensor<3x4x7x6xf32>, tensor<3x4x7x6xf32>, tensor<5x7xi1>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5xf32>)
  %3, %l3 = aten.sdpa %q, %full, %full, %heads {dropout_p = 0.0 : f64} : (tensor<3x4x5x6xf32>, tensor<3x4x7x6xf32>, tensor<3x4x7x6xf32>, tensor<1x4x5x7xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5xf32>)
  %4, %l4 = aten.sdpa %q, %k, %k, %heads {dropout_p = 0.0 : f64, enable_gqa = true} : (tensor<3x4x5x6xf32>, tensor<3x2x7x6xf32>, tensor<3x2x7x6xf32>, tensor<1x4x5x7xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5xf32>)
  %5, %l5 = aten.sdpa %q, %one, %one {dropout_p = 0.0 : f64, enable_gqa = true} : (tensor<3x4x5x6xf32>, tensor<3x1x7x6xf32>, tensor<3x1x7x6xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x4x5xf32>)
  %6:3 = aten.sdpa_backward %0, %q, %k, %k, %0, %l0 {dropout_p = 0.0 : f64, is_causal = true, enable_gqa = true} : (tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x2x7x6xf32>, tensor<3x2x7x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x2x7x6xf32>, tensor<3x2x7x6xf32>)
  %7:3 = aten.sdpa_backward %5, %q, %one, %one, %5, %l5 {dropout_p = 0.0 : f64, enable_gqa = true} : (tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x1x7x6xf32>, tensor<3x1x7x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5xf32>) -> (tensor<3x4x5x6xf32>, tensor<3x1x7x6xf32>, tensor<3x1x7x6xf32>)
  return %0, %1, %2, %3, %6#1, %7#1 : tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x4x5x6xf32>, tensor<3x2x7x6xf32>, tensor<3x1x7x6xf32>
}

// Products of groups of rows: the gradient of the matrices contracts them.
// CHECK: aten.grouped_mm: 3 factors
// CHECK: aten.grouped_outer: 3 factors
func.func @grouped(%x: tensor<7x4xf32>, %y: tensor<7x5xf32>, %w: tensor<3x4x5xf32>, %g: tensor<7xi64>) -> (tensor<7x5xf32>, tensor<3x4x5xf32>) {
  %0 = aten.grouped_mm %x, %w, %g : (tensor<7x4xf32>, tensor<3x4x5xf32>, tensor<7xi64>) -> tensor<7x5xf32>
  %1 = aten.grouped_outer %x, %y, %g {num_groups = 3 : i64} : (tensor<7x4xf32>, tensor<7x5xf32>, tensor<7xi64>) -> tensor<3x4x5xf32>
  return %0, %1 : tensor<7x5xf32>, tensor<3x4x5xf32>
}

// Padding rows of an embedding gradient.
// CHECK: aten.embedding_dense_backward: 3 factors
func.func @embedding(%g: tensor<2x7x4xf32>, %i: tensor<2x7xi64>) -> tensor<5x4xf32> {
  %0 = aten.embedding_dense_backward %g, %i {num_weights = 5 : i64, padding_idx = 1 : i64} : (tensor<2x7x4xf32>, tensor<2x7xi64>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// New dims and repeated ones.
// CHECK: aten.expand: {{[2-4]}} factors
func.func @expand(%a: tensor<3x1xf32>) -> tensor<2x3x5xf32> {
  %0 = aten.expand %a {size = array<i64: 2, 3, 5>} : (tensor<3x1xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}
