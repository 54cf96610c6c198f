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
