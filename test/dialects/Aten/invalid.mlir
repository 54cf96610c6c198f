// RUN: spmd-opt %s -split-input-file -verify-diagnostics
// The constraints of AtenVerify.h, by family and number.

// pointwise C1
func.func @f(%0: tensor<4x6xf32>, %1: tensor<4xf32>) {
  // expected-error @+1 {{has operands that do not broadcast}}
  %r = aten.add.Tensor %0, %1 : (tensor<4x6xf32>, tensor<4xf32>) -> tensor<4x6xf32>
  return
}

// -----

// pointwise C1
func.func @f(%0: tensor<4x6xf32>, %1: tensor<6xf32>) {
  // expected-error @+1 {{has result 'tensor<4x1xf32>', its operands broadcast to shape [4, 6]}}
  %r = aten.add.Tensor %0, %1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x1xf32>
  return
}

// -----

// pointwise C2
func.func @f(%0: tensor<4xf32>, %1: tensor<4xf64>) {
  // expected-error @+1 {{expected element type 'f64'}}
  %r = aten.add.Tensor %0, %1 : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

// pointwise C2, floating
func.func @f(%0: tensor<4xi64>) {
  // expected-error @+1 {{expected element type 'f32'}}
  %r = aten.exp %0 : (tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

// pointwise C2, boolean
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{expected element type 'i1'}}
  %r = aten.lt.Scalar %0 {other = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// pointwise C2, selected
func.func @f(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>) {
  // expected-error @+1 {{has condition 'tensor<4xf32>', expected element type i1}}
  %r = aten.where.self %0, %1, %2 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// view C1
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{which has another number of elements}}
  %r = aten.view %0 {size = array<i64: 5, 5>} : (tensor<4x6xf32>) -> tensor<5x5xf32>
  return
}

// -----

// view C2
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{expected shape [6, 4]}}
  %r = aten.view %0 {size = array<i64: 6, 4>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// unsqueeze C1
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{has dimension 3 of a tensor of rank 3}}
  %r = aten.unsqueeze %0 {dim = 3 : i64} : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
  return
}

// -----

// squeeze C2
func.func @f(%0: tensor<4x1x6xf32>) {
  // expected-error @+1 {{expected shape [4, 6]}}
  %r = aten.squeeze.dim %0 {dim = 1 : i64} : (tensor<4x1x6xf32>) -> tensor<4x1x6xf32>
  return
}

// -----

// cast C2
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{expected element type 'bf16'}}
  %r = aten._to_copy %0 {dtype = bf16} : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

// permute C1
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{has dims [0, 0], expected each dimension of a tensor of rank 2 once}}
  %r = aten.permute %0 {dims = array<i64: 0, 0>} : (tensor<4x6xf32>) -> tensor<4x4xf32>
  return
}

// -----

// permute C2
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{expected shape [6, 4]}}
  %r = aten.permute %0 {dims = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// expand C1
func.func @f(%0: tensor<4x2xf32>) {
  // expected-error @+1 {{cannot expand 'tensor<4x2xf32>' to 'tensor<4x6xf32>'}}
  %r = aten.expand %0 {size = array<i64: 4, 6>} : (tensor<4x2xf32>) -> tensor<4x6xf32>
  return
}

// -----

// slice C2
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{slices [1, 9) by 1 of a dimension of size 4}}
  %r = aten.slice.Tensor %0 {dim = 0 : i64, start = 1 : i64, end = 9 : i64} : (tensor<4x6xf32>) -> tensor<8x6xf32>
  return
}

// -----

// slice C3
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{expected shape [2, 6]}}
  %r = aten.slice.Tensor %0 {dim = 0 : i64, start = 1 : i64, end = 3 : i64} : (tensor<4x6xf32>) -> tensor<3x6xf32>
  return
}

// -----

// select C1
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{has index 4 of a dimension of size 4}}
  %r = aten.select.int %0 {dim = 0 : i64, index = 4 : i64} : (tensor<4x6xf32>) -> tensor<6xf32>
  return
}

// -----

// split C2
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{leaves 1 of the dimension}}
  %r:2 = aten.split_with_sizes %0 {dim = 0 : i64, split_sizes = array<i64: 1, 2>} : (tensor<4xf32>) -> (tensor<1xf32>, tensor<2xf32>)
  return
}

// -----

// cat C2
func.func @f(%0: tensor<2x6xf32>, %1: tensor<2x5xf32>) {
  // expected-error @+1 {{has 'tensor<2x5xf32>' for 'tensor<4x6xf32>'}}
  %r = aten.cat %0, %1 {dim = 0 : i64} : (tensor<2x6xf32>, tensor<2x5xf32>) -> tensor<4x6xf32>
  return
}

// -----

// stack C1
func.func @f(%0: tensor<6xf32>, %1: tensor<5xf32>) {
  // expected-error @+1 {{expected shape [6]}}
  %r = aten.stack %0, %1 {dim = 0 : i64} : (tensor<6xf32>, tensor<5xf32>) -> tensor<2x6xf32>
  return
}

// -----

// flip C1
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{names dimension 1 twice}}
  %r = aten.flip %0 {dims = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// gather_rows C1
func.func @f(%0: tensor<4x6xf32>, %1: tensor<3xf32>) {
  // expected-error @+1 {{has index 'tensor<3xf32>', expected i64 or i32}}
  %r = aten.gather_rows %0, %1 : (tensor<4x6xf32>, tensor<3xf32>) -> tensor<3x6xf32>
  return
}

// -----

// gather_rows C2
func.func @f(%0: tensor<4x6xf32>, %1: tensor<3x2xi64>) {
  // expected-error @+1 {{which differ in the first 1 dimensions}}
  %r = aten.gather_rows %0, %1 {batch_dims = 1 : i64} : (tensor<4x6xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return
}

// -----

// gather_rows C3
func.func @f(%0: tensor<4x6xf32>, %1: tensor<3xi64>) {
  // expected-error @+1 {{expected shape [3, 6]}}
  %r = aten.gather_rows %0, %1 : (tensor<4x6xf32>, tensor<3xi64>) -> tensor<3x5xf32>
  return
}

// -----

// scatter_rows C3
func.func @f(%0: tensor<3xi64>, %1: tensor<3x6xf32>) {
  // expected-error @+1 {{expected 5 rows}}
  %r = aten.scatter_rows %0, %1 {rows = 5 : i64, reduce = "sum"} : (tensor<3xi64>, tensor<3x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// scatter_rows C4
func.func @f(%0: tensor<3xi64>, %1: tensor<3x6xf32>) {
  // expected-error @+1 {{reduces with "amax" onto nothing}}
  %r = aten.scatter_rows %0, %1 {rows = 4 : i64, reduce = "amax"} : (tensor<3xi64>, tensor<3x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// check_index C1
func.func @f(%0: tensor<3xf32>) {
  // expected-error @+1 {{checks 'tensor<3xf32>', expected integers}}
  %r = aten.check_index %0 {low = 0 : i64, high = 4 : i64, use = "gather"} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// sort C2
func.func @f(%0: tensor<3xf32>) {
  // expected-error @+1 {{has values 'tensor<3xf32>' and indices 'tensor<3xi32>'}}
  %r, %i = aten.sort.stable %0 {dim = 0 : i64} : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi32>)
  return
}

// -----

// full C1
func.func @f() {
  // expected-error @+1 {{expected shape [4]}}
  %r = aten.full {size = array<i64: 4>, fill_value = 0.0} : () -> tensor<5xf32>
  return
}

// -----

// arange C2
func.func @f() {
  // expected-error @+1 {{expected shape [3]}}
  %r = aten.arange.start_step {start = 1 : i64, end = 7 : i64, step = 2 : i64} : () -> tensor<4xi64>
  return
}

// -----

// reduction C1
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{expected ascending dimensions of a tensor of rank 2}}
  %r = aten.sum.dim_IntList %0 {dim = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<f32>
  return
}

// -----

// reduction C2
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{expected shape [4, 1]}}
  %r = aten.amax %0 {dim = array<i64: 1>, keepdim = true} : (tensor<4x6xf32>) -> tensor<4xf32>
  return
}

// -----

// contraction C1
func.func @f(%0: tensor<4x8xf32>, %1: tensor<7x6xf32>) {
  // expected-error @+1 {{cannot multiply 'tensor<4x8xf32>' and 'tensor<7x6xf32>'}}
  %r = aten.mm %0, %1 : (tensor<4x8xf32>, tensor<7x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// contraction C2
func.func @f(%0: tensor<4xf32>, %1: tensor<4x8xf32>, %2: tensor<8x6xf32>) {
  // expected-error @+1 {{cannot add 'tensor<4xf32>' to 'tensor<4x6xf32>'}}
  %r = aten.addmm %0, %1, %2 : (tensor<4xf32>, tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// contraction C3
func.func @f(%0: tensor<4x8xf32>, %1: tensor<8x6xbf16>) {
  // expected-error @+1 {{has 'tensor<8x6xbf16>' and result 'tensor<4x6xf32>'}}
  %r = aten.mm %0, %1 : (tensor<4x8xf32>, tensor<8x6xbf16>) -> tensor<4x6xf32>
  return
}

// -----

// layer norm C1
func.func @f(%0: tensor<2x8xf32>) {
  // expected-error @+1 {{normalizes [7]}}
  %r:3 = aten.native_layer_norm %0 {eps = 1.0e-5, normalized_shape = array<i64: 7>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}

// -----

// layer norm C2
func.func @f(%0: tensor<2x8xf32>) {
  // expected-error @+1 {{expected shape [2, 1]}}
  %r:3 = aten.native_layer_norm %0 {eps = 1.0e-5, normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2x1xf32>)
  return
}

// -----

// embedding C2
func.func @f(%0: tensor<10x8xf32>, %1: tensor<3xi64>) {
  // expected-error @+1 {{expected shape [3, 8]}}
  %r = aten.embedding %0, %1 : (tensor<10x8xf32>, tensor<3xi64>) -> tensor<3x7xf32>
  return
}

// -----

// embedding C2
func.func @f(%0: tensor<3x8xf32>, %1: tensor<3xi64>) {
  // expected-error @+1 {{expected 11 rows}}
  %r = aten.embedding_dense_backward %0, %1 {num_weights = 11 : i64, padding_idx = -1 : i64} : (tensor<3x8xf32>, tensor<3xi64>) -> tensor<10x8xf32>
  return
}

// -----

// loss C1
func.func @f(%0: tensor<4x6xf32>, %1: tensor<4xi64>) {
  // expected-error @+1 {{has reduction 3, expected 0 (none), 1 (mean) or 2 (sum)}}
  %r:2 = aten.nll_loss_forward %0, %1 {ignore_index = -100 : i64, reduction = 3 : i64} : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// loss C2
func.func @f(%0: tensor<4x6xf32>, %1: tensor<5xi64>) {
  // expected-error @+1 {{expected i64 targets for rows of class scores}}
  %r:2 = aten.nll_loss_forward %0, %1 {ignore_index = -100 : i64, reduction = 1 : i64} : (tensor<4x6xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// loss C3
func.func @f(%0: tensor<4x6xf32>, %1: tensor<4xi64>) {
  // expected-error @+1 {{expected shape [4]}}
  %r:2 = aten.nll_loss_forward %0, %1 {ignore_index = -100 : i64, reduction = 0 : i64} : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

// attention C1
func.func @f(%0: tensor<2x4x5x8xf32>, %1: tensor<2x2x7x8xf32>, %2: tensor<2x2x7x6xf32>) {
  // expected-error @+1 {{has query}}
  %r:2 = aten.sdpa %0, %1, %2 {dropout_p = 0.0} : (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
  return
}

// -----

// attention C3
func.func @f(%0: tensor<2x4x5x8xf32>, %1: tensor<2x4x7x8xf32>, %2: tensor<2x4x7x6xf32>, %3: tensor<5x6xf32>) {
  // expected-error @+1 {{for scores of shape [2, 4, 5, 7]}}
  %r:2 = aten.sdpa %0, %1, %2, %3 {dropout_p = 0.0} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x6xf32>, tensor<5x6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
  return
}

// -----

// foreach C1
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has result 'tensor<6xf32>' at position 0, expected 'tensor<4xf32>'}}
  %r = aten._foreach_neg %0 : (tensor<4xf32>) -> tensor<6xf32>
  return
}

// -----

// foreach C2
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has 2 entries in 'scalars' and 1 positions}}
  %r = aten._foreach_mul.ScalarList %0 {scalars = [1, 2]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// foreach C3
func.func @f(%0: tensor<4xf32>, %1: tensor<6xf32>) {
  // expected-error @+1 {{has 'tensor<6xf32>' at position 0 of 'tensor<4xf32>'}}
  %r = aten._foreach_mul.List %0, %1 : (tensor<4xf32>, tensor<6xf32>) -> tensor<4xf32>
  return
}

// -----

// foreach_map C1
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{applies 'no_such_op', expected a pointwise aten op}}
  %r = aten._foreach_map %0 {op = "no_such_op", options = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// foreach_map C2
func.func @f(%0: tensor<4xf32>, %1: tensor<4xf32>) {
  // expected-error @+1 {{has 3 operands and 2 results}}
  %r:2 = aten._foreach_map %0, %1, %0 {op = "neg", options = {}} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// foreach_map C3
func.func @f(%0: tensor<4xf32>, %1: tensor<6xf32>) {
  // expected-error @+1 {{has 'tensor<6xf32>' at position 0 of 'tensor<4xf32>'}}
  %r = aten._foreach_map %0, %1 {op = "mul.Tensor", options = {}} : (tensor<4xf32>, tensor<6xf32>) -> tensor<4xf32>
  return
}

// -----

// fused C1
func.func @f(%0: tensor<4xf32>, %1: tensor<4xf32>) {
  // expected-error @+1 {{has 0 learning rates as operands, expected 1}}
  %r = aten._fused_sgd %0, %1 {dampening = array<f64: 0.0>, momentum = array<f64: 0.0>, weight_decay = array<f64: 0.0>, groups = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// foreach C4
func.func @f(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>) {
  // expected-error @+1 {{has lists of different lengths: 3 operands for 2 positions}}
  %r:2 = aten._foreach_mul.List %0, %1, %2 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// fused C2, the gradient of another parameter
func.func @f(%0: tensor<6xf32>, %1: tensor<12xf32>, %2: tensor<f64>) {
  // expected-error @+1 {{has 'tensor<12xf32>' at position 0 of list 1, the parameter is 'tensor<6xf32>'}}
  %r = aten._fused_sgd %0, %1, %2 {dampening = array<f64: 0.0>, momentum = array<f64: 0.0>, weight_decay = array<f64: 0.0>, groups = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>} : (tensor<6xf32>, tensor<12xf32>, tensor<f64>) -> tensor<6xf32>
  return
}

// -----

// fused C3
func.func @f(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<f64>) {
  // expected-error @+1 {{has group 1, there are 1}}
  %r = aten._fused_sgd %0, %1, %2 {dampening = array<f64: 0.0>, momentum = array<f64: 0.0>, weight_decay = array<f64: 0.0>, groups = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 1, 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  return
}

// -----

// philox C1
func.func @f(%0: tensor<1xi64>, %1: tensor<i64>, %2: tensor<4xi64>) {
  // expected-error @+1 {{has seed 'tensor<1xi64>' and step 'tensor<i64>', expected i64 scalars}}
  %r = aten.philox_uniform %0, %1, %2 {stream = 0 : i64} : (tensor<1xi64>, tensor<i64>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

// philox C2
func.func @f(%0: tensor<i64>, %1: tensor<i64>, %2: tensor<4xi64>) {
  // expected-error @+1 {{has index 'tensor<4xi64>' and result 'tensor<5xf32>'}}
  %r = aten.philox_uniform %0, %1, %2 {stream = 0 : i64} : (tensor<i64>, tensor<i64>, tensor<4xi64>) -> tensor<5xf32>
  return
}

// -----

// philox C3
func.func @f(%0: tensor<i64>, %1: tensor<i64>, %2: tensor<4xi64>) {
  // expected-error @+1 {{has word 4, expected 0 to 3}}
  %r = aten.philox_uniform %0, %1, %2 {stream = 0 : i64, word = 4 : i64} : (tensor<i64>, tensor<i64>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

// rms norm C1
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{normalizes [5] of 'tensor<4x6xf32>'}}
  %r:2 = aten.rms_norm %0 {eps = 1.0e-5 : f64, normalized_shape = array<i64: 5>} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>)
  return
}

// -----

// rms norm C2
func.func @f(%0: tensor<4x6xf32>) {
  // expected-error @+1 {{has 'tensor<4xf32>', expected shape [4, 1]}}
  %r:2 = aten.rms_norm %0 {eps = 1.0e-5 : f64, normalized_shape = array<i64: 6>} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>)
  return
}

// -----

// rms norm C3
func.func @f(%0: tensor<4x6xf32>, %1: tensor<4xf32>) {
  // expected-error @+1 {{has 'tensor<4xf32>', expected shape [6]}}
  %r:2 = aten.rms_norm %0, %1 {eps = 1.0e-5 : f64, normalized_shape = array<i64: 6>} : (tensor<4x6xf32>, tensor<4xf32>) -> (tensor<4x6xf32>, tensor<4x1xf32>)
  return
}

// -----

// convolution C1
func.func @f(%0: tensor<4x3x6x6xf32>, %1: tensor<5x3x3x3xf32>) {
  // expected-error @+1 {{for 2 spatial dimensions}}
  %r = aten.convolution %0, %1 {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1>} : (tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>) -> tensor<4x5x6x6xf32>
  return
}

// -----

// convolution C2
func.func @f(%0: tensor<4x4x6x6xf32>, %1: tensor<5x3x3x3xf32>) {
  // expected-error @+1 {{for 1 groups}}
  %r = aten.convolution %0, %1 {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<4x4x6x6xf32>, tensor<5x3x3x3xf32>) -> tensor<4x5x6x6xf32>
  return
}

// -----

// convolution C3
func.func @f(%0: tensor<4x3x6x6xf32>, %1: tensor<5x3x3x3xf32>) {
  // expected-error @+1 {{expected shape [4, 5, 6, 6]}}
  %r = aten.convolution %0, %1 {dilation = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>} : (tensor<4x3x6x6xf32>, tensor<5x3x3x3xf32>) -> tensor<4x5x4x4xf32>
  return
}

// -----

// max pool C1
func.func @f(%0: tensor<3x6x6xf32>) {
  // expected-error @+1 {{expected batch, channels and 2 spatial dimensions}}
  %r:2 = aten.max_pool2d_with_indices %0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>} : (tensor<3x6x6xf32>) -> (tensor<3x3x3xf32>, tensor<3x3x3xi64>)
  return
}

// -----

// max pool C2
func.func @f(%0: tensor<4x3x6x6xf32>) {
  // expected-error @+1 {{expected 3 windows along spatial dimension 0}}
  %r:2 = aten.max_pool2d_with_indices %0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 0, 0>, stride = array<i64: 2, 2>} : (tensor<4x3x6x6xf32>) -> (tensor<4x3x2x3xf32>, tensor<4x3x2x3xi64>)
  return
}

// -----

// max pool C2
func.func @f(%0: tensor<4x3x6x6xf32>) {
  // expected-error @+1 {{padding of at most half of 2}}
  %r:2 = aten.max_pool2d_with_indices %0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 2, 2>, padding = array<i64: 2, 2>, stride = array<i64: 2, 2>} : (tensor<4x3x6x6xf32>) -> (tensor<4x3x5x5xf32>, tensor<4x3x5x5xi64>)
  return
}

// -----

// im2col C1
func.func @f(%0: tensor<4x3x6x6xf32>) {
  // expected-error @+1 {{expected shape [4, 27, 9]}}
  %r = aten.im2col %0 {dilation = array<i64: 1, 1>, kernel_size = array<i64: 3, 3>, padding = array<i64: 1, 1>, stride = array<i64: 2, 2>} : (tensor<4x3x6x6xf32>) -> tensor<4x27x8xf32>
  return
}

// -----

// custom_call C1
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has the argument "x", expected a number}}
  %r = aten.custom_call %0 {arguments = ["x", unit], library = "l.so", hash = "0", op = "my::op", symbol = "f", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C2
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has 2 tensors among its arguments, and 1 inputs}}
  %r = aten.custom_call %0 {arguments = [unit, unit], library = "l.so", hash = "0", op = "my::op", symbol = "f", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C3
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has no result}}
  aten.custom_call %0 {arguments = [unit], library = "l.so", hash = "0", op = "my::op", symbol = "f", sharding = "a -> ", reduce = []} : (tensor<4xf32>) -> ()
  return
}

// -----

// custom_call C4
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has the dimension 'b', which no argument has}}
  %r = aten.custom_call %0 {arguments = [unit], library = "l.so", hash = "0", op = "my::op", symbol = "f", sharding = "a -> b", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C4
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{dimension 'a' is 3 in result 0, and 4 before}}
  %r = aten.custom_call %0 {arguments = [unit], library = "l.so", hash = "0", op = "my::op", symbol = "f", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// custom_call C4
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{lacks a dimension of the arguments, and reduce does not say}}
  %r = aten.custom_call %0 {arguments = [unit], library = "l.so", hash = "0", op = "my::op", symbol = "f", sharding = "a -> _", reduce = [""]} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// custom_call C4
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{'...' is 1 dimensions in result 0, and 0 before}}
  %r = aten.custom_call %0 {arguments = [unit], library = "l.so", hash = "0", op = "my::op", symbol = "f", sharding = "... a -> ...", reduce = ["sum"]} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// custom_call C5
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has not all of library, hash and symbol}}
  %r = aten.custom_call %0 {arguments = [unit], library = "l.so", hash = "0", op = "my::op", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C6
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has not all of names, launch and cubins}}
  %r = aten.custom_call %0 {arguments = [unit], names = ["x"], launch = "f<<<a, 32>>>(x, result)", op = "my::op", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C7
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has neither a function in a library nor a kernel in cubins}}
  %r = aten.custom_call %0 {arguments = [unit], op = "my::op", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C8
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has the launch "f<<<b, 32>>>(x)" of 'my::op': nothing is called 'b'}}
  %r = aten.custom_call %0 {arguments = [unit], names = ["x"], cubins = ["sm_90 0 k"], launch = "f<<<b, 32>>>(x)", op = "my::op", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C8
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{there are 2 names for 1 arguments}}
  %r = aten.custom_call %0 {arguments = [unit], names = ["x", "y"], cubins = ["sm_90 0 k"], launch = "f<<<a, 32>>>(x)", op = "my::op", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// custom_call C9
func.func @f(%0: tensor<4xf32>) {
  // expected-error @+1 {{has the cubin "sm_90", expected CHIP HASH FILE}}
  %r = aten.custom_call %0 {arguments = [unit], names = ["x"], launch = "f<<<a, 32>>>(x, result)", cubins = ["sm_90"], op = "my::op", sharding = "a -> a", reduce = [""]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// c10d_all_reduce C1
func.func @f(%0: tensor<8xf32>) {
  // expected-error @+1 {{has the kind "product", expected sum, avg, max or min}}
  %r = aten.c10d_all_reduce %0 {kind = "product", ranks = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// c10d_all_reduce C1
func.func @f(%0: tensor<8xi64>) {
  // expected-error @+1 {{has the kind "avg" of}}
  %r = aten.c10d_all_reduce %0 {kind = "avg", ranks = 2 : i64} : (tensor<8xi64>) -> tensor<8xi64>
  return
}

// -----

// c10d_all_gather C2
func.func @f(%0: tensor<8xf32>) {
  // expected-error @+1 {{is among 0 ranks}}
  %r = aten.c10d_all_gather %0 {ranks = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// c10d_all_gather C3
func.func @f(%0: tensor<8xf32>) {
  // expected-error @+1 {{on 2 ranks}}
  %r = aten.c10d_all_gather %0 {ranks = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// c10d_reduce_scatter C3
func.func @f(%0: tensor<8xf32>) {
  // expected-error @+1 {{cannot cut}}
  %r = aten.c10d_reduce_scatter %0 {kind = "sum", ranks = 3 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}
