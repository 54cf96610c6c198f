// RUN: spmd-opt %s --split-input-file --spmd-drop-waits | FileCheck %s
// RUN: spmd-opt %s --split-input-file --spmd-drop-waits --spmd-drop-waits | FileCheck %s

// What the gather's stream is to wait for touches none of its bytes; what reads the gathered bytes waits for it.
// CHECK-LABEL: plan.program @train_step
// CHECK-SAME: lower_bound 192
// CHECK: %[[FILL:.*]] = plan.fill(w @y
// CHECK-NEXT: %[[GATHER:.*]] = plan.all_gather
// CHECK-NEXT: plan.wait for %[[GATHER]] on compute
// CHECK-NEXT: plan.copy
plan.program @train_step ranks 1 state 0 transient 192 lower_bound 192 peak {} {
  plan.communicator @gather
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  plan.buffer @z activations at 128 bytes 64 "z"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  %0 = plan.fill(w @y[0 : 64]) value 0 on compute
  %1 = plan.wait for %0 on gather
  %2 = plan.all_gather(r @x[0 : 64], w @z[0 : 64]) count 16 : f32 unit "" comm @gather on gather
  %3 = plan.wait for %2 on compute
  %4 = plan.copy(r @z[0 : 64], w @y[0 : 64]) on compute
}

// -----

// The gathered buffer has the bytes of one that is dead by then: the gate holds them back.
// CHECK-LABEL: plan.program @train_step
// CHECK: %[[COPY:.*]] = plan.copy(r @y
// CHECK-NEXT: plan.wait for %[[COPY]] on gather
// CHECK-NEXT: plan.all_gather
plan.program @train_step ranks 1 state 0 transient 256 lower_bound 256 peak {} {
  plan.communicator @gather
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  plan.buffer @z activations at 64 bytes 64 "z"
  plan.buffer @u activations at 128 bytes 64 "u"
  plan.buffer @v activations at 192 bytes 64 "v"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  %0 = plan.fill(w @y[0 : 64]) value 0 on compute
  %1 = plan.copy(r @y[0 : 64], w @u[0 : 64]) on compute
  %2 = plan.wait for %1 on gather
  %3 = plan.all_gather(r @x[0 : 64], w @z[0 : 64]) count 16 : f32 unit "" comm @gather on gather
  %4 = plan.wait for %3 on compute
  %5 = plan.copy(r @z[0 : 64], w @v[0 : 64]) on compute
}

// -----

// The reduction waits for a wait that nobody needs, and for the gather through it: for what is before that one now.
// CHECK-LABEL: plan.program @train_step
// CHECK: %[[FIRST:.*]] = plan.fill(w @y[0 : 64]) value 0 on compute
// CHECK-NEXT: plan.all_gather
// CHECK-NEXT: plan.wait for %[[FIRST]] on reduce
// CHECK-NEXT: plan.all_reduce
plan.program @train_step ranks 1 state 0 transient 192 lower_bound 192 peak {} {
  plan.communicator @gather
  plan.communicator @reduce
  plan.buffer @x io at 0 bytes 64 "x"
  plan.buffer @y activations at 64 bytes 64 "y"
  plan.buffer @z activations at 128 bytes 64 "z"
  plan.input r @x[0 : 64] as #spmd.batch<"x", dim = none> type tensor<16xf32>
  %0 = plan.fill(w @y[0 : 64]) value 0 on compute
  %1 = plan.all_gather(r @x[0 : 64], w @z[0 : 64]) count 16 : f32 unit "" comm @gather on gather
  %2 = plan.wait for %1 on compute
  %3 = plan.wait for %2 on reduce
  %4 = plan.all_reduce [sum](rw @y[0 : 64]) counts [16] : f32 unit "" comm @reduce on reduce
}
