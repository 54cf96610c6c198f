// RUN: spmd-opt %s -split-input-file -spmd-widen-step-counters | FileCheck %s

// What is computed of the counter and of numbers is f64, the counter stays f32; so do tensors with dims, and the
// moment of a parameter without dims, which only looks like a counter.

// CHECK-LABEL: module
// CHECK: func.func @step
// CHECK-SAME: %[[W:.*]]: tensor<4xf32> {{.*}}, %[[SCALE:.*]]: tensor<f32> {{.*}}, %[[STEP:.*]]: tensor<f32> {{.*}}, %[[AVG:.*]]: tensor<f32> {
module attributes {spmd.param_groups = [{capturable = false, parameters = ["w", "scale"]}]} {
  func.func @step(%w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                  %scale: tensor<f32> {spmd.arg = #spmd.param<"scale", trainable>},
                  %step: tensor<f32> {spmd.arg = #spmd.state<"step", of = "w", init = 0.0>},
                  %avg: tensor<f32> {spmd.arg = #spmd.state<"exp_avg", of = "scale", init = 0.0>})
      -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
          tensor<f32> {spmd.result = #spmd.update<#spmd.param<"scale", trainable>>},
          tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "w", init = 0.0>>},
          tensor<f32> {spmd.result = #spmd.update<#spmd.state<"exp_avg", of = "scale", init = 0.0>>}) {
    // CHECK: %[[NEXT:.*]] = aten.add.Scalar %[[STEP]] {{.*}} : (tensor<f32>) -> tensor<f32>
    // CHECK: %[[WIDE:.*]] = aten._to_copy %[[NEXT]] {dtype = f64} : (tensor<f32>) -> tensor<f64>
    // CHECK: %[[POW:.*]] = aten.pow.Scalar %[[WIDE]] {{.*}} -> tensor<f64>
    // CHECK: %[[ONE:[0-9]+]] = aten.scalar_tensor {{.*}} -> tensor<f32>
    // CHECK: %[[ONE64:[0-9]+]] = aten._to_copy %[[ONE]] {dtype = f64} : (tensor<f32>) -> tensor<f64>
    // CHECK: %[[BIAS:.*]] = aten.sub.Tensor %[[ONE64]], %[[POW]] : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %0 = aten.add.Scalar %step {other = 1 : i64} : (tensor<f32>) -> tensor<f32>
    %1 = aten.pow.Scalar %0 {self = 0.999 : f64} : (tensor<f32>) -> tensor<f32>
    %2 = aten.scalar_tensor {s = 1.0 : f64} : () -> tensor<f32>
    %3 = aten.sub.Tensor %2, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: aten.div.Tensor %[[W]], %[[BIAS]] : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
    %4 = aten.div.Tensor %w, %3 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // CHECK: %[[SUM:.*]] = aten.add.Tensor %[[AVG]], %[[SCALE]] {{.*}} -> tensor<f32>
    %5 = aten.add.Tensor %avg, %scale : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: %[[NARROW:.*]] = aten._to_copy %[[BIAS]] {dtype = f32} : (tensor<f64>) -> tensor<f32>
    // CHECK: aten.div.Tensor %[[SUM]], %[[NARROW]] : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %6 = aten.div.Tensor %5, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %4, %6, %0, %5 : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>
  }
}

// -----

// Lists in one op.

// CHECK-LABEL: module
// CHECK: %[[NEXT:.*]]:2 = aten._foreach_add.Scalar
// CHECK: %[[WIDE:.*]]:2 = aten._foreach_map %[[NEXT]]#0, %[[NEXT]]#1 {op = "_to_copy", options = {dtype = f64}}
// CHECK: %[[SQRT:.*]]:2 = aten._foreach_sqrt %[[WIDE]]#0, %[[WIDE]]#1 : (tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
// CHECK: aten._foreach_div.List %{{.*}}, %{{.*}}, %[[SQRT]]#0, %[[SQRT]]#1
module attributes {spmd.param_groups = [{capturable = false, parameters = ["v", "w"]}]} {
  func.func @step(%v: tensor<4xf32> {spmd.arg = #spmd.param<"v", trainable>},
                  %w: tensor<3xf32> {spmd.arg = #spmd.param<"w", trainable>},
                  %s: tensor<f32> {spmd.arg = #spmd.state<"step", of = "v", init = 0.0>},
                  %t: tensor<f32> {spmd.arg = #spmd.state<"step", of = "w", init = 0.0>})
      -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"v", trainable>>},
          tensor<3xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
          tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "v", init = 0.0>>},
          tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "w", init = 0.0>>}) {
    %0:2 = aten._foreach_add.Scalar %s, %t {scalar = 1 : i64} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %1:2 = aten._foreach_sqrt %0#0, %0#1 : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %2:2 = aten._foreach_div.List %v, %w, %1#0, %1#1
        : (tensor<4xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<3xf32>)
    return %2#0, %2#1, %0#0, %0#1 : tensor<4xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>
  }
}

// -----

// Who asked for `capturable` gets what tensors give.

// CHECK-LABEL: module
// CHECK-NOT: tensor<f64>
module attributes {spmd.param_groups = [{capturable = true, parameters = ["w"]}]} {
  func.func @step(%w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                  %step: tensor<f32> {spmd.arg = #spmd.state<"step", of = "w", init = 0.0>})
      -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>},
          tensor<f32> {spmd.result = #spmd.update<#spmd.state<"step", of = "w", init = 0.0>>}) {
    %0 = aten.add.Scalar %step {other = 1 : i64} : (tensor<f32>) -> tensor<f32>
    %1 = aten.pow.Scalar %0 {self = 0.999 : f64} : (tensor<f32>) -> tensor<f32>
    %2 = aten.div.Tensor %w, %1 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    return %2, %0 : tensor<4xf32>, tensor<f32>
  }
}
