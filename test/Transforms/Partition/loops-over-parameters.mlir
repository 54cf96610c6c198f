// What a loop does to each parameter alike is one op on the unit's chunk, not one for each with selects between them;
// partitioned for three ranks it is what it was, in float64.
// RUN: spmd-opt %s -o %t.base.mlir
// RUN: spmd-opt %s --spmd-partition --spmd-verify-partition -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: spmd-interpret %t.mlir --ranks=3 --compare=%t.base.mlir --steps=3 | FileCheck %s --check-prefix=SAME
// SAME: parameters 3 {{.*}}e-1{{[3-9]}}

// A chunk of the wrong op at one parameter makes other parameters.
// RUN: sed 's/dense<\[false, false, true\]>/dense<[false, true, false]>/' %t.mlir > %t.other.mlir
// RUN: not spmd-interpret %t.other.mlir --compare=%t.base.mlir --steps=3 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: the programs differ

spmd.mesh @mesh ["data" = 3]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 768, [
  #spmd.segment<"a", shape = [4, 30], group = 0, offset = 0, numel = 120, trainable = true>,
  #spmd.segment<"b", shape = [30], group = 0, offset = 128, numel = 30, trainable = true>,
  #spmd.segment<"c", shape = [4, 30], group = 0, offset = 256, numel = 120, trainable = true>]>
// CHECK: func.func @step(%[[P:[a-z0-9]+]]: tensor<256xf32
func.func @step(%a: tensor<4x30xf32> {spmd.arg = #spmd.param<"a", trainable>},
                %b: tensor<30xf32> {spmd.arg = #spmd.param<"b", trainable>},
                %c: tensor<4x30xf32> {spmd.arg = #spmd.param<"c", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %y: tensor<8x30xf32> {spmd.arg = #spmd.batch<"y", dim = 0>})
    -> (tensor<4x30xf32> {spmd.result = #spmd.update<#spmd.param<"a", trainable>>},
        tensor<30xf32> {spmd.result = #spmd.update<#spmd.param<"b", trainable>>},
        tensor<4x30xf32> {spmd.result = #spmd.update<#spmd.param<"c", trainable>>}) {
  %xt = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %ga = aten.mm %xt, %y : (tensor<4x8xf32>, tensor<8x30xf32>) -> tensor<4x30xf32>
  %gb = aten.sum.dim_IntList %y {dim = array<i64: 0>} : (tensor<8x30xf32>) -> tensor<30xf32>
  %sines = aten.sin %y : (tensor<8x30xf32>) -> tensor<8x30xf32>
  %gc = aten.mm %xt, %sines : (tensor<4x8xf32>, tensor<8x30xf32>) -> tensor<4x30xf32>
  // CHECK: %[[G:.*]] = spmd.reduce_scatter sum
  // The gradient of sum(p * p), whose number autograd repeats for every element.
  // CHECK: %[[ONE:.*]] = aten.full {{.*}}tensor<f32
  %one = aten.full {fill_value = 0.5 : f64, size = array<i64>} : () -> tensor<f32>
  %ea = aten.expand %one {size = array<i64: 4, 30>} : (tensor<f32>) -> tensor<4x30xf32>
  %eb = aten.expand %one {size = array<i64: 30>} : (tensor<f32>) -> tensor<30xf32>
  %ec = aten.expand %one {size = array<i64: 4, 30>} : (tensor<f32>) -> tensor<4x30xf32>
  // CHECK-NOT: spmd.pack
  // CHECK: %[[DECAY:.*]] = aten.mul.Tensor %[[ONE]], %[[P]]
  // CHECK-NOT: aten.mul.Tensor
  %da = aten.mul.Tensor %ea, %a : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  %db = aten.mul.Tensor %eb, %b : (tensor<30xf32>, tensor<30xf32>) -> tensor<30xf32>
  %dc = aten.mul.Tensor %ec, %c : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  // A number that the loop computes again for each, below, is one.
  // CHECK: %[[BOUND:.*]] = aten.sqrt
  // CHECK-NOT: aten.sqrt
  // CHECK: %[[SUM:.*]] = aten.add.Tensor %[[G]], %[[DECAY]]
  // CHECK-NOT: aten.add.Tensor
  %sa = aten.add.Tensor %ga, %da : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  %sb = aten.add.Tensor %gb, %db : (tensor<30xf32>, tensor<30xf32>) -> tensor<30xf32>
  %sc = aten.add.Tensor %gc, %dc : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  // CHECK: %[[SCALED:.*]] = aten.mul.Tensor %[[SUM]], %[[BOUND]]
  // CHECK-NOT: aten.mul.Tensor
  %ra = aten.sqrt %one : (tensor<f32>) -> tensor<f32>
  %ta = aten.mul.Tensor %sa, %ra : (tensor<4x30xf32>, tensor<f32>) -> tensor<4x30xf32>
  %rb = aten.sqrt %one : (tensor<f32>) -> tensor<f32>
  %tb = aten.mul.Tensor %sb, %rb : (tensor<30xf32>, tensor<f32>) -> tensor<30xf32>
  %rc = aten.sqrt %one : (tensor<f32>) -> tensor<f32>
  %tc = aten.mul.Tensor %sc, %rc : (tensor<4x30xf32>, tensor<f32>) -> tensor<4x30xf32>
  // c moves twice as far: two ops, one of which c takes.
  // CHECK-DAG: %[[FIRST:.*]] = aten.sub.Tensor %[[P]], %[[SCALED]] {alpha = 1.000000e-01
  // CHECK-DAG: %[[SECOND:.*]] = aten.sub.Tensor %[[P]], %[[SCALED]] {alpha = 2.000000e-01
  // CHECK: aten.constant dense<[false, false, true]>
  // CHECK: %[[NEW:.*]] = aten.where.self %{{.*}}, %[[SECOND]], %[[FIRST]]
  // CHECK-NOT: aten.where.self
  // CHECK: return %[[NEW]]
  %a1 = aten.sub.Tensor %a, %ta {alpha = 0.1} : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  %b1 = aten.sub.Tensor %b, %tb {alpha = 0.1} : (tensor<30xf32>, tensor<30xf32>) -> tensor<30xf32>
  %c1 = aten.sub.Tensor %c, %tc {alpha = 0.2} : (tensor<4x30xf32>, tensor<4x30xf32>) -> tensor<4x30xf32>
  return %a1, %b1, %c1 : tensor<4x30xf32>, tensor<30xf32>, tensor<4x30xf32>
}
