// Arithmetic on parameters and gradients between backward and optimizer, and after it: whatever an op on chunks reads
// is brought to its place, and each gradient is reduced once.
// RUN: spmd-opt %s --spmd-partition --spmd-verify-partition -split-input-file | FileCheck %s

// A mask made from positions is computed whole, packed in its own dtype, and cut; the gradient is reduced as ever.
// CHECK-LABEL: module @mask
module @mask {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>
// CHECK: func.func @step(%[[W:[a-z0-9]+]]: tensor<128xf32
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %xt = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %g = aten.mm %xt, %x : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %i = aten.arange.start_step {start = 0 : i64, end = 4 : i64, step = 1 : i64} : () -> tensor<4xi64>
  %rows = aten.view %i {size = array<i64: 4, 1>} : (tensor<4xi64>) -> tensor<4x1xi64>
  %all = aten.expand %rows {size = array<i64: 4, 4>} : (tensor<4x1xi64>) -> tensor<4x4xi64>
  // CHECK: %[[M:.*]] = aten.ge.Tensor {{.*}} -> tensor<4x4xi1, {{.*}}[replicated]>>
  // CHECK: %[[F:.*]] = spmd.pack %[[M]] unit @unit0 ["w"] {{.*}} -> tensor<256xi1
  // CHECK: %[[MINE:.*]] = spmd.slice %[[F]] on @mesh ["data"] dim 0 pre 1 chunk 128
  // CHECK: aten.where.self %[[MINE]], %{{.*}}, %{{.*}} -> tensor<128xf32
  %mask = aten.ge.Tensor %all, %i : (tensor<4x4xi64>, tensor<4xi64>) -> tensor<4x4xi1>
  %zero = aten.full {fill_value = 0.0 : f64, size = array<i64>} : () -> tensor<f32>
  %masked = aten.where.self %mask, %g, %zero : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %w1 = aten._foreach_add.List %w, %masked {alpha = -0.1} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %w1 : tensor<4x4xf32>
}
}

// -----

// Two gradients of one parameter that are kept apart: the unit's reduction takes the first, the other is reduced alone.
// CHECK-LABEL: module @two_gradients
module @two_gradients {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %xt = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: %[[A:.*]] = aten.mm
  // CHECK: spmd.pack %[[A]]
  // CHECK: spmd.reduce_scatter
  // CHECK: %[[E:.*]] = aten.exp
  // CHECK: %[[B:.*]] = aten.mm %{{.*}}, %[[E]]
  // CHECK: %[[R:.*]] = spmd.all_reduce [sum] %[[B]]
  // CHECK: %[[P:.*]] = spmd.pack %[[R]]
  // CHECK: spmd.slice %[[P]]
  // CHECK-NOT: spmd.reduce_scatter
  // CHECK-NOT: spmd.all_reduce
  // CHECK: aten.maximum {{.*}} -> tensor<128xf32
  %a = aten.mm %xt, %x : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %e = aten.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %b = aten.mm %xt, %e : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %g = aten.maximum %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w1 = aten._foreach_add.List %w, %g {alpha = -0.1} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %w1 : tensor<4x4xf32>
}
}

// -----

// One gradient of two parameters: it stands in the unit's reduction twice.
// CHECK-LABEL: module @one_gradient_of_two
module @one_gradient_of_two {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"v", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>,
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 128, numel = 16, trainable = true>]>
// CHECK: func.func @step(%[[W:[a-z0-9]+]]: tensor<128xf32
func.func @step(%v: tensor<4x4xf32> {spmd.arg = #spmd.param<"v", trainable>},
                %w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"v", trainable>>},
        tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %xt = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: %[[G:.*]] = aten.mm
  // CHECK-NEXT: %[[P:.*]] = spmd.pack %[[G]], %[[G]] unit @unit0 ["v", "w"]
  // CHECK-NEXT: %[[RS:.*]] = spmd.reduce_scatter sum %[[P]]
  // CHECK-NEXT: %[[W1:.*]] = aten._foreach_add.List %[[W]], %[[RS]]
  // CHECK-NEXT: return %[[W1]]
  %g = aten.mm %xt, %x : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %n:2 = aten._foreach_add.List %v, %w, %g, %g {alpha = -0.1}
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %n#0, %n#1 : tensor<4x4xf32>, tensor<4x4xf32>
}
}

// -----

// An update of one parameter takes the value of another, of which a rank has other elements: it is gathered, and each
// rank takes its part.
// CHECK-LABEL: module @another_parameter
module @another_parameter {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"v", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>,
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 128, numel = 16, trainable = true>]>
// CHECK: func.func @step(%[[W:[a-z0-9]+]]: tensor<128xf32
func.func @step(%v: tensor<4x4xf32> {spmd.arg = #spmd.param<"v", trainable>},
                %w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  // CHECK: %[[FLAT:.*]] = spmd.all_gather %[[W]]
  // CHECK: %[[V:.*]] = spmd.unpack %[[FLAT]] unit @unit0 ["v"]
  // CHECK: %[[P:.*]] = spmd.pack %[[V]] unit @unit0 ["w"]
  // CHECK: %[[MINE:.*]] = spmd.slice %[[P]]
  // CHECK: aten.lerp.Scalar %[[W]], %[[MINE]]
  %w1 = aten.lerp.Scalar %w, %v {weight = 0.1} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %w1 : tensor<4x4xf32>
}
}

// -----

// The norm of a whole gradient that keeps its dimensions is one number, not a row of a chunk.
// CHECK-LABEL: module @keepdim
module @keepdim {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %xt = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %g = aten.mm %xt, %x : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[T:.*]] = spmd.segment_norm norm2 %{{.*}} unit @unit0
  // CHECK: %[[E:.*]] = aten.select.int %[[T]] {{.*}} -> tensor<f32, {{.*}}[partial<norm2>]>>
  // CHECK: %[[V:.*]] = aten.view %[[E]] {size = array<i64: 1, 1>}
  // CHECK: %[[N:.*]] = spmd.all_reduce [norm2] %[[V]]
  // CHECK: %[[ONE:.*]] = aten.view %[[N]] {size = array<i64: 1>}
  // CHECK: aten.div.Tensor %{{.*}}, %[[ONE]] {{.*}} -> tensor<128xf32
  %n = aten.linalg_vector_norm %g {dim = array<i64: 0, 1>, keepdim = true} : (tensor<4x4xf32>) -> tensor<1x1xf32>
  %s = aten.div.Tensor %g, %n : (tensor<4x4xf32>, tensor<1x1xf32>) -> tensor<4x4xf32>
  %w1 = aten._foreach_add.List %w, %s {alpha = -0.1} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %w1 : tensor<4x4xf32>
}
}

// -----

// Norms in a list of operands are reduced before it; one of an order that does not combine over ranks is taken of the
// whole gradient.
// CHECK-LABEL: module @norms_in_lists
module @norms_in_lists {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"v", shape = [4], group = 0, offset = 0, numel = 4, trainable = true>,
  #spmd.segment<"w", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>
func.func @step(%v: tensor<4xf32> {spmd.arg = #spmd.param<"v", trainable>},
                %w: tensor<4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"v", trainable>>},
        tensor<4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %g = aten.sum.dim_IntList %x {dim = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
  %e = aten.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %h = aten.sum.dim_IntList %e {dim = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
  // CHECK: spmd.reduce_scatter sum
  // CHECK: %[[T:.*]] = spmd.segment_norm norm2
  // CHECK: %[[N:.*]] = spmd.all_reduce [norm2] %[[T]] {{.*}} -> tensor<2xf32, {{.*}}[replicated]>>
  // CHECK: aten._foreach_div.List %{{.*}}, %[[N]] {unit = @unit0}
  %n:2 = aten._foreach_norm.Scalar %g, %h {ord = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  %s:2 = aten._foreach_div.List %g, %h, %n#0, %n#1
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: %[[O:.*]]:2 = aten._foreach_norm.Scalar %{{.*}}, %{{.*}} {ord = 1.000000e+00 : f64} : {{.*}}[replicated]>>)
  // CHECK: aten.stack %[[O]]#0, %[[O]]#1
  // CHECK: aten._foreach_mul.List {{.*}}unit = @unit0
  %o:2 = aten._foreach_norm.Scalar %s#0, %s#1 {ord = 1.0 : f64} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  %t:2 = aten._foreach_mul.List %s#0, %s#1, %o#0, %o#1
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %p:2 = aten._foreach_add.List %v, %w, %t#0, %t#1 {alpha = -0.1}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p#0, %p#1 : tensor<4xf32>, tensor<4xf32>
}
}

// -----

// A list with rows and parameters of other units in it: positions that no chunk has a form for stay whole. What is
// read whole of a reduced gradient is gathered from its chunk, not reduced again.
// CHECK-LABEL: module @read_whole
module @read_whole {
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 4], group = 0, offset = 0, numel = 16, trainable = true>]>
func.func @step(%w: tensor<4x4xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>})
    -> (tensor<4x4xf32> {spmd.result = #spmd.output<"g">},
        tensor<4x4xf32> {spmd.result = #spmd.update<#spmd.param<"w", trainable>>}) {
  %xt = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  // CHECK: aten.mm
  // CHECK: %[[RS:.*]] = spmd.reduce_scatter sum
  // CHECK: spmd.all_gather %[[RS]]
  // CHECK-NOT: spmd.all_reduce
  %g = aten.mm %xt, %x : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %w1 = aten._foreach_add.List %w, %g {alpha = -0.1} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %g, %w1 : tensor<4x4xf32>, tensor<4x4xf32>
}
}
