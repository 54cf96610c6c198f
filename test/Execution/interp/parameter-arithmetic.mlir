// Masks of parameters' elements, a second gradient, norms that keep their dimensions and another parameter's value, on
// chunks: partitioned for three ranks it is what it was, in float64.
// RUN: spmd-opt %s -o %t.base.mlir
// RUN: spmd-opt %s --spmd-partition --spmd-verify-partition -o %t.mlir
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%t.base.mlir --steps=3 | FileCheck %s
// RUN: spmd-opt %t.mlir --spmd-dedup-collectives --spmd-decompose-optimizer -o %t.plain.mlir
// RUN: spmd-interpret %t.plain.mlir --ranks=3 --compare=%t.base.mlir --steps=3 | FileCheck %s
// CHECK: parameters 2 {{.*}}e-1{{[3-9]}}

// A part of the mask that belongs to other elements makes other parameters.
// RUN: sed 's/spmd.pack \(.*\) unit @unit0 \["w"\] \(.*xi1\)/spmd.pack \1 unit @unit0 ["v"] \2/' %t.mlir > %t.moved.mlir
// RUN: not spmd-interpret %t.moved.mlir --compare=%t.base.mlir --steps=3 2>&1 | FileCheck %s --check-prefix=MOVED
// MOVED: the programs differ

spmd.mesh @mesh ["data" = 3]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 384, [
  #spmd.segment<"v", shape = [4, 30], group = 0, offset = 0, numel = 120, trainable = true>,
  #spmd.segment<"w", shape = [4, 30], group = 0, offset = 128, numel = 120, trainable = true>]>
func.func @step(%v: tensor<4x30xf32> {spmd.arg = #spmd.param<"v", trainable>},
                %w: tensor<4x30xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %y: tensor<8x30xf32> {spmd.arg = #spmd.batch<"y", dim = 0>})
    -> (tensor<4x30xf32> {spmd.result = #spmd.update<#spmd.param<"v", trainable>>},
        tensor<4x30xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %xt = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 0} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %a = aten.mm %xt, %y {spmd.segment = 0} : (tensor<4x8xf32>, tensor<8x30xf32>) -> tensor<4x30xf32>
  %sines = aten.sin %y {spmd.segment = 0} : (tensor<8x30xf32>) -> tensor<8x30xf32>
  %b = aten.mm %xt, %sines {spmd.segment = 0} : (tensor<4x8xf32>, tensor<8x30xf32>) -> tensor<4x30xf32>
  // Of two gradients of w, the larger entries, where column > 3 * row.
  %g = aten.maximum %a, %b {spmd.segment = 1} : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  %rows = aten.arange.start_step {start = 0 : i64, end = 12 : i64, step = 3 : i64, spmd.segment = 1} : () -> tensor<4xi64>
  %rows1 = aten.view %rows {size = array<i64: 4, 1>, spmd.segment = 1} : (tensor<4xi64>) -> tensor<4x1xi64>
  %columns = aten.arange.start_step {start = 0 : i64, end = 30 : i64, step = 1 : i64, spmd.segment = 1} : () -> tensor<30xi64>
  %mask = aten.gt.Tensor %columns, %rows1 {spmd.segment = 1} : (tensor<30xi64>, tensor<4x1xi64>) -> tensor<4x30xi1>
  %zero = aten.full {fill_value = 0.0 : f64, size = array<i64>, spmd.segment = 1} : () -> tensor<f32>
  %masked = aten.where.self %mask, %g, %zero {spmd.segment = 1} : (tensor<4x30xi1>, tensor<4x30xf32>, tensor<f32>) -> tensor<4x30xf32>
  // The gradient of v as a unit vector.
  %n = aten.linalg_vector_norm %a {dim = array<i64: 0, 1>, keepdim = true, spmd.segment = 1} : (tensor<4x30xf32>) -> tensor<1x1xf32>
  %unit = aten.div.Tensor %a, %n {spmd.segment = 1} : (tensor<4x30xf32>, tensor<1x1xf32>) -> tensor<4x30xf32>
  %p:2 = aten._foreach_add.List %v, %w, %unit, %masked {alpha = -0.1, spmd.segment = 1}
      : (tensor<4x30xf32>, tensor<4x30xf32>, tensor<4x30xf32>, tensor<4x30xf32>) -> (tensor<4x30xf32>, tensor<4x30xf32>)
  // w follows v.
  %w1 = aten.lerp.Scalar %p#1, %p#0 {weight = 0.1, spmd.segment = 1} : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  return %p#0, %w1 : tensor<4x30xf32>, tensor<4x30xf32>
}
