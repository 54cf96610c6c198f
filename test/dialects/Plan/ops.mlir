// RUN: spmd-opt %s | spmd-opt | FileCheck %s

// Every op of the dialect, printed and parsed again. The number of an event is the id of its command.

// CHECK-LABEL: plan.program @train_step ranks 2
plan.program @train_step ranks 2 state 1024 transient 4096 lower_bound 4000
    peak {activations = 1024 : i64, gathered = 1024 : i64} {
  // CHECK-NEXT: plan.communicator @gather{{$}}
  plan.communicator @gather
  // CHECK-NEXT: plan.communicator @reduce.replicate axes ["replicate"]
  plan.communicator @reduce.replicate axes ["replicate"]
  // CHECK-NEXT: plan.communicator @scalar max_blocks 32
  plan.communicator @scalar max_blocks 32
  // CHECK-NEXT: plan.stream scalar priority 1
  plan.stream scalar priority 1
  // CHECK: plan.buffer @p parameters at 0 bytes 512 state "unit0 param"
  plan.buffer @p parameters at 0 bytes 512 state "unit0 param"
  // CHECK: plan.buffer @m optimizer_state at 512 bytes 512 state "unit0 momentum_buffer"
  plan.buffer @m optimizer_state at 512 bytes 512 state "unit0 momentum_buffer"
  plan.buffer @w gathered at 1024 bytes 1024 "unit0 gathered"
  plan.buffer @x io at 2048 bytes 1024 "x"
  plan.buffer @y activations at 3072 bytes 1024 "y"
  plan.buffer @g gradients at 4096 bytes 1024 "unit0 gradients"
  plan.buffer @h activations at 1024 bytes 1024 "h"
  // CHECK: plan.buffer @s workspace at 4096 bytes 1024 align 256 "workspace"
  plan.buffer @s workspace at 4096 bytes 1024 align 256 "workspace"
  // CHECK: plan.input r @x[0 : 1024] as "batch" type tensor<16x16xf32> layout "rows" {ignore_index = -100 : i64, index_bound = 65 : i64}
  plan.input r @x[0 : 1024] as "batch" type tensor<16x16xf32> layout "rows" {ignore_index = -100 : i64, index_bound = 65 : i64}
  // CHECK: plan.output r @y[0 : 4] as "loss" type tensor<f32>
  plan.output r @y[0 : 4] as "loss" type tensor<f32>
  // CHECK: %[[C0:.*]] = plan.all_gather(r @p[0 : 512], w @w[0 : 1024]) count 128 : f32 unit "unit0" comm @gather on gather
  %0 = plan.all_gather(r @p[0 : 512], w @w[0 : 1024]) count 128 : f32 unit "unit0" comm @gather on gather
  // CHECK: plan.wait for %[[C0]] on compute
  %1 = plan.wait for %0 on compute
  // CHECK: plan.gemm(r @x[0 : 1024], r @w[0 : 1024], w @y[0 : 1024]) m 16 n 16 k 16 ld(16, 16, 16) trans_b beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 on compute
  %2 = plan.gemm(r @x[0 : 1024], r @w[0 : 1024], w @y[0 : 1024]) m 16 n 16 k 16 ld(16, 16, 16) trans_b
      beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 on compute
  // CHECK: plan.gemm({{.*}}) m 16 n 16 k 16 ld(16, 16, 16) beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 bias r @w[0 : 64] residual r @y[0 : 1024] activation gelu_tanh pre_activation w @h[0 : 1024] on compute
  %epilogue = plan.gemm(r @x[0 : 1024], r @w[0 : 1024], w @g[0 : 1024]) m 16 n 16 k 16 ld(16, 16, 16)
      beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 bias r @w[0 : 64] residual r @y[0 : 1024]
      activation gelu_tanh pre_activation w @h[0 : 1024] on compute
  // CHECK: plan.gemm({{.*}}) m 16 n 16 k 16 ld(16, 16, 16) trans_a beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 bias_gradient_of a w @h[0 : 64] on compute
  %gradient = plan.gemm(r @x[0 : 1024], r @w[0 : 1024], w @g[0 : 1024]) m 16 n 16 k 16 ld(16, 16, 16) trans_a
      beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 bias_gradient_of a w @h[0 : 64] on compute
  // CHECK: plan.gemm({{.*}}) m 16 n 16 k 16 ld(16, 16, 16) beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 activation gelu_tanh_backward pre_activation r @y[0 : 1024] bias_gradient_of c w @h[0 : 64] on compute
  %dgelu = plan.gemm(r @x[0 : 1024], r @w[0 : 1024], w @g[0 : 1024]) m 16 n 16 k 16 ld(16, 16, 16)
      beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 activation gelu_tanh_backward pre_activation r @y[0 : 1024]
      bias_gradient_of c w @h[0 : 64] on compute
  // CHECK: plan.gemm({{.*}}) m 16 n 16 k 16 ld(16, 16, 16) beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 workspace w @s[0 : 1024] on compute
  %library = plan.gemm(r @x[0 : 1024], r @w[0 : 1024], w @y[0 : 1024]) m 16 n 16 k 16 ld(16, 16, 16)
      beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 workspace w @s[0 : 1024] on compute
  // CHECK: plan.kernel @k0(rw @y[0 : 1024], w @g[0 + 512 * c0 : 512]) parallel 16 grain 4 on compute
  %3 = plan.kernel @k0(rw @y[0 : 1024], w @g[0 + 512 * c0 : 512]) parallel 16 grain 4 on compute
  // CHECK: plan.attention @k1 <f32, batch = 1, heads = 2, kvHeads = 1, qLen = 4, kvLen = 4, headDim = 4, vDim = 4, scale = 5.000000e-01 : f64, mask = condition, high = 0, q = <offset = 0, batch = 32, head = 16, row = 4>, k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 16, batch = 16, head = 16, row = 4>, out = <offset = 0, batch = 32, head = 16, row = 4>> q(r @x[0 : 128]) k(r @w[0 : 128]) v(r @w[0 : 128]) mask(r @x[512 : 4]) out(w @y[0 : 128]) lse(w @y[128 : 32]) parallel 2 grain 1 on compute
  %forward = plan.attention @k1 <f32, batch = 1, heads = 2, kvHeads = 1, qLen = 4, kvLen = 4, headDim = 4, vDim = 4,
      scale = 0.5 : f64, mask = condition, high = 0, q = <offset = 0, batch = 32, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 16, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 32, head = 16, row = 4>>
      q(r @x[0 : 128]) k(r @w[0 : 128]) v(r @w[0 : 128]) mask(r @x[512 : 4]) out(w @y[0 : 128]) lse(w @y[128 : 32])
      parallel 2 grain 1 on compute
  // CHECK: plan.attention_backward @k2 <f32, {{.*}} mask = added, low = -1, q = {{.*}} dout = <offset = 0, batch = 32, head = 16, row = 4>, {{.*}}> dout(r @y[256 : 128]) q(r @x[0 : 128]) {{.*}} out(r @y[0 : 128]) lse(r @y[128 : 32]) gradients(w @g[0 : 128], w @g[128 : 64], w @g[192 : 64]) mask_gradient(w @g[256 : 64]) parallel 1 grain 1 library "cudnn" plan "7f45" on compute
  %backward = plan.attention_backward @k2 <f32, batch = 1, heads = 2, kvHeads = 1, qLen = 4, kvLen = 4, headDim = 4,
      vDim = 4, scale = 0.5 : f64, mask = added, low = -1, q = <offset = 0, batch = 32, head = 16, row = 4>,
      k = <offset = 0, batch = 16, head = 16, row = 4>, v = <offset = 16, batch = 16, head = 16, row = 4>,
      out = <offset = 0, batch = 32, head = 16, row = 4>, dout = <offset = 0, batch = 32, head = 16, row = 4>,
      dq = <offset = 0, batch = 32, head = 16, row = 4>, dk = <offset = 0, batch = 16, head = 16, row = 4>,
      dv = <offset = 0, batch = 16, head = 16, row = 4>>
      dout(r @y[256 : 128]) q(r @x[0 : 128]) k(r @w[0 : 128]) v(r @w[0 : 128]) out(r @y[0 : 128]) lse(r @y[128 : 32])
      gradients(w @g[0 : 128], w @g[128 : 64], w @g[192 : 64]) mask_gradient(w @g[256 : 64]) parallel 1 grain 1
      library "cudnn" plan "7f45" on compute
  // CHECK: plan.fill(w @g[1020 : 4]) value 0 on compute
  %4 = plan.fill(w @g[1020 : 4]) value 0 on compute
  %5 = plan.wait for %4 on reduce
  // CHECK: plan.reduce_scatter sum(r @g[0 : 1024], w @g[0 + 512 * c0 : 512]) count 128 : f32 unit "unit0" comm @reduce.replicate on reduce
  %6 = plan.reduce_scatter sum(r @g[0 : 1024], w @g[0 + 512 * c0 : 512]) count 128 : f32 unit "unit0" comm @reduce.replicate on reduce
  %7 = plan.wait for %4 on scalar
  // CHECK: plan.all_reduce [sum, norm2](rw @y[0 : 4], rw @y[64 : 4]) counts [1, 1] : f32 unit "" comm @scalar on scalar
  %8 = plan.all_reduce [sum, norm2](rw @y[0 : 4], rw @y[64 : 4]) counts [1, 1] : f32 unit "" comm @scalar on scalar
  // CHECK: plan.copy(r @g[0 + 512 * c0 : 512], w @m[0 : 512]) on compute
  %9 = plan.copy(r @g[0 + 512 * c0 : 512], w @m[0 : 512]) on compute
}

// What the plan computes. Values are told by their bytes alone.

// CHECK-LABEL: plan.dataflow {
plan.dataflow {
  // CHECK-NEXT: %[[P:.*]] = plan.source "param" type tensor<128xf32> : <512>
  %0 = plan.source "param" type tensor<128xf32> : <512>
  // CHECK-NEXT: %[[W:.*]] = plan.compute #plan.collective<all_gather f32 counts[128] unit "unit0">(%[[P]]) : (!plan.bytes<512>) -> !plan.bytes<1024>
  %1 = plan.compute #plan.collective<all_gather f32 counts[128] unit "unit0">(%0) : (!plan.bytes<512>) -> !plan.bytes<1024>
  // CHECK-NEXT: %[[PART:.*]] = plan.part %[[W]] at 64 segment "b" of "unit0" : <1024> -> <16>
  %2 = plan.part %1 at 64 segment "b" of "unit0" : <1024> -> <16>
  // CHECK-NEXT: plan.part %[[PART]] at 0 : <16> -> <4>
  %3 = plan.part %2 at 0 : <16> -> <4>
  // CHECK-NEXT: plan.compute #plan.check_index<i64, count = 2, low = 0, high = 65, use = "embedding">(%[[PART]]) : (!plan.bytes<16>) -> ()
  plan.compute #plan.check_index<i64, count = 2, low = 0, high = 65, use = "embedding">(%2) : (!plan.bytes<16>) -> ()
  // CHECK-NEXT: plan.compute #plan.attention<@k1 <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 1, kvLen = 1, headDim = 1, vDim = 1, scale = 1.000000e+00 : f64, q = <offset = 0, batch = 1, head = 1, row = 1>, k = <offset = 0, batch = 1, head = 1, row = 1>, v = <offset = 0, batch = 1, head = 1, row = 1>, out = <offset = 0, batch = 1, head = 1, row = 1>>>(%[[PART]], %[[PART]], %[[PART]])
  %out, %lse = plan.compute #plan.attention<@k1 <f32, batch = 1, heads = 1, kvHeads = 1, qLen = 1, kvLen = 1, headDim = 1,
      vDim = 1, scale = 1.0 : f64, q = <offset = 0, batch = 1, head = 1, row = 1>,
      k = <offset = 0, batch = 1, head = 1, row = 1>, v = <offset = 0, batch = 1, head = 1, row = 1>,
      out = <offset = 0, batch = 1, head = 1, row = 1>>>(%2, %2, %2)
      : (!plan.bytes<16>, !plan.bytes<16>, !plan.bytes<16>) -> (!plan.bytes<4>, !plan.bytes<4>)
  // CHECK-NEXT: %[[G:.*]] = plan.join(%[[PART]], %[[PART]]) at [0, 64] segments ["w", "b"] of "unit0" : (!plan.bytes<16>, !plan.bytes<16>) -> !plan.bytes<1024>
  %4 = plan.join(%2, %2) at [0, 64] segments ["w", "b"] of "unit0" : (!plan.bytes<16>, !plan.bytes<16>) -> !plan.bytes<1024>
  // CHECK-NEXT: plan.target %[[P]] is "param" type tensor<128xf32> : <512>
  plan.target %0 is "param" type tensor<128xf32> : <512>
}
