// RUN: spmd-opt %s --spmd-outline-kernels --spmd-lower-kernels | FileCheck %s

// Rows from memory: the second pass, over a row that is in a cache, prefetches rows to come, three of 3 KB; a result of
// 48 MB is written by non-temporal stores where it begins with a line, and is seen by whoever comes after.
// CHECK-LABEL: llvm.func @k0
// CHECK: %[[NUMBER:.*]] = llvm.ptrtoint
// CHECK: %[[REST:.*]] = arith.andi %[[NUMBER]], %c63
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: scf.if %[[ALIGNED]] {
// CHECK: scf.for %{{.*}} = %arg2 to %arg3 step %c1
// CHECK: scf.for {{.*}} step %c64
// CHECK-NOT: llvm.intr.prefetch
// CHECK: vector.shuffle
// CHECK: scf.for {{.*}} step %c16
// CHECK: %[[AHEAD:.*]] = arith.addi %{{.*}}, %c2304
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %{{.*}}[%[[AHEAD]]]
// CHECK: "llvm.intr.prefetch"(%[[ADDRESS]]) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<16xf32>
// CHECK: llvm.fence seq_cst
// CHECK: } else {
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: nontemporal
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : vector<16xf32>
// CHECK-NOT: llvm.fence

// Some cache holds 24 MB.
// CHECK-LABEL: llvm.func @k1
// CHECK-NOT: scf.if
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: nontemporal

// Rows of 3,076 bytes do not begin with a line.
// CHECK-LABEL: llvm.func @k2
// CHECK-NOT: scf.if
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: nontemporal

// A row of 64 KB goes into the second cache, one ahead.
// CHECK-LABEL: llvm.func @k3
// CHECK: arith.addi %{{.*}}, %c16384
// CHECK: "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK: nontemporal

// What waits in the memory of a result is read again.
// CHECK-LABEL: llvm.func @k4
// CHECK: math.exp
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: nontemporal
func.func @f(%a: tensor<16384x768xf32>, %b: tensor<8192x768xf32>, %c: tensor<16384x769xf32>, %d: tensor<512x16384xf32>)
    -> (tensor<16384x768xf32>, tensor<8192x768xf32>, tensor<16384x769xf32>, tensor<512x16384xf32>,
        tensor<512x16384xf32>) {
  %0 = kernel.cluster dims [16384, 768] parallel 1
      ins(%x = %a at (d0, d1) -> (d0 * 768 + d1) : tensor<16384x768xf32>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<16384x768xf32>) {
    %s = kernel.reduce <add> %x over [1] : f32
    %r = arith.subf %x, %s : f32
    kernel.yield %r : f32
  }
  %1 = kernel.cluster dims [8192, 768] parallel 1
      ins(%x = %b at (d0, d1) -> (d0 * 768 + d1) : tensor<8192x768xf32>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<8192x768xf32>) {
    %s = kernel.reduce <add> %x over [1] : f32
    %r = arith.subf %x, %s : f32
    kernel.yield %r : f32
  }
  %2 = kernel.cluster dims [16384, 769] parallel 1
      ins(%x = %c at (d0, d1) -> (d0 * 769 + d1) : tensor<16384x769xf32>)
      outs(at (d0, d1) -> (d0 * 769 + d1) : tensor<16384x769xf32>) {
    %s = kernel.reduce <add> %x over [1] : f32
    %r = arith.subf %x, %s : f32
    kernel.yield %r : f32
  }
  %3 = kernel.cluster dims [512, 16384] parallel 1
      ins(%x = %d at (d0, d1) -> (d0 * 16384 + d1) : tensor<512x16384xf32>)
      outs(at (d0, d1) -> (d0 * 16384 + d1) : tensor<512x16384xf32>) {
    %s = kernel.reduce <add> %x over [1] : f32
    %r = arith.subf %x, %s : f32
    kernel.yield %r : f32
  }
  %4 = kernel.cluster dims [512, 16384] parallel 1
      ins(%x = %d at (d0, d1) -> (d0 * 16384 + d1) : tensor<512x16384xf32>)
      outs(at (d0, d1) -> (d0 * 16384 + d1) : tensor<512x16384xf32>) {
    %e = math.exp %x : f32
    %s = kernel.reduce <add> %e over [1] : f32
    %r = arith.divf %e, %s : f32
    kernel.yield %r : f32
  }
  return %0, %1, %2, %3, %4 : tensor<16384x768xf32>, tensor<8192x768xf32>, tensor<16384x769xf32>, tensor<512x16384xf32>,
      tensor<512x16384xf32>
}
