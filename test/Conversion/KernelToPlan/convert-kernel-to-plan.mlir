// RUN: spmd-opt %s -spmd-convert-kernel-to-plan -spmd-verify-plan | FileCheck %s

// A linear layer, its weight gradient and SGD with momentum on two ranks: every rule of the assignment once.

#id16 = affine_map<(d0) -> (d0)>
#zero = affine_map<(d0) -> (0)>

module attributes {spmd.step = {name = "linear"}} {
  spmd.mesh @mesh ["data" = 2]
  spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
    #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>,
    #spmd.segment<"b", shape = [4], group = 0, offset = 128, numel = 4, trainable = true>]>

  // The state part: shard, momentum. Then the transient part, where the gathered buffer and its gradient share bytes.
  // CHECK: plan.program @train_step ranks 2
  // CHECK-SAME: state 1024 transient [[TRANSIENT:[0-9]+]] lower_bound [[TRANSIENT]] peak {
  // CHECK: plan.buffer @b0 parameters at 0 bytes 512 state "unit0 param"
  // CHECK: plan.buffer @b1 optimizer_state at 512 bytes 512 state "unit0 momentum_buffer"
  // CHECK: plan.buffer @b2 io at {{[0-9]+}} bytes 8 "lr 0"
  // CHECK: plan.buffer @b3 io at {{[0-9]+}} bytes 256 "x"
  // CHECK: plan.buffer @[[G:.*]] gradients at {{[0-9]+}} bytes 1024 "unit0 gradients"
  // CHECK: plan.buffer @[[W:.*]] gathered at {{[0-9]+}} bytes 1024 "unit0 gathered"
  // CHECK: plan.input r @b0[0 : 512] as #spmd.shard<@unit0, "param"> type tensor<128xf32>
  // CHECK: plan.input r @b3[0 : 256] as #spmd.batch<"x", dim = 0> type tensor<4x16xf32> layout #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>
  // CHECK: plan.output r @[[LOSS:.*]][0 : 4] as #spmd.loss<""> type tensor<f32>
  func.func @step(
      %w: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "param">},
      %m: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "momentum_buffer", init = 0.0>},
      %lr: tensor<f64> {spmd.arg = #spmd.hyper<"lr", group = 0, value = 0.1>},
      %x: tensor<4x16xf32> {spmd.arg = #spmd.batch<"x", dim = 0>,
                            spmd.layout = #spmd.sharding<global = [8, 16], [shard<0, 1, 4>]>})
      -> (tensor<f32> {spmd.result = #spmd.loss<"">},
          tensor<128xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "param">>},
          tensor<128xf32> {spmd.result = #spmd.update<#spmd.shard<@unit0, "momentum_buffer", init = 0.0>>}) {
    // The gather reads the shard where it persists; nothing has run that it could wait for.
    // CHECK: %[[AG:.*]] = plan.all_gather(r @b0[0 : 512], w @[[W]][0 : 1024]) count 128 : f32 unit "unit0" comm @gather on gather
    // CHECK-NEXT: plan.wait for %[[AG]] on compute
    %h = spmd.all_gather_start %w on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256 stream gather
        : tensor<128xf32> -> !spmd.handle<tensor<256xf32>>
    %flat = spmd.wait %h : !spmd.handle<tensor<256xf32>> -> tensor<256xf32>
    %wf, %bf = spmd.unpack %flat unit @unit0 ["w", "b"] : tensor<256xf32> -> tensor<4x16xf32>, tensor<4xf32>
    // The weight is a range of the gathered buffer.
    // CHECK-NEXT: plan.gemm(r @b3[0 : 256], r @[[W]][0 : 256], w @[[Y:.*]][0 : 64]) m 4 n 4 k 16 ld(16, 16, 4) trans_b
    %y = kernel.gemm m 4 n 4 k 16 a(%x ld 16 : tensor<4x16xf32>) b(%wf ld 16 trans : tensor<4x16xf32>) -> tensor<4x4xf32>
    // The gradient of y is written over y, the bias is a range too.
    // CHECK-NEXT: plan.kernel @k0(r @[[Y]][0 : 64], r @[[W]][512 : 16], w @[[Y]][0 : 64], w @[[LOSS]][0 : 4]) parallel
    %dy, %lp = kernel.cluster dims [4, 4] parallel 0
        ins(%a = %y at (d0, d1) -> (d0 * 4 + d1) : tensor<4x4xf32>, %b = %bf at (d0, d1) -> (d1) : tensor<4xf32>)
        outs(at (d0, d1) -> (d0 * 4 + d1) : tensor<4x4xf32>, at (d0, d1) -> (0) : tensor<f32>)
        attributes {symbol = "k0"} {
      %s = arith.addf %a, %b : f32
      %q = kernel.reduce <add> %s over [0, 1] : f32
      kernel.yield %s, %q : f32, f32
    }
    spmd.release %flat : tensor<256xf32>
    // The first gradient that is written makes the padding zero, and is written where the reduce-scatter reads it.
    // CHECK-NEXT: plan.fill(w @[[G]][256 : 256]) value 0 on compute
    // CHECK-NEXT: plan.fill(w @[[G]][528 : 496]) value 0 on compute
    // CHECK-NEXT: plan.gemm(r @[[Y]][0 : 64], r @b3[0 : 256], w @[[G]][0 : 256]) m 4 n 16 k 4 ld(4, 16, 16) trans_a
    %gw = kernel.gemm m 4 n 16 k 4 a(%dy ld 4 trans : tensor<4x4xf32>) b(%x ld 16 : tensor<4x16xf32>) -> tensor<4x16xf32>
    // CHECK-NEXT: %[[LAST:.*]] = plan.kernel @k1(r @[[Y]][0 : 64], w @[[G]][512 : 16])
    %gb = kernel.cluster dims [4, 4] parallel 1
        ins(%a = %dy at (d0, d1) -> (d0 + d1 * 4) : tensor<4x4xf32>)
        outs(at (d0, d1) -> (d0) : tensor<4xf32>) attributes {symbol = "k1"} {
      %q = kernel.reduce <add> %a over [1] : f32
      kernel.yield %q : f32
    }
    %g = spmd.pack %gw, %gb unit @unit0 ["w", "b"] : (tensor<4x16xf32>, tensor<4xf32>) -> tensor<256xf32>
    // CHECK-NEXT: plan.wait for %[[LAST]] on reduce
    // CHECK-NEXT: %[[RS:.*]] = plan.reduce_scatter sum(r @[[G]][0 : 1024], w @[[S:.*]][0 : 512]) count 128 : f32 unit "unit0" comm @reduce on reduce
    %hg = spmd.reduce_scatter_start sum %g on @mesh ["data"] unit @unit0 dim 0 pre 1 chunk 128 stream reduce
        : tensor<256xf32> -> !spmd.handle<tensor<128xf32>>
    // CHECK-NEXT: plan.wait for %[[LAST]] on scalar
    // CHECK-NEXT: %[[AR:.*]] = plan.all_reduce [sum](rw @[[LOSS]][0 : 4]) counts [1] : f32 unit "" comm @scalar on scalar
    %hl = spmd.all_reduce_start [sum] %lp on @mesh ["data"] stream scalar : (tensor<f32>) -> !spmd.handle<tensor<f32>>
    // CHECK-NEXT: plan.wait for %[[RS]] on compute
    // CHECK-NEXT: plan.wait for %[[AR]] on compute
    %gs = spmd.wait %hg : !spmd.handle<tensor<128xf32>> -> tensor<128xf32>
    %l = spmd.wait %hl : !spmd.handle<tensor<f32>> -> tensor<f32>
    // Parameter and momentum are updated where they are.
    // CHECK-NEXT: plan.kernel @k2(r @b0[0 : 512], r @[[S]][0 : 512], r @b1[0 : 512], r @b2[0 : 8], w @b0[0 : 512], w @b1[0 : 512])
    %w1, %m1 = kernel.cluster dims [128] parallel 1
        ins(%p = %w at (d0) -> (d0) : tensor<128xf32>, %d = %gs at (d0) -> (d0) : tensor<128xf32>,
            %v = %m at (d0) -> (d0) : tensor<128xf32>, %r = %lr at (d0) -> (0) : tensor<f64>)
        outs(at (d0) -> (d0) : tensor<128xf32>, at (d0) -> (d0) : tensor<128xf32>) attributes {symbol = "k2"} {
      %v1 = arith.addf %v, %d : f32
      %r1 = arith.truncf %r : f64 to f32
      %t = arith.mulf %r1, %v1 : f32
      %p1 = arith.subf %p, %t : f32
      kernel.yield %p1, %v1 : f32, f32
    }
    // CHECK-NOT: plan.copy
    // What it must compute is made from the ops alone: views are parts, the pack is a join.
    // CHECK: plan.dataflow {
    // CHECK-NEXT: %[[VW:.*]] = plan.source #spmd.shard<@unit0, "param"> type tensor<128xf32> : <512>
    // CHECK-NEXT: %[[VM:.*]] = plan.source #spmd.shard<@unit0, "momentum_buffer", init = 0.000000e+00 : f64> type tensor<128xf32> : <512>
    // CHECK-NEXT: %[[VR:.*]] = plan.source #spmd.hyper<"lr", group = 0, value = 1.000000e-01 : f64> type tensor<f64> : <8>
    // CHECK-NEXT: %[[VX:.*]] = plan.source #spmd.batch<"x", dim = 0> type tensor<4x16xf32> : <256>
    // CHECK-NEXT: %[[VF:.*]] = plan.compute #plan.collective<all_gather f32 counts[128] unit "unit0">(%[[VW]])
    // CHECK-NEXT: %[[VWF:.*]] = plan.part %[[VF]] at 0 segment "w" of "unit0" : <1024> -> <256>
    // CHECK-NEXT: %[[VBF:.*]] = plan.part %[[VF]] at 512 segment "b" of "unit0" : <1024> -> <16>
    // CHECK: %[[VY:.*]] = plan.compute #plan.gemm<f32, m = 4, n = 4, k = 16, lda = 16, ldb = 16, ldc = 4, trans_b = true>(
    // CHECK-NEXT: %[[VDY:.*]]:2 = plan.compute #plan.kernel<@k0>(%[[VY]], %[[VBF]])
    // CHECK: %[[VGW:.*]] = plan.compute #plan.gemm<f32, m = 4, n = 16, k = 4, lda = 4, ldb = 16, ldc = 16, trans_a = true>(
    // CHECK-NEXT: %[[VGB:.*]] = plan.compute #plan.kernel<@k1>(%[[VDY]]#0)
    // CHECK-NEXT: %[[VG:.*]] = plan.join(%[[VGW]], %[[VGB]]) at [0, 512] segments ["w", "b"] of "unit0"
    // CHECK-NEXT: %[[VS:.*]] = plan.compute #plan.collective<reduce_scatter f32 reduce[sum] counts[128] unit "unit0">(%[[VG]])
    // CHECK-NEXT: %[[VL:.*]] = plan.compute #plan.collective<all_reduce f32 reduce[sum] counts[1]>(%[[VDY]]#1)
    // CHECK-NEXT: %[[VN:.*]]:2 = plan.compute #plan.kernel<@k2>(%[[VW]], %[[VS]], %[[VM]], %[[VR]]) {reads = [array<i32: 0, 1, 2, 3>, array<i32: 1, 2>]}
    // CHECK-NEXT: plan.target %[[VL]] is #spmd.loss<""> type tensor<f32>
    // CHECK-NEXT: plan.target %[[VN]]#0 is #spmd.shard<@unit0, "param"> type tensor<128xf32>
    // CHECK-NEXT: plan.target %[[VN]]#1 is #spmd.shard<@unit0, "momentum_buffer", init = 0.000000e+00 : f64> type tensor<128xf32>
    // CHECK-NEXT: }
    // The kernels stay, each once.
    // CHECK: func.func private @k0(%{{.*}}: tensor<4x4xf32>, %{{.*}}: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<f32>)
    // CHECK: func.func private @k1(
    // CHECK: func.func private @k2(
    // CHECK-NOT: @step
    return %l, %w1, %m1 : tensor<f32>, tensor<128xf32>, tensor<128xf32>
  }
}
