// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_90 | FileCheck %s

// Threads that share a row. A row that lies in their registers is read once, so there may be more of them than wanted
// (one for 16 elements): the fewest that divide it.

func.func @norms(%even: tensor<512x4096xf32>, %odd: tensor<512x1280xf32>, %prime: tensor<512x1600xf32>)
    -> (tensor<512x4096xf32>, tensor<512x1280xf32>, tensor<512x1600xf32>) {
  // CHECK-LABEL: gpu.func @even(
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
  // CHECK-COUNT-4: llvm.load {{.*}} -> vector<4xf32>
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  %0 = kernel.cluster dims [512, 4096] parallel 1
      ins(%a = %even at (d0, d1) -> (d0 * 4096 + d1) : tensor<512x4096xf32>)
      outs(at (d0, d1) -> (d0 * 4096 + d1) : tensor<512x4096xf32>) attributes {symbol = "even"} {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  // 320 accesses: 96 threads do not divide them, 160 do.
  // CHECK-LABEL: gpu.func @odd(
  // CHECK-SAME: known_block_size = array<i32: 160, 1, 1>
  // CHECK-COUNT-2: llvm.load {{.*}} -> vector<4xf32>
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  %1 = kernel.cluster dims [512, 1280] parallel 1
      ins(%a = %odd at (d0, d1) -> (d0 * 1280 + d1) : tensor<512x1280xf32>)
      outs(at (d0, d1) -> (d0 * 1280 + d1) : tensor<512x1280xf32>) attributes {symbol = "odd"} {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  // 400 accesses: no number of warps divides them, and the row is read for the sum and again.
  // CHECK-LABEL: gpu.func @prime(
  // CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
  // CHECK: scf.for
  // CHECK: scf.for
  %2 = kernel.cluster dims [512, 1600] parallel 1
      ins(%a = %prime at (d0, d1) -> (d0 * 1600 + d1) : tensor<512x1600xf32>)
      outs(at (d0, d1) -> (d0 * 1600 + d1) : tensor<512x1600xf32>) attributes {symbol = "prime"} {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  return %0, %1, %2 : tensor<512x4096xf32>, tensor<512x1280xf32>, tensor<512x1600xf32>
}
