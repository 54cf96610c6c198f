// RUN: spmd-opt %s -split-input-file -spmd-verify-plan -verify-diagnostics | FileCheck %s

// Plans that were edited by hand; the errors are those of the loader, at the command.

// CHECK: plan.program @train_step
plan.program @train_step ranks 1 streams ["compute"] communicators [] state 0 transient 128 lower_bound 128 peak {} {
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  %0 = plan.copy(r @x[0 : 64], w @y[0 : 64]) on "compute"
}

// -----

// Two live buffers in the same bytes.
plan.program @train_step ranks 1 streams ["compute"] communicators [] state 0 transient 128 lower_bound 128 peak {} {
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y activations at 0 bytes 64 "y"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  %0 = plan.fill(w @y[0 : 64]) value 0 on "compute"
  // expected-error @+1 {{certificate rule 2: command 1 (copy): operands overlap}}
  %1 = plan.copy(r @x[0 : 64], w @y[0 : 64]) on "compute"
}

// -----

// A read of bytes that nothing wrote.
plan.program @train_step ranks 1 streams ["compute"] communicators [] state 0 transient 128 lower_bound 128 peak {} {
  plan.buffer @x activations at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  // expected-error @+1 {{certificate rule 6}}
  %0 = plan.copy(r @x[0 : 64], w @y[0 : 64]) on "compute"
}

// -----

// The wait between the streams is missing.
plan.program @train_step ranks 1 streams ["compute", "gather"] communicators ["gather"] state 0 transient 128 lower_bound 128
    peak {} {
  plan.buffer @x activations at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  %0 = plan.fill(w @x[0 : 64]) value 0 on "compute"
  // expected-error @+1 {{certificate rule 5}}
  %1 = plan.all_gather(r @x[0 : 64], w @y[0 : 64]) count 16 : f32 unit "" comm "gather" on "gather"
}

// -----

// expected-error @+1 {{expected one plan.program, found 0}}
module {
}
