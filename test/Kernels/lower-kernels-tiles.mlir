// RUN: spmd-opt %s --spmd-outline-kernels --spmd-lower-kernels | FileCheck %s

// Four tiles along the operand's rows, then along the result's, whose lines do not meet in one set of the first cache.
// CHECK-LABEL: llvm.func @k0
// CHECK: scf.for {{.*}} step %c64
// CHECK: scf.for %[[LOW:.*]] = %c0{{.*}} to %c992{{.*}} step %c16
// CHECK: %[[END:.*]] = arith.addi %[[LOW]], %c16
// CHECK: %[[HIGH:.*]] = arith.minsi %[[END]], %c992
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c64{{.*}} step %c16
// CHECK: scf.for %{{.*}} = %[[LOW]] to %[[HIGH]] step %c16
// CHECK: vector.shuffle

// Rows of 2 KB: two tiles along the result's rows, two along the operand's.
// CHECK-LABEL: llvm.func @k1
// CHECK: scf.for {{.*}} step %c32
// CHECK: scf.for %[[LOW:.*]] = %c0{{.*}} to %c512{{.*}} step %c32
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c32{{.*}} step %c16
// CHECK: scf.for %{{.*}} = %[[LOW]] to %{{.*}} step %c16
// CHECK: vector.shuffle

// Rows of 8 KB: four tiles along the result's.
// CHECK-LABEL: llvm.func @k2
// CHECK: scf.for {{.*}} step %c32
// CHECK: scf.for %[[LOW:.*]] = %c0{{.*}} to %c4096{{.*}} step %c64
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c32{{.*}} step %c16
// CHECK: scf.for %{{.*}} = %[[LOW]] to %{{.*}} step %c16
// CHECK: vector.shuffle
func.func @f(%x: tensor<1000x768xf32>, %y: tensor<512x3072xf32>, %z: tensor<4096x64xbf16>)
    -> (tensor<768x1000xf32>, tensor<3072x512xf32>, tensor<64x4096xbf16>) {
  %0 = kernel.cluster dims [768, 1000] parallel 1
      ins(%a = %x at (d0, d1) -> (d0 + d1 * 768) : tensor<1000x768xf32>)
      outs(at (d0, d1) -> (d0 * 1000 + d1) : tensor<768x1000xf32>) {
    kernel.yield %a : f32
  }
  %1 = kernel.cluster dims [3072, 512] parallel 1
      ins(%a = %y at (d0, d1) -> (d0 + d1 * 3072) : tensor<512x3072xf32>)
      outs(at (d0, d1) -> (d0 * 512 + d1) : tensor<3072x512xf32>) {
    kernel.yield %a : f32
  }
  %2 = kernel.cluster dims [64, 4096] parallel 1
      ins(%a = %z at (d0, d1) -> (d0 + d1 * 64) : tensor<4096x64xbf16>)
      outs(at (d0, d1) -> (d0 * 4096 + d1) : tensor<64x4096xbf16>) {
    kernel.yield %a : bf16
  }
  return %0, %1, %2 : tensor<768x1000xf32>, tensor<3072x512xf32>, tensor<64x4096xbf16>
}
