// RUN: spmd-opt %s -split-input-file -spmd-verify-plan -verify-diagnostics | FileCheck %s

// Plans that were edited by hand; the errors are those of the loader, at the command.

// CHECK: plan.program @train_step
plan.program @train_step ranks 1 state 0 transient 128 lower_bound 128 peak {} {
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  %0 = plan.copy(r @x[0 : 64], w @y[0 : 64]) on compute
}

// -----

// Two live buffers in the same bytes.
plan.program @train_step ranks 1 state 0 transient 128 lower_bound 128 peak {} {
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y activations at 0 bytes 64 "y"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  %0 = plan.fill(w @y[0 : 64]) value 0 on compute
  // expected-error @+1 {{certificate rule 2: command 1 (copy): operands overlap}}
  %1 = plan.copy(r @x[0 : 64], w @y[0 : 64]) on compute
}

// -----

// A read of bytes that nothing wrote.
plan.program @train_step ranks 1 state 0 transient 128 lower_bound 128 peak {} {
  plan.buffer @x activations at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  // expected-error @+1 {{certificate rule 6}}
  %0 = plan.copy(r @x[0 : 64], w @y[0 : 64]) on compute
}

// -----

// The wait between the streams is missing.
plan.program @train_step ranks 1 state 0 transient 128 lower_bound 128 peak {} {
  plan.communicator @gather
  plan.buffer @x activations at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  %0 = plan.fill(w @x[0 : 64]) value 0 on compute
  // expected-error @+1 {{certificate rule 5}}
  %1 = plan.all_gather(r @x[0 : 64], w @y[0 : 64]) count 16 : f32 unit "" comm @gather on gather
}

// -----

// The plan computes the values that it comes from: the first half of x, not the second.
plan.dataflow {
  %0 = plan.source #spmd.batch<"x", dim = none> type tensor<16xf32> : <64>
  %1 = plan.part %0 at 0 : <64> -> <32>
  %2 = plan.compute #plan.kernel<@k0>(%1) : (!plan.bytes<32>) -> !plan.bytes<4>
  plan.target %2 is #spmd.loss<""> type tensor<f32> : <4>
}
plan.program @train_step ranks 1 state 0 transient 128 lower_bound 128 peak {} {
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y io at 64 bytes 64 "y"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  plan.output r @y[0 : 4] as #spmd.loss<""> type tensor<f32>
  // expected-error @+1 {{certificate rule 8: command 0 (kernel k0): operand 0 of 'kernel k0 rw' is 32 bytes from 32 on of batch x f32; the compiled step has 32 bytes from 0 on of batch x f32}}
  %0 = plan.kernel @k0(r @x[32 : 32], w @y[0 : 4]) parallel 8 grain 1 on compute
}

// -----

// expected-error @+1 {{expected one plan.program, found 0}}
module {
}

// -----

// Two of five iterations, and none that stands for the others.
module attributes {spmd.iterations = {count = 5 : i64, fed = [], kept = 2 : i64, segments_end = 1 : i64}} {
  // expected-error @below {{'plan.program' op has only a few iterations of a loop; run spmd-mark-iteration to mark the one that stands for the others}}
  plan.program @train_step ranks 1 state 0 transient 64 lower_bound 64 peak {} {
    plan.buffer @y activations at 0 bytes 64 "y"
    %0 = plan.fill(w @y[0 : 64]) value 0 on compute
    %1 = plan.fill(w @y[0 : 64]) value 0 on compute
  }
}
