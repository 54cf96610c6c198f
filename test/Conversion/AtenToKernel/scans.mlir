// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

// A scan is a reduction per element over the elements up to it; the operand is read in place, nothing of n x n exists.

// CHECK-LABEL: func.func @cumsum
// CHECK:         kernel.cluster dims [8, 16, 16]
// CHECK-NEXT:        ins(%[[X:.*]] = %{{.*}} at (d0, d1, d2) -> (d0 * 16 + d2) : tensor<8x16xf32>)
// CHECK-NEXT:        outs(at (d0, d1, d2) -> (d0 * 16 + d1) : tensor<8x16xf32>)
// CHECK:           %[[UPTO:.*]] = arith.cmpi sge
// CHECK:           %[[KEPT:.*]] = arith.select %[[UPTO]], %[[X]], %{{.*}}
// CHECK:           kernel.reduce <add> %[[KEPT]] over [2] : f32
func.func @cumsum(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = aten.cumsum %x {dim = 1 : i64} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// The place of a maximum is the smallest among those that have it.
// CHECK-LABEL: func.func @max
// CHECK:           %[[MAX:.*]] = kernel.reduce <max> %{{.*}} over [1] : f32
// CHECK:           kernel.reduce <min> %{{.*}} over [1] : i64
func.func @max(%x: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8xi64>) {
  %0, %1 = aten.max.dim %x {dim = 1 : i64} : (tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8xi64>)
  return %0, %1 : tensor<8xf32>, tensor<8xi64>
}

// CHECK-LABEL: func.func @prod
// CHECK:           kernel.reduce <mul> %{{.*}} over [1] : f32
func.func @prod(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %0 = aten.prod.dim_int %x {dim = 1 : i64} : (tensor<8x16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
