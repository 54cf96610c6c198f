// RUN: spmd-opt %s -spmd-convert-kernel-to-plan -spmd-verify-plan -o %t.mlir && FileCheck %s < %t.mlir
// RUN: spmd-translate --plan-to-json=%t.mlir | FileCheck %s --check-prefix=JSON
// RUN: spmd-opt %s -spmd-convert-kernel-to-plan=gemm-workspace=4096 -spmd-verify-plan | FileCheck %s --check-prefix=SPACE

// A sum that nothing else reads is added to in its place (beta is 1); one that is still read, or that is an argument, is
// a residual and lies elsewhere. What an activation is applied to has bytes of its own.

// CHECK: plan.gemm(r @[[X:.*]][0 : 128], r @[[W:.*]][0 : 192], w @[[Y:.*]][0 : 96]) m 4 n 6 k 8
// CHECK-SAME: beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 bias r @[[B:.*]][0 : 24] residual r @[[R:.*]][0 : 96] on compute
// CHECK-NEXT: plan.gemm(r @[[X]][0 : 128], r @[[W]][0 : 192], rw @[[Y]][0 : 96])
// CHECK-SAME: beta 1.000000e+00 batch 1 strides(0, 0, 0) : f32 on compute
// CHECK-NEXT: plan.gemm({{.*}}, w @[[Z:.*]][0 : 96])
// CHECK-SAME: beta 0.000000e+00 batch 1 strides(0, 0, 0) : f32 residual r @[[Y]][0 : 96] activation gelu_tanh pre_activation w @[[H:.*]][0 : 96] on compute
// CHECK-NEXT: plan.gemm(r @[[Z]][0 : 96], r @[[X]][0 : 128], w @{{.*}}[0 : 192]) m 6 n 8 k 4 ld(6, 8, 8) trans_a
// CHECK-SAME: : f32 bias_gradient_of a w @[[G:.*]][0 : 24] on compute
// CHECK-NEXT: plan.gemm({{.*}}, w @[[D:.*]][0 : 96])
// CHECK-SAME: : f32 activation gelu_tanh_backward pre_activation r @[[H]][0 : 96] bias_gradient_of c w @{{.*}}[0 : 24] on compute
// CHECK-NEXT: plan.kernel @k0(r @[[Y]][0 : 96], r @[[Z]][0 : 96], r @[[H]][0 : 96]

// JSON: "op":"gemm"
// JSON-SAME: "beta":0
// JSON-SAME: "bias":{"buffer":1,"offset":0,"bytes":24,"access":"r"},"residual":{"buffer":3,"offset":0,"bytes":96,"access":"r"},"loc"
// JSON-NEXT: "op":"gemm"
// JSON-SAME: "beta":1
// JSON-SAME: "c":{"buffer":4,"offset":0,"bytes":96,"access":"rw"},"loc"
// JSON-NEXT: "op":"gemm"
// JSON-SAME: "residual":{"buffer":4,"offset":0,"bytes":96,"access":"r"},"activation":"gelu_tanh","pre_activation":{"buffer":6,"offset":0,"bytes":96,"access":"w"},"loc"

// JSON-NEXT: "op":"gemm"
// JSON-SAME: "bias_gradient_of":"a","bias_gradient":{"buffer":{{[0-9]+}},"offset":0,"bytes":24,"access":"w"},"loc"
// JSON-NEXT: "op":"gemm"
// JSON-SAME: "activation":"gelu_tanh_backward","pre_activation":{"buffer":6,"offset":0,"bytes":96,"access":"r"},"bias_gradient_of":"c","bias_gradient":{"buffer":{{[0-9]+}},"offset":0,"bytes":24,"access":"w"},"loc"

// A library's workspace is alive while its product is, so that the three share their bytes.

// SPACE: plan.buffer @[[S0:.*]] workspace at [[AT:.*]] bytes 4096 align 256 "gemm workspace"
// SPACE: plan.buffer @[[S1:.*]] workspace at [[AT]] bytes 4096 align 256 "gemm workspace"
// SPACE: plan.buffer @[[S2:.*]] workspace at [[AT]] bytes 4096 align 256 "gemm workspace"
// SPACE: plan.gemm({{.*}} bias {{.*}} residual {{.*}} workspace w @[[S0]][0 : 4096] on compute
// SPACE-NEXT: plan.gemm({{.*}} workspace w @[[S1]][0 : 4096] on compute
// SPACE-NEXT: plan.gemm({{.*}} pre_activation {{.*}} workspace w @[[S2]][0 : 4096] on compute

module attributes {spmd.step = {name = "epilogues"}} {
  spmd.mesh @mesh ["data" = 1]
  func.func @step(%w: tensor<6x8xf32> {spmd.arg = #spmd.param<"w", trainable>},
                  %b: tensor<6xf32> {spmd.arg = #spmd.param<"b", trainable>},
                  %x: tensor<4x8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %r: tensor<4x6xf32> {spmd.arg = #spmd.batch<"r", dim = 0>})
      -> (tensor<f32> {spmd.result = #spmd.loss<"">}) {
    %0 = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>)
        bias(%b : tensor<6xf32>) residual(%r : tensor<4x6xf32>) -> tensor<4x6xf32>
    %1 = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>)
        residual(%0 : tensor<4x6xf32>) -> tensor<4x6xf32>
    %2, %3 = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>)
        residual(%1 : tensor<4x6xf32>) activation gelu_tanh -> tensor<4x6xf32>, pre_activation tensor<4x6xf32>
    %dw, %db = kernel.gemm m 6 n 8 k 4 a(%2 ld 6 trans : tensor<4x6xf32>) b(%x ld 8 : tensor<4x8xf32>)
        bias_gradient_of a -> tensor<6x8xf32>, bias_gradient tensor<6xf32>
    %dh, %dc = kernel.gemm m 4 n 6 k 8 a(%x ld 8 : tensor<4x8xf32>) b(%w ld 8 trans : tensor<6x8xf32>)
        activation gelu_tanh_backward pre_activation(%3 : tensor<4x6xf32>) bias_gradient_of c
        -> tensor<4x6xf32>, bias_gradient tensor<6xf32>
    %4 = kernel.cluster dims [24] parallel 0
        ins(%p = %1 at (d0) -> (d0) : tensor<4x6xf32>, %q = %2 at (d0) -> (d0) : tensor<4x6xf32>,
            %s = %3 at (d0) -> (d0) : tensor<4x6xf32>)
        outs(at (d0) -> (0) : tensor<f32>) attributes {symbol = "k0"} {
      %t = arith.addf %p, %q : f32
      %u = arith.addf %t, %s : f32
      %v = kernel.reduce <add> %u over [0] : f32
      kernel.yield %v : f32
    }
    return %4 : tensor<f32>
  }
}
