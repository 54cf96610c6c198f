// RUN: spmd-opt %s -spmd-convert-kernel-to-plan=collective-blocks=32 -o %t.mlir && FileCheck %s < %t.mlir
// RUN: spmd-translate --plan-to-json=%t.mlir | FileCheck %s --check-prefix=JSON
// RUN: spmd-opt %s -spmd-convert-kernel-to-plan | FileCheck %s --check-prefix=CPU --implicit-check-not=priority --implicit-check-not=max_blocks

// On a device the streams that have collectives go before the others, and communicators that are used hold no more than
// is said; of a CPU there is nothing to say.

// CHECK: plan.communicator @gather max_blocks 32
// CHECK-NEXT: plan.communicator @reduce{{$}}
// CHECK-NEXT: plan.communicator @scalar{{$}}
// CHECK-NEXT: plan.stream gather priority 1
// CHECK-NEXT: plan.buffer

// JSON: "priorities": {"gather":1}
// JSON-NEXT: "max_blocks": {"gather":32}

// CPU: plan.communicator @gather
spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard layout #spmd.flat<f32, padded = 256, [
  #spmd.segment<"w", shape = [4, 16], group = 0, offset = 0, numel = 64, trainable = true>]>
func.func @step(%shard: tensor<128xf32> {spmd.arg = #spmd.shard<@unit0, "param">})
    -> (tensor<f32> {spmd.result = #spmd.loss<"">}) {
  %flat = spmd.all_gather %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 256
      : tensor<128xf32> -> tensor<256xf32>
  %w = spmd.unpack %flat unit @unit0 ["w"] : tensor<256xf32> -> tensor<4x16xf32>
  %loss = kernel.cluster dims [64] parallel 0 ins(%a = %w at (d0) -> (d0) : tensor<4x16xf32>)
      outs(at (d0) -> (0) : tensor<f32>) attributes {symbol = "k0"} {
    %s = kernel.reduce <add> %a over [0] : f32
    kernel.yield %s : f32
  }
  return %loss : tensor<f32>
}
