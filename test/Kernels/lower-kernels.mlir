// RUN: spmd-opt %s --spmd-outline-kernels --spmd-lower-kernels | FileCheck %s

// Elementwise: dims merge, functions run on two vectors of 16 lanes, then on one, then on scalars; the range is the
// caller's.
// CHECK-LABEL: llvm.func @k0(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64)
// CHECK: scf.for %{{.*}} = %arg2 to %{{.*}} step %c32
// CHECK: math.exp {{.*}} : vector<32xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16
// CHECK: llvm.load {{.*}} : !llvm.ptr -> vector<16xf32>
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK: llvm.store {{.*}} : vector<16xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %arg3 step
// CHECK: math.exp {{.*}} : f32
// CHECK-NOT: scf.for

// A sum over rows: four accumulators, then 16 elements at a time, then scalars; a fixed tree.
// CHECK-LABEL: llvm.func @k1
// CHECK: scf.for %{{.*}} = %arg2 to %arg3 step %c1
// CHECK: %[[V:.*]]:4 = scf.for {{.*}} step %c64{{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: %[[W:.*]] = scf.for {{.*}} step %c16{{.*}} iter_args(%{{.*}} = %[[V]]#0)
// CHECK: %[[S:.*]] = scf.for {{.*}} -> (f32)
// CHECK: %[[A:.*]] = arith.addf %[[W]], %[[V]]#1
// CHECK: %[[B:.*]] = arith.addf %[[V]]#2, %[[V]]#3
// CHECK: %[[C:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: vector.shuffle %[[C]], %[[C]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: %[[L:.*]] = vector.extract
// CHECK: arith.addf %[[L]], %[[S]]

// A sum over outer dims lives on the stack.
// CHECK-LABEL: llvm.func @k2
// CHECK: llvm.alloca %{{.*}} x f32 {alignment = 64 : i64}

// Two passes over rows from a cache: the sum of the first row, then in one loop the sum of each row beside the results of
// the one before, then the results of the last; rows one by one where there are fewer.
// CHECK-LABEL: llvm.func @k3
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0{{.*}} step %c64
// CHECK: %[[LAST:.*]] = scf.for %{{.*}} = %{{.*}} to %arg3 step %c1{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32)
// CHECK: scf.for %{{.*}} = %c0{{.*}} step %c64
// CHECK: arith.subf %{{.*}} : vector<16xf32>
// CHECK: llvm.store %{{.*}} : vector<16xf32>
// CHECK: vector.shuffle
// CHECK: scf.yield %{{.*}} : f32
// CHECK: vector.broadcast %[[LAST]] : f32 to vector<16xf32>
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %arg2 to %arg3 step %c1
func.func @f(%x: tensor<8x83xf32>) -> (tensor<8x83xf32>, tensor<8xf32>, tensor<83xf32>, tensor<8x83xf32>) {
  %0 = kernel.cluster dims [8, 83] parallel 2
      ins(%a = %x at (d0, d1) -> (d0 * 83 + d1) : tensor<8x83xf32>)
      outs(at (d0, d1) -> (d0 * 83 + d1) : tensor<8x83xf32>) {
    %e = math.exp %a : f32
    kernel.yield %e : f32
  }
  %1 = kernel.cluster dims [8, 83] parallel 1
      ins(%a = %x at (d0, d1) -> (d0 * 83 + d1) : tensor<8x83xf32>) outs(at (d0, d1) -> (d0) : tensor<8xf32>) {
    %s = kernel.reduce <add> %a over [1] : f32
    kernel.yield %s : f32
  }
  %2 = kernel.cluster dims [8, 83] parallel 0
      ins(%a = %x at (d0, d1) -> (d0 * 83 + d1) : tensor<8x83xf32>) outs(at (d0, d1) -> (d1) : tensor<83xf32>) {
    %s = kernel.reduce <add> %a over [0] : f32
    kernel.yield %s : f32
  }
  %3 = kernel.cluster dims [8, 83] parallel 1
      ins(%a = %x at (d0, d1) -> (d0 * 83 + d1) : tensor<8x83xf32>)
      outs(at (d0, d1) -> (d0 * 83 + d1) : tensor<8x83xf32>) {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  return %0, %1, %2, %3 : tensor<8x83xf32>, tensor<8xf32>, tensor<83xf32>, tensor<8x83xf32>
}
