// RUN: spmd-opt %s --split-input-file --verify-diagnostics --spmd-mark-iteration | FileCheck %s

// Each iteration copies what it is fed into a buffer of its own, at the same bytes, and that into one that all have; the
// last of those that the plan has stands for the others. What it leaves is read behind the loop.
// CHECK: plan.program @train_step {{.*}} attributes {iteration = array<i64: 4, 6>} {
module attributes {spmd.iterations = {count = 5 : i64, fed = [["x.0", "x.1", "x.2", "x.3", "x.4"]], kept = 3 : i64,
                                      segments_end = 1 : i64}} {
  plan.program @train_step ranks 1 state 0 transient 512 lower_bound 512 peak {} {
    plan.buffer @x0 io at 0 bytes 64 "x.0"
    plan.buffer @x1 io at 64 bytes 64 "x.1"
    plan.buffer @x2 io at 128 bytes 64 "x.2"
    plan.buffer @x3 io at 192 bytes 64 "x.3"
    plan.buffer @x4 io at 256 bytes 64 "x.4"
    plan.buffer @y io at 320 bytes 64 "y"
    plan.buffer @a activations at 384 bytes 64 "own"
    plan.buffer @b activations at 384 bytes 64 "own"
    plan.buffer @c activations at 384 bytes 64 "own"
    plan.buffer @sum activations at 448 bytes 64 "sum"
    plan.input r @x0[0 : 64] as #spmd.batch<"x.0", dim = none> type tensor<16xf32>
    plan.input r @x1[0 : 64] as #spmd.batch<"x.1", dim = none> type tensor<16xf32>
    plan.input r @x2[0 : 64] as #spmd.batch<"x.2", dim = none> type tensor<16xf32>
    plan.input r @x3[0 : 64] as #spmd.batch<"x.3", dim = none> type tensor<16xf32>
    plan.input r @x4[0 : 64] as #spmd.batch<"x.4", dim = none> type tensor<16xf32>
    plan.output r @y[0 : 64] as #spmd.loss<""> type tensor<16xf32>
    %0 = plan.kernel @k0(r @x0[0 : 64], w @a[0 : 64]) parallel 1 grain 1 on compute
    %1 = plan.kernel @k1(r @a[0 : 64], w @sum[0 : 64]) parallel 1 grain 1 on compute
    %2 = plan.kernel @k0(r @x1[0 : 64], w @b[0 : 64]) parallel 1 grain 1 on compute
    %3 = plan.kernel @k1(r @b[0 : 64], w @sum[0 : 64]) parallel 1 grain 1 on compute
    %4 = plan.kernel @k0(r @x2[0 : 64], w @c[0 : 64]) parallel 1 grain 1 on compute
    %5 = plan.kernel @k1(r @c[0 : 64], w @sum[0 : 64]) parallel 1 grain 1 on compute
    %6 = plan.copy(r @c[0 : 64], w @y[0 : 64]) on compute
  }
}

// -----

// Another iteration's buffer lies elsewhere.
module attributes {spmd.iterations = {count = 5 : i64, fed = [["x.0", "x.1", "x.2", "x.3", "x.4"]], kept = 3 : i64,
                                      segments_end = 1 : i64}} {
  // expected-error @below {{'plan.program' op repeats: command 4 has other bytes than in the iteration before}}
  plan.program @train_step ranks 1 state 0 transient 512 lower_bound 512 peak {} {
    plan.buffer @x0 io at 0 bytes 64 "x.0"
    plan.buffer @x1 io at 64 bytes 64 "x.1"
    plan.buffer @x2 io at 128 bytes 64 "x.2"
    plan.buffer @x3 io at 192 bytes 64 "x.3"
    plan.buffer @x4 io at 256 bytes 64 "x.4"
    plan.buffer @y io at 320 bytes 64 "y"
    plan.buffer @a activations at 384 bytes 64 "own"
    plan.buffer @b activations at 384 bytes 64 "own"
    plan.buffer @c activations at 448 bytes 64 "own"
    plan.input r @x0[0 : 64] as #spmd.batch<"x.0", dim = none> type tensor<16xf32>
    plan.input r @x1[0 : 64] as #spmd.batch<"x.1", dim = none> type tensor<16xf32>
    plan.input r @x2[0 : 64] as #spmd.batch<"x.2", dim = none> type tensor<16xf32>
    plan.input r @x3[0 : 64] as #spmd.batch<"x.3", dim = none> type tensor<16xf32>
    plan.input r @x4[0 : 64] as #spmd.batch<"x.4", dim = none> type tensor<16xf32>
    plan.output r @y[0 : 64] as #spmd.loss<""> type tensor<16xf32>
    %0 = plan.kernel @k0(r @x0[0 : 64], w @a[0 : 64]) parallel 1 grain 1 on compute
    %1 = plan.kernel @k1(r @a[0 : 64], w @y[0 : 64]) parallel 1 grain 1 on compute
    %2 = plan.kernel @k0(r @x1[0 : 64], w @b[0 : 64]) parallel 1 grain 1 on compute
    %3 = plan.kernel @k1(r @b[0 : 64], w @y[0 : 64]) parallel 1 grain 1 on compute
    %4 = plan.kernel @k0(r @x2[0 : 64], w @c[0 : 64]) parallel 1 grain 1 on compute
    %5 = plan.kernel @k1(r @c[0 : 64], w @y[0 : 64]) parallel 1 grain 1 on compute
  }
}

// -----

// What every iteration leaves is read behind the loop: of those that are missing nobody would read it.
module attributes {spmd.iterations = {count = 5 : i64, fed = [["x.0", "x.1", "x.2", "x.3", "x.4"]], kept = 3 : i64,
                                      segments_end = 1 : i64}} {
  // expected-error @below {{has no iteration that stands for others: a value of an earlier iteration is read}}
  plan.program @train_step ranks 1 state 0 transient 576 lower_bound 576 peak {} {
    plan.buffer @x0 io at 0 bytes 64 "x.0"
    plan.buffer @x1 io at 64 bytes 64 "x.1"
    plan.buffer @x2 io at 128 bytes 64 "x.2"
    plan.buffer @x3 io at 192 bytes 64 "x.3"
    plan.buffer @x4 io at 256 bytes 64 "x.4"
    plan.buffer @y io at 320 bytes 64 "y"
    plan.buffer @a activations at 384 bytes 64 "own"
    plan.buffer @b activations at 448 bytes 64 "own"
    plan.buffer @c activations at 512 bytes 64 "own"
    plan.input r @x0[0 : 64] as #spmd.batch<"x.0", dim = none> type tensor<16xf32>
    plan.input r @x1[0 : 64] as #spmd.batch<"x.1", dim = none> type tensor<16xf32>
    plan.input r @x2[0 : 64] as #spmd.batch<"x.2", dim = none> type tensor<16xf32>
    plan.input r @x3[0 : 64] as #spmd.batch<"x.3", dim = none> type tensor<16xf32>
    plan.input r @x4[0 : 64] as #spmd.batch<"x.4", dim = none> type tensor<16xf32>
    plan.output r @y[0 : 64] as #spmd.loss<""> type tensor<16xf32>
    %0 = plan.kernel @k0(r @x0[0 : 64], w @a[0 : 64]) parallel 1 grain 1 on compute
    %1 = plan.kernel @k0(r @x1[0 : 64], w @b[0 : 64]) parallel 1 grain 1 on compute
    %2 = plan.kernel @k0(r @x2[0 : 64], w @c[0 : 64]) parallel 1 grain 1 on compute
    %3 = plan.copy(r @a[0 : 64], w @y[0 : 64]) on compute
    %4 = plan.copy(r @b[0 : 64], w @y[0 : 64]) on compute
    %5 = plan.copy(r @c[0 : 64], w @y[0 : 64]) on compute
  }
}

// -----

// The loop is fed three times, and is to run five.
module attributes {spmd.iterations = {count = 5 : i64, fed = [["x.0", "x.1", "x.2"]], kept = 3 : i64,
                                      segments_end = 1 : i64}} {
  // expected-error @below {{has no iteration that stands for others: the loop is fed less often}}
  plan.program @train_step ranks 1 state 0 transient 256 lower_bound 256 peak {} {
    plan.buffer @x0 io at 0 bytes 64 "x.0"
    plan.buffer @x1 io at 64 bytes 64 "x.1"
    plan.buffer @x2 io at 128 bytes 64 "x.2"
    plan.buffer @y io at 192 bytes 64 "y"
    plan.input r @x0[0 : 64] as #spmd.batch<"x.0", dim = none> type tensor<16xf32>
    plan.input r @x1[0 : 64] as #spmd.batch<"x.1", dim = none> type tensor<16xf32>
    plan.input r @x2[0 : 64] as #spmd.batch<"x.2", dim = none> type tensor<16xf32>
    plan.output r @y[0 : 64] as #spmd.loss<""> type tensor<16xf32>
    %0 = plan.copy(r @x0[0 : 64], w @y[0 : 64]) on compute
    %1 = plan.copy(r @x1[0 : 64], w @y[0 : 64]) on compute
    %2 = plan.copy(r @x2[0 : 64], w @y[0 : 64]) on compute
  }
}

// -----

module attributes {spmd.iterations = {count = 5 : i64}} {
  // expected-error @below {{has no iteration that stands for others: 'spmd.iterations' lacks the entry for the omitted iterations}}
  plan.program @train_step ranks 1 state 0 transient 0 lower_bound 0 peak {} {
  }
}
