// RUN: spmd-opt %s --spmd-sum-norms=enable=true | FileCheck %s
// RUN: spmd-opt %s --spmd-sum-norms | FileCheck %s --check-prefix=KEPT

// A whole step of a GPT whose gradients are clipped by their norm, before and after, on 2 and 4 ranks.
// DEFINE: %{ranks} = 2
// DEFINE: %{run} = spmd-translate --import-step %inputs/gpt-tiny.step -o %t.step.mlir && spmd-opt %t.step.mlir --spmd-pipeline="to=collectives ranks=%{ranks} policy=class:Block" --spmd-strip-sharding -o %t.mlir && spmd-opt %t.mlir --spmd-sum-norms=enable=true -o %t.sums.mlir && not grep -q norm2] %t.sums.mlir && spmd-interpret %t.sums.mlir --compare=%t.mlir --weights=%inputs/gpt-tiny.step --steps=2
// RUN: %{run}
// REDEFINE: %{ranks} = 4
// RUN: %{run}

spmd.mesh @mesh ["data" = 2]

// CHECK-LABEL: @mixed
// CHECK: %[[SQUARE:.*]] = aten.mul.Tensor %arg0, %arg0 {spmd.segment = 1 : i64}
// CHECK: %[[H:.*]] = spmd.all_reduce_start [sum, max] %[[SQUARE]], %arg1 on @mesh ["data"] stream scalar {spmd.segment = 1 : i64}
// CHECK: %[[R:.*]]:2 = spmd.wait %[[H]]
// CHECK: %[[ROOT:.*]] = aten.sqrt %[[R]]#0 {spmd.segment = 1 : i64}
// CHECK: return %[[ROOT]], %[[R]]#1
// KEPT-LABEL: @mixed
// KEPT: spmd.all_reduce_start [norm2, max] %arg0, %arg1
// KEPT-NOT: aten
func.func @mixed(%norm: tensor<f32>, %most: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %h = spmd.all_reduce_start [norm2, max] %norm, %most on @mesh ["data"] stream scalar {spmd.segment = 1 : i64}
      : (tensor<f32>, tensor<f32>) -> !spmd.handle<tensor<f32>, tensor<f32>>
  %0:2 = spmd.wait %h {spmd.segment = 1 : i64}
      : !spmd.handle<tensor<f32>, tensor<f32>> -> tensor<f32>, tensor<f32>
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}

// Of 16 bits the squares are summed in f32.
// CHECK-LABEL: @half
// CHECK: %[[WIDE:.*]] = aten._to_copy %arg0 {{.*}} -> tensor<4xf32>
// CHECK: %[[SQUARE:.*]] = aten.mul.Tensor %[[WIDE]], %[[WIDE]]
// CHECK: spmd.all_reduce_start [sum] %[[SQUARE]] {{.*}} !spmd.handle<tensor<4xf32>>
// CHECK: %[[ROOT:.*]] = aten.sqrt {{.*}} -> tensor<4xf32>
// CHECK: %[[NARROW:.*]] = aten._to_copy %[[ROOT]] {{.*}} -> tensor<4xbf16>
// CHECK: return %[[NARROW]]
func.func @half(%norm: tensor<4xbf16>) -> tensor<4xbf16> {
  %h = spmd.all_reduce_start [norm2] %norm on @mesh ["data"] stream scalar
      : (tensor<4xbf16>) -> !spmd.handle<tensor<4xbf16>>
  %0 = spmd.wait %h : !spmd.handle<tensor<4xbf16>> -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// A message has one type: what goes with the norm is widened, too.
// CHECK-LABEL: @half_mixed
// CHECK: %[[WIDE:.*]] = aten._to_copy %arg0 {{.*}} -> tensor<f32>
// CHECK: %[[SQUARE:.*]] = aten.mul.Tensor %[[WIDE]], %[[WIDE]]
// CHECK: %[[OTHER:.*]] = aten._to_copy %arg1 {{.*}} -> tensor<f32>
// CHECK: spmd.all_reduce_start [sum, sum] %[[SQUARE]], %[[OTHER]] {{.*}} !spmd.handle<tensor<f32>, tensor<f32>>
// CHECK: %[[R:.*]]:2 = spmd.wait
// CHECK: aten._to_copy %[[R]]#1 {{.*}} -> tensor<bf16>
func.func @half_mixed(%norm: tensor<bf16>, %sum: tensor<bf16>) -> (tensor<bf16>, tensor<bf16>) {
  %h = spmd.all_reduce_start [norm2, sum] %norm, %sum on @mesh ["data"] stream scalar
      : (tensor<bf16>, tensor<bf16>) -> !spmd.handle<tensor<bf16>, tensor<bf16>>
  %0:2 = spmd.wait %h : !spmd.handle<tensor<bf16>, tensor<bf16>> -> tensor<bf16>, tensor<bf16>
  return %0#0, %0#1 : tensor<bf16>, tensor<bf16>
}
