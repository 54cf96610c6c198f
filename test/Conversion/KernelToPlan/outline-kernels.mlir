// RUN: spmd-opt %s --spmd-outline-kernels | FileCheck %s

// Same structure, other operands: one symbol. GEMMs are library calls and get none.
// CHECK-LABEL: @f
// CHECK: kernel.gather_rows {{.*}} {symbol = "k0"} : (tensor<65x16xf32>
// CHECK: kernel.gather_rows {{.*}} {symbol = "k0"} : (tensor<65x16xf32>
// CHECK: kernel.gather_rows {{.*}} {symbol = "k1"} : (tensor<33x16xf32>
// CHECK: kernel.cluster
// CHECK: symbol = "k2"
// CHECK: kernel.cluster
// CHECK: symbol = "k2"
// Another constant is another kernel.
// CHECK: kernel.cluster
// CHECK: symbol = "k3"
// CHECK: kernel.gemm
// CHECK-NOT: symbol
func.func @f(%t: tensor<65x16xf32>, %u: tensor<33x16xf32>, %a: tensor<8xi64>, %b: tensor<8xi64>) -> tensor<8x8xf32> {
  %0 = kernel.gather_rows %t, %a {symbol = "old"} : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
  %1 = kernel.gather_rows %t, %b : (tensor<65x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
  %2 = kernel.gather_rows %u, %b : (tensor<33x16xf32>, tensor<8xi64>) -> tensor<8x16xf32>
  %3 = kernel.cluster dims [128] parallel 1
      ins(%x = %0 at (d0) -> (d0) : tensor<8x16xf32>, %y = %1 at (d0) -> (d0) : tensor<8x16xf32>)
      outs(at (d0) -> (d0) : tensor<8x16xf32>) {
    %c = arith.constant 1.0 : f32
    %s = arith.addf %x, %y : f32
    %r = arith.mulf %s, %c : f32
    kernel.yield %r : f32
  }
  %4 = kernel.cluster dims [128] parallel 1
      ins(%x = %1 at (d0) -> (d0) : tensor<8x16xf32>, %y = %2 at (d0) -> (d0) : tensor<8x16xf32>)
      outs(at (d0) -> (d0) : tensor<8x16xf32>) {
    %c = arith.constant 1.0 : f32
    %s = arith.addf %x, %y : f32
    %r = arith.mulf %s, %c : f32
    kernel.yield %r : f32
  }
  %5 = kernel.cluster dims [128] parallel 1
      ins(%x = %3 at (d0) -> (d0) : tensor<8x16xf32>, %y = %4 at (d0) -> (d0) : tensor<8x16xf32>)
      outs(at (d0) -> (d0) : tensor<8x16xf32>) {
    %c = arith.constant 2.0 : f32
    %s = arith.addf %x, %y : f32
    %r = arith.mulf %s, %c : f32
    kernel.yield %r : f32
  }
  %6 = kernel.gemm m 8 n 8 k 16 a(%5 ld 16 : tensor<8x16xf32>) b(%4 ld 16 trans : tensor<8x16xf32>) -> tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}

// What reads one tensor in two places is another kernel than what reads two.
// CHECK-LABEL: @twice
// CHECK: symbol = "k[[TWO:[0-9]+]]"
// CHECK: kernel.cluster
// CHECK-NOT: symbol = "k[[TWO]]"
// CHECK: return
func.func @twice(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = kernel.cluster dims [8] parallel 1
      ins(%x = %a at (d0) -> (d0) : tensor<8xf32>, %y = %b at (d0) -> (7 - d0) : tensor<8xf32>)
      outs(at (d0) -> (d0) : tensor<8xf32>) {
    %s = arith.addf %x, %y : f32
    kernel.yield %s : f32
  }
  %1 = kernel.cluster dims [8] parallel 1
      ins(%x = %a at (d0) -> (d0) : tensor<8xf32>, %y = %a at (d0) -> (7 - d0) : tensor<8xf32>)
      outs(at (d0) -> (d0) : tensor<8xf32>) {
    %s = arith.addf %x, %y : f32
    kernel.yield %s : f32
  }
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
