// RUN: spmd-opt %s -split-input-file -verify-diagnostics

func.func @c2(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{map of operand 0 gives indices 1 to 4, outside of 'tensor<4xf32>'}}
  %0 = kernel.cluster dims [4] parallel 1 ins(%a = %x at (d0) -> (d0 + 1) : tensor<4xf32>)
      outs(at (d0) -> (d0) : tensor<4xf32>) {
    kernel.yield %a : f32
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @c3(%x: tensor<4xf32>) -> tensor<4xf64> {
  // expected-error @below {{yields 'f32' as value 0 but result 0 is 'tensor<4xf64>'}}
  %0 = kernel.cluster dims [4] parallel 1 ins(%a = %x at (d0) -> (d0) : tensor<4xf32>)
      outs(at (d0) -> (d0) : tensor<4xf64>) {
    kernel.yield %a : f32
  }
  return %0 : tensor<4xf64>
}

// -----

func.func @c5(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = kernel.cluster dims [4] parallel 1 ins(%a = %x at (d0) -> (d0) : tensor<4xf32>)
      outs(at (d0) -> (0) : tensor<f32>) {
    // expected-error @below {{is over dim 0; sequential dims are 1 to 0}}
    %s = kernel.reduce <add> %a over [0] : f32
    kernel.yield %s : f32
  }
  return %0 : tensor<f32>
}

// -----

func.func @c6(%x: tensor<2x4xf32>) -> tensor<2xf32> {
  // expected-error @below {{result 0 varies along dim 1, which its map lacks}}
  %0 = kernel.cluster dims [2, 4] parallel 1 ins(%a = %x at (d0, d1) -> (d0 * 4 + d1) : tensor<2x4xf32>)
      outs(at (d0, d1) -> (d0) : tensor<2xf32>) {
    kernel.yield %a : f32
  }
  return %0 : tensor<2xf32>
}

// -----

func.func @c7(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  // expected-error @below {{result 0 has a map without parallel dim 0}}
  %0 = kernel.cluster dims [2, 4] parallel 1 ins(%a = %x at (d0, d1) -> (d1) : tensor<2x4xf32>)
      outs(at (d0, d1) -> (d1) : tensor<4xf32>) {
    kernel.yield %a : f32
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @c7_count(%x: tensor<2x4xf32>) -> tensor<16xf32> {
  // expected-error @below {{result 0 has 16 elements but the dims of its map count 8}}
  %0 = kernel.cluster dims [2, 4] parallel 1 ins(%a = %x at (d0, d1) -> (d1) : tensor<2x4xf32>)
      outs(at (d0, d1) -> (d0 * 4 + d1) : tensor<16xf32>) {
    kernel.yield %a : f32
  }
  return %0 : tensor<16xf32>
}

// -----

func.func @segments(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{segment 1 is 4 to 8, not ordered after the one that ends at 5}}
  %0 = kernel.segmented chunk 8 position () -> (0) segments [0, 4] to [5, 8]
      elements(%a = %x : tensor<8xf32>) outs(tensor<8xf32>) {
    kernel.yield %a : f32
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @segment_table(%x: tensor<8xf32>) -> tensor<2xf32> {
  // expected-error @below {{result 0 is a table but varies inside a segment}}
  %0 = kernel.segmented chunk 8 position () -> (0) segments [0, 4] to [4, 8]
      elements(%a = %x : tensor<8xf32>) outs(tensor<2xf32>) {
    %s = kernel.reduce <add> %a over [0] : f32
    %r = arith.addf %s, %a : f32
    kernel.yield %r : f32
  }
  return %0 : tensor<2xf32>
}

// -----

func.func @gemm(%a: tensor<4x16xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{leading dimension of b is 4, less than a row of 16}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 4 trans : tensor<4x16xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_view(%a: tensor<4x16xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{view of b ends at element 67, outside of 'tensor<4x16xf32>'}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 offset 4 trans : tensor<4x16xf32>)
      -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_bias(%a: tensor<4x16xf32>, %b: tensor<5xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{bias 'tensor<5xf32>' must have 4 elements}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      bias(%b : tensor<5xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_residual(%a: tensor<4x16xf32>, %c: tensor<4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{residual 'tensor<4xf32>' must have 16 elements}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      residual(%c : tensor<4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_pre_activation(%a: tensor<4x16xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has a result pre_activation, but no activation}}
  %0, %1 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      -> tensor<4x4xf32>, pre_activation tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_bias_gradient_of_nothing(%a: tensor<4x16xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has one of bias_gradient and bias_gradient_of without the other}}
  %0, %1 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      -> tensor<4x4xf32>, bias_gradient tensor<4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_bias_gradient_and_activation(%a: tensor<4x16xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has a bias_gradient, which is for a batch of 1, of a and b without bias and activation, of c with gelu_tanh_backward}}
  %0, %1 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      activation relu bias_gradient_of a -> tensor<4x4xf32>, bias_gradient tensor<4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_bias_gradient_of_other(%a: tensor<6x16xf32>, %b: tensor<4x16xf32>) -> tensor<6x4xf32> {
  // expected-error @below {{bias_gradient 'tensor<4xf32>' must have 6 elements}}
  %0, %1 = kernel.gemm m 6 n 4 k 16 a(%a ld 16 : tensor<6x16xf32>) b(%b ld 16 trans : tensor<4x16xf32>)
      bias_gradient_of a -> tensor<6x4xf32>, bias_gradient tensor<4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

func.func @gemm_bias_gradient_of_result(%a: tensor<4x16xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has a bias_gradient, which is for a batch of 1, of a and b without bias and activation, of c with gelu_tanh_backward}}
  %0, %1 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      bias_gradient_of c -> tensor<4x4xf32>, bias_gradient tensor<4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_bias_gradient_of_operand(%a: tensor<4x16xf32>, %h: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has a bias_gradient, which is for a batch of 1, of a and b without bias and activation, of c with gelu_tanh_backward}}
  %0, %1 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      activation gelu_tanh_backward pre_activation(%h : tensor<4x4xf32>) bias_gradient_of a
      -> tensor<4x4xf32>, bias_gradient tensor<4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_gelu_backward_of_nothing(%a: tensor<4x16xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has one of gelu_tanh_backward and an operand pre_activation without the other}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      activation gelu_tanh_backward -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_gelu_at_something(%a: tensor<4x16xf32>, %h: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has one of gelu_tanh_backward and an operand pre_activation without the other}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      activation gelu_tanh pre_activation(%h : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_gelu_backward_elements(%a: tensor<4x16xf32>, %h: tensor<4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{pre_activation 'tensor<4xf32>' must have 16 elements}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      activation gelu_tanh_backward pre_activation(%h : tensor<4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_gelu_backward_of_sum(%a: tensor<4x16xf32>, %h: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{has gelu_tanh_backward, which is without bias, residual and a result pre_activation}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      residual(%h : tensor<4x4xf32>) activation gelu_tanh_backward pre_activation(%h : tensor<4x4xf32>)
      -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @gemm_types(%a: tensor<4x16xf32>, %b: tensor<4xbf16>) -> tensor<4x4xf32> {
  // expected-error @below {{has operands of other types than its result: 'tensor<4xbf16>' and 'tensor<4x4xf32>'}}
  %0 = kernel.gemm m 4 n 4 k 16 a(%a ld 16 : tensor<4x16xf32>) b(%a ld 16 trans : tensor<4x16xf32>)
      bias(%b : tensor<4xbf16>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @ids(%t: tensor<4x16xf32>, %i: tensor<3xf32>) -> tensor<3x16xf32> {
  // expected-error @below {{ids must be i32 or i64, got 'tensor<3xf32>'}}
  %0 = kernel.gather_rows %t, %i : (tensor<4x16xf32>, tensor<3xf32>) -> tensor<3x16xf32>
  return %0 : tensor<3x16xf32>
}

// -----

func.func @tables(%t: tensor<4x16xf32>, %i: tensor<3xi64>) -> tensor<3x16xf32> {
  // expected-error @below {{table 'tensor<4x16xf32>' is not 2 times 3 rows}}
  %0 = kernel.gather_rows %t, %i batch 2 rows 3 : (tensor<4x16xf32>, tensor<3xi64>) -> tensor<3x16xf32>
  return %0 : tensor<3x16xf32>
}

// -----

func.func @grouped_view(%x: tensor<8x4xf32>, %w: tensor<3x6x4xf32>, %g: tensor<8xi64>) -> tensor<8x6xf32> {
  // expected-error @below {{view of b ends at element 73, outside of 'tensor<3x6x4xf32>'}}
  %0 = kernel.grouped_gemm m 8 n 6 k 4 groups 3(%g : tensor<8xi64>) a(%x : tensor<8x4xf32>)
      b(%w ld 4 stride 25 trans : tensor<3x6x4xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

func.func @grouped_groups(%x: tensor<8x4xf32>, %w: tensor<3x6x4xf32>, %g: tensor<8xi16>) -> tensor<8x6xf32> {
  // expected-error @below {{groups must be i32 or i64, got 'tensor<8xi16>'}}
  %0 = kernel.grouped_gemm m 8 n 6 k 4 groups 3(%g : tensor<8xi16>) a(%x : tensor<8x4xf32>)
      b(%w ld 4 stride 24 trans : tensor<3x6x4xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

func.func @grouped_rows(%x: tensor<8x4xf32>, %y: tensor<8x6xf32>, %g: tensor<7xi64>) -> tensor<3x4x6xf32> {
  // expected-error @below {{groups 'tensor<7xi64>' must have 8 elements}}
  %0 = kernel.grouped_outer rows 8 m 4 n 6 groups 3(%g : tensor<7xi64>) a(%x : tensor<8x4xf32>)
      b(%y : tensor<8x6xf32>) -> tensor<3x4x6xf32>
  return %0 : tensor<3x4x6xf32>
}

// -----

func.func @grouped_types(%x: tensor<8x4xf32>, %y: tensor<8x6xbf16>, %g: tensor<8xi64>) -> tensor<3x4x6xf32> {
  // expected-error @below {{has operands of other types than its result: 'tensor<8x6xbf16>' and 'tensor<3x4x6xf32>'}}
  %0 = kernel.grouped_outer rows 8 m 4 n 6 groups 3(%g : tensor<8xi64>) a(%x : tensor<8x4xf32>)
      b(%y : tensor<8x6xbf16>) -> tensor<3x4x6xf32>
  return %0 : tensor<3x4x6xf32>
}

// -----

func.func @sort(%t: tensor<4x16xf32>) -> tensor<4x16xf32> {
  // expected-error @below {{cannot cut 'tensor<4x16xf32>' into rows of 5}}
  %0, %1 = kernel.sort %t size 5 : (tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xi64>)
  return %0 : tensor<4x16xf32>
}

// -----

func.func @copy(%t: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{pieces have 4 elements for a result 'tensor<8xf32>'}}
  %0 = kernel.copy %t pieces [#kernel.piece<0 [4] (d0) -> (d0) to (d0) -> (d0)>] : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @custom_call(%t: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has 1 inputs, 1 places for them and 0 shapes}}
  %0 = kernel.custom_call "f" of "l.so" hash "0"(%t) arguments [unit] shapes [] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @custom_call(%t: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has the shape array<i64: 5> for an input of type 'tensor<4xf32>'}}
  %0 = kernel.custom_call "f" of "l.so" hash "0"(%t) arguments [unit] shapes [array<i64: 5>] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @custom_call(%t: tensor<4xf32>) {
  // expected-error @below {{has no result}}
  kernel.custom_call "f" of "l.so" hash "0"(%t) arguments [unit] shapes [array<i64: 4>] : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @custom_call(%t: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has neither a function of a library with a hash nor a launch of cubins}}
  %0 = kernel.custom_call (%t) arguments [unit] shapes [array<i64: 4>] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @custom_call(%t: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has a launch whose grid and block have not three sizes each}}
  %0 = kernel.custom_call (%t) arguments [unit] shapes [array<i64: 4>] launch <"f" grid [1] block [1, 1, 1] shared 0 parameters []> of [] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @custom_call(%t: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has a launch with tensor 2 of 2}}
  %0 = kernel.custom_call (%t) arguments [unit] shapes [array<i64: 4>] launch <"f" grid [1, 1, 1] block [1, 1, 1] shared 0 parameters [2 : index]> of [] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @custom_call(%t: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has a launch with the parameter "x"}}
  %0 = kernel.custom_call (%t) arguments [unit] shapes [array<i64: 4>] launch <"f" grid [1, 1, 1] block [1, 1, 1] shared 0 parameters ["x"]> of [] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
