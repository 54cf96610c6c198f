// A vocabulary that is cut over the tensor axis: each rank looks up its own rows of the table and its own classes, and has 0 for
// the others. Of softmax a largest value and sums are sent; gradients of what was looked up in are a rank's own.

// DEFINE: %{cut} = spmd-opt %s --spmd-partition-tensor="mesh=tensor:2 override-placements=table=shard(0)"
// RUN: %{cut} | FileCheck %s
// RUN: %{cut} --spmd-assign-shard-units="mesh=tensor:2" --spmd-split-means --spmd-partition --spmd-verify-partition -o %t.mlir
// RUN: spmd-interpret %t.mlir --compare=%s

// CHECK: func.func @step(%[[TABLE:[a-z0-9]+]]: tensor<3x4xf32>
// CHECK: %[[FIRSTS:.*]] = aten.arange.start_step {end = 6 : i64, {{.*}}start = 0 : i64, step = 3 : i64} : () -> tensor<2xi64>
// CHECK: %[[FIRST:.*]] = spmd.slice %[[FIRSTS]] on @mesh ["tensor"] dim 0 pre 1 chunk 1
// CHECK: %[[OWN:.*]] = aten.sub.Tensor %{{.*}}, %[[FIRST]]
// CHECK: %[[ROWS:.*]] = aten.where.self %{{.*}}, %[[OWN]], %{{.*}} tensor<5xi64>
// CHECK: %[[FOUND:.*]] = aten.embedding %[[TABLE]], %[[ROWS]]
// CHECK: %[[KEPT:.*]] = aten.where.self %{{.*}}, %[[FOUND]], %{{.*}} -> tensor<5x4xf32>
// CHECK: spmd.all_reduce [sum] %[[KEPT]] on @mesh ["tensor"]
// CHECK: spmd.all_reduce [max] %{{.*}} on @mesh ["tensor"] {spmd.segment = 0 : i64} : (tensor<5x1xf32>) -> tensor<5x1xf32>
// CHECK: spmd.all_reduce [sum] %{{.*}} on @mesh ["tensor"] {spmd.segment = 0 : i64} : (tensor<5x1xf32>) -> tensor<5x1xf32>
// What is ignored in the whole loss, and what is another rank's, is ignored.
// CHECK: aten.ne.Scalar %{{.*}} {other = 2 : i64
// CHECK: aten.nll_loss_forward {{.*}} {ignore_index = -1 : i64, reduction = 2 : i64, {{.*}}tensor<5x3xf32>
// CHECK-COUNT-2: spmd.all_reduce [sum] %{{.*}} on @mesh ["tensor"] {spmd.segment = 0 : i64} : (tensor<f32>) -> tensor<f32>
// CHECK: aten.nll_loss_backward {{.*}} {ignore_index = -1 : i64, {{.*}} -> tensor<5x3xf32>
// CHECK: spmd.all_reduce [sum] %{{.*}} on @mesh ["tensor"] {spmd.segment = 1 : i64} : (tensor<5x1xf32>) -> tensor<5x1xf32>
// CHECK: spmd.all_reduce [sum] %{{.*}} on @mesh ["tensor"] {spmd.segment = 1 : i64} : (tensor<5x4xf32>) -> tensor<5x4xf32>
// CHECK: aten.embedding_dense_backward {{.*}}num_weights = 3 : i64, padding_idx = -1 : i64
// CHECK-NOT: spmd.all_reduce
// CHECK: return

module attributes {spmd.optimizer = "torch.optim.sgd.SGD", spmd.phases = ["forward", "backward", "optimizer"]} {
spmd.module_tree @tree {
  spmd.module "" class "model.Model" bases ["torch.nn.modules.module.Module"] params ["table"] buffers [] children []
}
func.func @step(%table: tensor<6x4xf32> {spmd.arg = #spmd.param<"table", trainable>}, %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.1 : f64>}, %x: tensor<5xi64> {spmd.arg = #spmd.batch<"x", dim = 0>}, %y: tensor<5xi64> {spmd.arg = #spmd.batch<"y", dim = 0>})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">}, tensor<6x4xf32> {spmd.result = #spmd.update<#spmd.param<"table", trainable>>}) {
  %rows = aten.embedding %table, %x {padding_idx = 4 : i64, spmd.segment = 0 : i64} : (tensor<6x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
  %t = aten.permute %table {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %logits = aten.mm %rows, %t {spmd.segment = 0 : i64} : (tensor<5x4xf32>, tensor<4x6xf32>) -> tensor<5x6xf32>
  %log = aten._log_softmax %logits {dim = 1 : i64, spmd.segment = 0 : i64} : (tensor<5x6xf32>) -> tensor<5x6xf32>
  %loss, %total = aten.nll_loss_forward %log, %y {ignore_index = 2 : i64, reduction = 1 : i64, spmd.segment = 0 : i64} : (tensor<5x6xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<f32>)
  %one = aten.full {fill_value = 1.0 : f64, size = array<i64>, spmd.segment = 1 : i64} : () -> tensor<f32>
  %g0 = aten.nll_loss_backward %one, %log, %y, %total {ignore_index = 2 : i64, reduction = 1 : i64, spmd.segment = 1 : i64} : (tensor<f32>, tensor<5x6xf32>, tensor<5xi64>, tensor<f32>) -> tensor<5x6xf32>
  %g1 = aten._log_softmax_backward_data %g0, %log {dim = 1 : i64, input_dtype = f32, spmd.segment = 1 : i64} : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x6xf32>
  %g2 = aten.mm %g1, %table {spmd.segment = 1 : i64} : (tensor<5x6xf32>, tensor<6x4xf32>) -> tensor<5x4xf32>
  %g3 = aten.permute %g1 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<5x6xf32>) -> tensor<6x5xf32>
  %g4 = aten.mm %g3, %rows {spmd.segment = 1 : i64} : (tensor<6x5xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  %g5 = aten.embedding_dense_backward %g2, %x {num_weights = 6 : i64, padding_idx = 4 : i64, spmd.segment = 1 : i64} : (tensor<5x4xf32>, tensor<5xi64>) -> tensor<6x4xf32>
  %g = aten.add.Tensor %g4, %g5 {spmd.segment = 1 : i64} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %new = aten._fused_sgd %table, %g, %lr {dampening = array<f64: 0.0>, groups = array<i64: 0>, momentum = array<f64: 0.0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>, weight_decay = array<f64: 0.0>, spmd.segment = 2 : i64} : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<f64>) -> tensor<6x4xf32>
  return %loss, %new : tensor<f32>, tensor<6x4xf32>
}
}
