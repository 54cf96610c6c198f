// List ops on a rank's chunk of a flat buffer do what they do on lists: two param groups, four ranks, segments that cross
// chunk borders, tables with one entry per segment.
// RUN: split-file %s %t
// RUN: cat %t/unit.mlir %t/chunk.mlir > %t/lists.mlir
// RUN: spmd-interpret %t/lists.mlir --compare=%t/base.mlir --steps=3 | FileCheck %s
// RUN: cat %t/unit.mlir %t/plain.mlir > %t/arithmetic.mlir
// RUN: spmd-interpret %t/arithmetic.mlir --compare=%t/base.mlir --steps=3 | FileCheck %s
// CHECK: collectives: all_reduce 1 (12 bytes per rank)
// CHECK: outputs 3 {{.*}}e-{{1[67]|[+]?00}} output/norm
// CHECK-NEXT: parameters 3 {{.*}}e-1
// CHECK-NEXT: exp_avg 3 {{.*}}e-1
// CHECK-NEXT: exp_avg_sq 3 {{.*}}e-1
// CHECK-NEXT: step 3 0.00e+00

// Group 1 has a learning rate, betas and a weight decay of its own: the test sees if they were swapped.
// RUN: sed 's/groups = array<i64: 0, 0, 1>/groups = array<i64: 0, 1, 1>/' %t/lists.mlir > %t/swapped.mlir
// RUN: not spmd-interpret %t/swapped.mlir --compare=%t/base.mlir --steps=3 2>&1 | FileCheck %s --check-prefix=SWAPPED
// SWAPPED: the programs differ

//--- base.mlir
func.func @step(
    %p_a: tensor<10x20xf32> {spmd.arg = #spmd.param<"a", trainable>},
    %p_b: tensor<300xf32> {spmd.arg = #spmd.param<"b", trainable>},
    %p_c: tensor<7xf32> {spmd.arg = #spmd.param<"c", trainable>},
    %exp_avg_a: tensor<10x20xf32> {spmd.arg = #spmd.state<"exp_avg", of = "a", init = 0.0>},
    %exp_avg_b: tensor<300xf32> {spmd.arg = #spmd.state<"exp_avg", of = "b", init = 0.0>},
    %exp_avg_c: tensor<7xf32> {spmd.arg = #spmd.state<"exp_avg", of = "c", init = 0.0>},
    %exp_avg_sq_a: tensor<10x20xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "a", init = 0.0>},
    %exp_avg_sq_b: tensor<300xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "b", init = 0.0>},
    %exp_avg_sq_c: tensor<7xf32> {spmd.arg = #spmd.state<"exp_avg_sq", of = "c", init = 0.0>},
    %step_a: tensor<f32> {spmd.arg = #spmd.state<"step", of = "a", init = 0.0>},
    %step_b: tensor<f32> {spmd.arg = #spmd.state<"step", of = "b", init = 0.0>},
    %step_c: tensor<f32> {spmd.arg = #spmd.state<"step", of = "c", init = 0.0>},
    %lr0: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.01>},
    %lr1: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 1, value = 0.02>},
    %g_a: tensor<10x20xf32> {spmd.arg = #spmd.batch<"g_a", dim = none>},
    %g_b: tensor<300xf32> {spmd.arg = #spmd.batch<"g_b", dim = none>},
    %g_c: tensor<7xf32> {spmd.arg = #spmd.batch<"g_c", dim = none>})
    -> (tensor<f32> {spmd.result = #spmd.output<"norm">},
        tensor<10x20xf32> {spmd.result = #spmd.update<#spmd.param<"a", trainable>>},
        tensor<300xf32> {spmd.result = #spmd.update<#spmd.param<"b", trainable>>},
        tensor<7xf32> {spmd.result = #spmd.update<#spmd.param<"c", trainable>>},
        tensor<10x20xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "a", init = 0.0>>},
        tensor<300xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "b", init = 0.0>>},
        tensor<7xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "c", init = 0.0>>},
        tensor<10x20xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "a", init = 0.0>>},
        tensor<300xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "b", init = 0.0>>},
        tensor<7xf32> {spmd.result = #spmd.update<#spmd.state<"exp_avg_sq", of = "c", init = 0.0>>},
        tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "a", init = 0.0>>},
        tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "b", init = 0.0>>},
        tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "c", init = 0.0>>}) {
  %n:3 = aten._foreach_norm.Scalar %g_a, %g_b, %g_c {ord = 2 : i64} : (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  %stacked = aten.stack %n#0, %n#1, %n#2 {dim = 0 : i64} : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<3xf32>
  %norm = aten.linalg_vector_norm %stacked {dim = array<i64: 0>, ord = 2 : i64} : (tensor<3xf32>) -> tensor<f32>
  %factor = aten.reciprocal %norm : (tensor<f32>) -> tensor<f32>
  %g:3 = aten._foreach_mul.Tensor %g_a, %g_b, %g_c, %factor : (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<f32>) -> (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>)
  // Divided by its own norm once more: a value per list position.
  %h:3 = aten._foreach_div.List %g#0, %g#1, %g#2, %n#0, %n#1, %n#2 : (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>)
  %i:3 = aten._foreach_mul.ScalarList %h#0, %h#1, %h#2 {scalars = [1.5 : f64, 2 : i64, 0.5 : f64]} : (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>) -> (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>)
  %s:3 = aten._foreach_add.Scalar %step_a, %step_b, %step_c {scalar = 1 : i64} : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  %r:9 = aten._fused_adamw %p_a, %p_b, %p_c, %i#0, %i#1, %i#2, %exp_avg_a, %exp_avg_b, %exp_avg_c, %exp_avg_sq_a, %exp_avg_sq_b, %exp_avg_sq_c, %s#0, %s#1, %s#2, %lr0, %lr1
      {beta1 = array<f64: 0.9, 0.8>, beta2 = array<f64: 0.95, 0.99>, weight_decay = array<f64: 0.1, 0.0>, eps = array<f64: 1.0e-8, 1.0e-6>, amsgrad = false, maximize = false, groups = array<i64: 0, 0, 1>,
       operandSegmentSizes = array<i32: 3, 3, 3, 3, 0, 3, 2>, resultSegmentSizes = array<i32: 3, 3, 3, 0>}
      : (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f64>, tensor<f64>) -> (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>)
  return %norm, %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7, %r#8, %s#0, %s#1, %s#2
      : tensor<f32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>, tensor<f32>, tensor<f32>, tensor<f32>
}

//--- unit.mlir
spmd.mesh @mesh ["data" = 4]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout
    #spmd.flat<f32, padded = 1024, [
      #spmd.segment<"a", shape = [10, 20], group = 0, offset = 0, numel = 200, trainable = true>,
      #spmd.segment<"b", shape = [300], group = 0, offset = 256, numel = 300, trainable = true>,
      #spmd.segment<"c", shape = [7], group = 1, offset = 640, numel = 7, trainable = true>]>

//--- chunk.mlir
func.func @step(
    %p: tensor<256xf32> {spmd.arg = #spmd.shard<@unit0, "param">},
    %m: tensor<256xf32> {spmd.arg = #spmd.shard<@unit0, "exp_avg", init = 0.0>},
    %v: tensor<256xf32> {spmd.arg = #spmd.shard<@unit0, "exp_avg_sq", init = 0.0>},
    %step: tensor<3xf32> {spmd.arg = #spmd.table<@unit0, "step", init = 0.0>},
    %lr0: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.01>},
    %lr1: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 1, value = 0.02>},
    %g_a: tensor<10x20xf32> {spmd.arg = #spmd.batch<"g_a", dim = none>},
    %g_b: tensor<300xf32> {spmd.arg = #spmd.batch<"g_b", dim = none>},
    %g_c: tensor<7xf32> {spmd.arg = #spmd.batch<"g_c", dim = none>})
    -> (tensor<f32> {spmd.result = #spmd.output<"norm">},
        tensor<256xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>},
        tensor<256xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "exp_avg", init = 0.0>>},
        tensor<256xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "exp_avg_sq", init = 0.0>>},
        tensor<3xf32> {spmd.result = #spmd.update<#spmd.table<@unit0, "step", init = 0.0>>}) {
  %packed = spmd.pack %g_a, %g_b, %g_c unit @unit0 ["a", "b", "c"] : (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>) -> tensor<1024xf32>
  %mine = spmd.slice %packed on @mesh ["data"] dim 0 pre 1 chunk 256 : tensor<1024xf32> -> tensor<256xf32>
  %partial = aten._foreach_norm.Scalar %mine {ord = 2 : i64, unit = @unit0} : (tensor<256xf32>) -> tensor<3xf32>
  %n = spmd.all_reduce [norm2] %partial on @mesh ["data"] : (tensor<3xf32>) -> (tensor<3xf32>)
  %norm = aten.linalg_vector_norm %n {dim = array<i64: 0>, ord = 2 : i64} : (tensor<3xf32>) -> tensor<f32>
  %factor = aten.reciprocal %norm : (tensor<f32>) -> tensor<f32>
  %g = aten._foreach_mul.Tensor %mine, %factor {unit = @unit0} : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %h = aten._foreach_div.List %g, %n {unit = @unit0} : (tensor<256xf32>, tensor<3xf32>) -> tensor<256xf32>
  %i = aten._foreach_mul.ScalarList %h {scalars = [1.5 : f64, 2 : i64, 0.5 : f64], unit = @unit0} : (tensor<256xf32>) -> tensor<256xf32>
  %s = aten._foreach_add.Scalar %step {scalar = 1 : i64, unit = @unit0} : (tensor<3xf32>) -> tensor<3xf32>
  %p1, %m1, %v1 = aten._fused_adamw %p, %i, %m, %v, %s, %lr0, %lr1
      {beta1 = array<f64: 0.9, 0.8>, beta2 = array<f64: 0.95, 0.99>, weight_decay = array<f64: 0.1, 0.0>, eps = array<f64: 1.0e-8, 1.0e-6>, amsgrad = false, maximize = false, groups = array<i64: 0, 0, 1>, unit = @unit0,
       operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2>, resultSegmentSizes = array<i32: 1, 1, 1, 0>}
      : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<3xf32>, tensor<f64>, tensor<f64>) -> (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>)
  return %norm, %p1, %m1, %v1, %s : tensor<f32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<3xf32>
}

//--- plain.mlir
func.func @step(
    %p: tensor<256xf32> {spmd.arg = #spmd.shard<@unit0, "param">},
    %m: tensor<256xf32> {spmd.arg = #spmd.shard<@unit0, "exp_avg", init = 0.0>},
    %v: tensor<256xf32> {spmd.arg = #spmd.shard<@unit0, "exp_avg_sq", init = 0.0>},
    %step: tensor<3xf32> {spmd.arg = #spmd.table<@unit0, "step", init = 0.0>},
    %lr0: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.01>},
    %lr1: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 1, value = 0.02>},
    %g_a: tensor<10x20xf32> {spmd.arg = #spmd.batch<"g_a", dim = none>},
    %g_b: tensor<300xf32> {spmd.arg = #spmd.batch<"g_b", dim = none>},
    %g_c: tensor<7xf32> {spmd.arg = #spmd.batch<"g_c", dim = none>})
    -> (tensor<f32> {spmd.result = #spmd.output<"norm">},
        tensor<256xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>},
        tensor<256xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "exp_avg", init = 0.0>>},
        tensor<256xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "exp_avg_sq", init = 0.0>>},
        tensor<3xf32> {spmd.result = #spmd.update<#spmd.table<@unit0, "step", init = 0.0>>}) {
  %packed = spmd.pack %g_a, %g_b, %g_c unit @unit0 ["a", "b", "c"] : (tensor<10x20xf32>, tensor<300xf32>, tensor<7xf32>) -> tensor<1024xf32>
  %mine = spmd.slice %packed on @mesh ["data"] dim 0 pre 1 chunk 256 : tensor<1024xf32> -> tensor<256xf32>
  %partial = spmd.segment_norm norm2 %mine unit @unit0 : tensor<256xf32> -> tensor<3xf32>
  %n = spmd.all_reduce [norm2] %partial on @mesh ["data"] : (tensor<3xf32>) -> (tensor<3xf32>)
  %norm = aten.linalg_vector_norm %n {dim = array<i64: 0>, ord = 2 : i64} : (tensor<3xf32>) -> tensor<f32>
  %factor = aten.reciprocal %norm : (tensor<f32>) -> tensor<f32>
  // What the list ops say, written out on the chunk; padding is 0 / 0 unless it is masked.
  %scale = aten.constant dense<[1.5, 2.0, 0.5]> : tensor<3xf32> : tensor<3xf32>
  %each = aten.div.Tensor %scale, %n : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %spread = spmd.segment_broadcast %each unit @unit0 : tensor<3xf32> -> tensor<256xf32>
  %g = aten.mul.Tensor %mine, %factor : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %i = aten.mul.Tensor %g, %spread : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %s = aten.add.Scalar %step {other = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  %p1, %m1, %v1 = aten._fused_adamw %p, %i, %m, %v, %s, %lr0, %lr1
      {beta1 = array<f64: 0.9, 0.8>, beta2 = array<f64: 0.95, 0.99>, weight_decay = array<f64: 0.1, 0.0>, eps = array<f64: 1.0e-8, 1.0e-6>, amsgrad = false, maximize = false, groups = array<i64: 0, 0, 1>, unit = @unit0,
       operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2>, resultSegmentSizes = array<i32: 1, 1, 1, 0>}
      : (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<3xf32>, tensor<f64>, tensor<f64>) -> (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>)
  return %norm, %p1, %m1, %v1, %s : tensor<f32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<3xf32>
}
