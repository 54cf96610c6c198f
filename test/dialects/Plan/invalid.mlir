// RUN: spmd-opt %s -split-input-file -verify-diagnostics

// Constraint 1: a ref lies inside its buffer for every rank.
plan.program @p ranks 4 state 0 transient 64 lower_bound 64 peak {} {
  // expected-note @+1 {{the buffer}}
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-error @+1 {{touches bytes [0, 68) of @b, which has 64}}
  %0 = plan.fill(w @b[0 + 16 * c0 : 20]) value 0 on compute
}

// -----

// Constraint 1: a ref names a buffer.
plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  // expected-error @+1 {{refers to unknown buffer @b}}
  %0 = plan.fill(w @b[0 : 4]) value 0 on compute
}

// -----

// Constraint 2: streams.
plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-error @+2 {{expected one of [compute, gather, reduce, scalar] for stream, got: side}}
  // expected-error @+2 {{failed to parse Plan_StreamAttr parameter}}
  %0 = plan.fill(w @b[0 : 4]) value 0 on side
}

// -----

// Constraint 2: communicators.
plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-error @+1 {{uses unknown communicator @scalar}}
  %0 = plan.all_reduce [sum](rw @b[0 : 4]) counts [1] : f32 unit "" comm @scalar on compute
}

// -----

// Constraint 5: priorities.
plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.stream gather priority 1
  // expected-error @+1 {{says a second priority of stream gather}}
  plan.stream gather priority 2
}

// -----

plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  // expected-error @+1 {{failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  plan.stream gather priority 0
}

// -----

// Constraint 3: the state part and the transient part.
plan.program @p ranks 1 state 64 transient 64 lower_bound 64 peak {} {
  // expected-error @+1 {{lies at [32, 96), outside the state part of the arena}}
  plan.buffer @b parameters at 32 bytes 64 state "w"
}

// -----

plan.program @p ranks 1 state 64 transient 64 lower_bound 64 peak {} {
  // expected-error @+1 {{lies at [32, 96), outside the transient part of the arena}}
  plan.buffer @b activations at 32 bytes 64 "y"
}

// -----

// Constraint 4: a wait names another stream.
plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-note @+1 {{the command}}
  %0 = plan.fill(w @b[0 : 4]) value 0 on compute
  // expected-error @+1 {{waits for a command of its own stream compute}}
  %1 = plan.wait for %0 on compute
}

// -----

// A fill writes a byte.
plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-error @+1 {{attribute 'value' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 255}}
  %0 = plan.fill(w @b[0 : 4]) value 256 on compute
}

// -----

plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-error @+1 {{expected access r, w or rw, found 'x'}}
  %0 = plan.fill(x @b[0 : 4]) value 0 on compute
}

// -----

plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-error @+1 {{reads 4 bytes but writes 8}}
  %0 = plan.copy(r @b[0 : 4], w @b[8 : 8]) on compute
}

// -----

// Attention, constraint S1.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{attention has 3 heads, no multiple of 2 key/value heads}}
  %0 = plan.attention @k <f32, batch = 1, heads = 3, kvHeads = 2, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint S1.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{attention has a size 0, which is not positive}}
  %0 = plan.attention @k <f32, batch = 0, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint S2.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{attention is of f32, bf16 or f16}}
  %0 = plan.attention @k <f64, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint S2.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{attention has a scale that is not finite}}
  %0 = plan.attention @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 0x7FF0000000000000 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint S3.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{attention has a negative offset or stride in}}
  %0 = plan.attention @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = -4, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint S4.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{attention has views of 1 gradients, expected dout, dq, dk and dv or none}}
  %0 = plan.attention @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>, dq = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint A1.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has a shape with views of gradients}}
  %0 = plan.attention @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>, dout = <offset = 0, batch = 16, head = 16, row = 4>,
      dq = <offset = 0, batch = 16, head = 16, row = 4>, dk = <offset = 0, batch = 16, head = 16, row = 4>,
      dv = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint A1.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has a shape without views of gradients}}
  %0 = plan.attention_backward @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      dout(r @b[0 : 64]) q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(r @b[192 : 64])
      lse(r @b[256 : 16]) gradients(w @b[512 : 192])
      parallel 1 grain 1 on compute
}

// -----

// Constraint A2.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has access r of argument 4, expected w}}
  %0 = plan.attention @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(r @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint A2.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has access rw of argument 6, expected w}}
  %0 = plan.attention_backward @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>, dout = <offset = 0, batch = 16, head = 16, row = 4>,
      dq = <offset = 0, batch = 16, head = 16, row = 4>, dk = <offset = 0, batch = 16, head = 16, row = 4>,
      dv = <offset = 0, batch = 16, head = 16, row = 4>>
      dout(r @b[0 : 64]) q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(r @b[192 : 64])
      lse(r @b[256 : 16]) gradients(rw @b[512 : 192])
      parallel 1 grain 1 on compute
}

// -----

// Constraint A3.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has operands of a mask, but no mask}}
  %0 = plan.attention @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) mask(r @b[512 : 4]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute
}

// -----

// Constraint A4.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has one of library and library_plan without the other}}
  %0 = plan.attention @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>>
      q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(w @b[192 : 64]) lse(w @b[256 : 16])
      parallel 1 grain 1 on compute {library = "cudnn"}
}

// -----

// Constraint A5.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has 2 gradients, expected 1 or 3}}
  %0 = plan.attention_backward @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>, dout = <offset = 0, batch = 16, head = 16, row = 4>,
      dq = <offset = 0, batch = 16, head = 16, row = 4>, dk = <offset = 0, batch = 16, head = 16, row = 4>,
      dv = <offset = 0, batch = 16, head = 16, row = 4>>
      dout(r @b[0 : 64]) q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(r @b[192 : 64])
      lse(r @b[256 : 16]) gradients(w @b[512 : 64], w @b[576 : 64])
      parallel 1 grain 1 on compute
}

// -----

// Constraint A6.
plan.program @p ranks 1 state 0 transient 1024 lower_bound 1024 peak {} {
  plan.buffer @b io at 0 bytes 1024 "x"
  // expected-error @+1 {{has mask_gradient, but no mask that is added}}
  %0 = plan.attention_backward @k <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 4, kvLen = 4,
      headDim = 4, vDim = 4, scale = 1.0 : f64, mask = condition, q = <offset = 0, batch = 16, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 0, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 16, head = 16, row = 4>, dout = <offset = 0, batch = 16, head = 16, row = 4>,
      dq = <offset = 0, batch = 16, head = 16, row = 4>, dk = <offset = 0, batch = 16, head = 16, row = 4>,
      dv = <offset = 0, batch = 16, head = 16, row = 4>>
      dout(r @b[0 : 64]) q(r @b[0 : 64]) k(r @b[64 : 64]) v(r @b[128 : 64]) out(r @b[192 : 64])
      lse(r @b[256 : 16]) gradients(w @b[512 : 192]) mask_gradient(w @b[768 : 64])
      parallel 1 grain 1 on compute
}

// -----

plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  plan.communicator @scalar
  plan.buffer @b io at 0 bytes 64 "x"
  // expected-error @+1 {{has 1 buffers, 2 counts and 1 kinds}}
  %0 = plan.all_reduce [sum](rw @b[0 : 4]) counts [1, 1] : f32 unit "" comm @scalar on compute
}

// -----

plan.program @p ranks 1 state 0 transient 64 lower_bound 64 peak {} {
  // expected-error @+1 {{does not belong in a plan}}
  func.func private @f()
}

// -----

plan.dataflow {
  // expected-error @+1 {{attribute 'what' failed to satisfy constraint: what a command computes}}
  plan.compute "fill"() : () -> !plan.bytes<4>
}

// -----

// A gradient is taken somewhere.
plan.program @p ranks 1 state 0 transient 4096 lower_bound 4096 peak {} {
  plan.buffer @b io at 0 bytes 4096 "x"
  // expected-error @+1 {{has gelu_tanh_backward, but no pre_activation}}
  %0 = plan.gemm(r @b[0 : 256], r @b[256 : 256], w @b[512 : 256]) m 8 n 8 k 8 ld(8, 8, 8) beta 0.000000e+00 batch 1
      strides(0, 0, 0) : f32 activation gelu_tanh_backward on compute
}

// -----

// Where it is taken is read.
plan.program @p ranks 1 state 0 transient 4096 lower_bound 4096 peak {} {
  plan.buffer @b io at 0 bytes 4096 "x"
  // expected-error @+1 {{has a pre_activation that is not read}}
  %0 = plan.gemm(r @b[0 : 256], r @b[256 : 256], w @b[512 : 256]) m 8 n 8 k 8 ld(8, 8, 8) beta 0.000000e+00 batch 1
      strides(0, 0, 0) : f32 activation gelu_tanh_backward pre_activation w @b[1024 : 256] on compute
}

// -----

// What an activation is applied to is written.
plan.program @p ranks 1 state 0 transient 4096 lower_bound 4096 peak {} {
  plan.buffer @b io at 0 bytes 4096 "x"
  // expected-error @+1 {{has a pre_activation that is read}}
  %0 = plan.gemm(r @b[0 : 256], r @b[256 : 256], w @b[512 : 256]) m 8 n 8 k 8 ld(8, 8, 8) beta 0.000000e+00 batch 1
      strides(0, 0, 0) : f32 activation gelu_tanh pre_activation r @b[1024 : 256] on compute
}

// -----

// No library has a gradient of a sum.
plan.program @p ranks 1 state 0 transient 4096 lower_bound 4096 peak {} {
  plan.buffer @b io at 0 bytes 4096 "x"
  // expected-error @+1 {{has gelu_tanh_backward, which is without bias, residual and beta}}
  %0 = plan.gemm(r @b[0 : 256], r @b[256 : 256], w @b[512 : 256]) m 8 n 8 k 8 ld(8, 8, 8) beta 0.000000e+00 batch 1
      strides(0, 0, 0) : f32 bias r @b[2048 : 32] activation gelu_tanh_backward pre_activation r @b[1024 : 256] on compute
}

// -----

// Sums of the result are those of a gradient.
plan.program @p ranks 1 state 0 transient 4096 lower_bound 4096 peak {} {
  plan.buffer @b io at 0 bytes 4096 "x"
  // expected-error @+1 {{has a bias_gradient, which is for one GEMM, of a and b without bias and activation, of c with gelu_tanh_backward}}
  %0 = plan.gemm(r @b[0 : 256], r @b[256 : 256], w @b[512 : 256]) m 8 n 8 k 8 ld(8, 8, 8) beta 0.000000e+00 batch 1
      strides(0, 0, 0) : f32 bias_gradient_of c w @b[2048 : 32] on compute
}
