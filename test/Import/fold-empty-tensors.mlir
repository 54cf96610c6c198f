// RUN: spmd-opt %s -spmd-fold-empty-tensors | FileCheck %s
// RUN: spmd-opt %s -spmd-fold-empty-tensors | FileCheck %s --check-prefix=EMPTY
// RUN: spmd-opt %s -spmd-fold-empty-tensors -o %t.mlir
// RUN: spmd-interpret %t.mlir --compare=%s

// What has elements without the empty operand; nothing is left that has none.
// EMPTY: func.func @step
// EMPTY-NOT: x0x
// EMPTY-NOT: <0x
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x3xf64>
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<3xf64>
// CHECK: %[[SUM:.*]] = aten.full {{ *}}{fill_value = 0.000000e+00 : f64, size = array<i64: 3>}
// CHECK: %[[PRODUCT:.*]] = aten.full {{ *}}{fill_value = 1.000000e+00 : f64, size = array<i64: 3>}
// CHECK: %[[MM:.*]] = aten.full {{ *}}{fill_value = 0.000000e+00 : f64, size = array<i64: 4, 2>}
// CHECK: %[[BIAS:.*]] = aten.expand %[[B]] {size = array<i64: 4, 3>}
// CHECK: %[[SCALED:.*]] = aten.mul.Scalar %[[BIAS]] {other = 5.000000e-01 : f64}
// CHECK: %[[CAT:.*]] = aten.cat %[[X]], %[[X]]
// CHECK: %[[PARTS:.*]]:2 = aten.split_with_sizes %[[X]] {dim = 0 : i64, split_sizes = array<i64: 1, 3>}
// CHECK: return %[[SUM]], %[[PRODUCT]], %[[MM]], %[[SCALED]], %[[X]], %[[CAT]], %[[PARTS]]#0, %[[PARTS]]#1 :
func.func @step(%x: tensor<4x3xf64> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %b: tensor<3xf64> {spmd.arg = #spmd.batch<"b", dim = none>})
    -> (tensor<3xf64> {spmd.result = #spmd.output<"0">},
        tensor<3xf64> {spmd.result = #spmd.output<"1">},
        tensor<4x2xf64> {spmd.result = #spmd.output<"2">},
        tensor<4x3xf64> {spmd.result = #spmd.output<"3">},
        tensor<4x3xf64> {spmd.result = #spmd.output<"4">},
        tensor<8x3xf64> {spmd.result = #spmd.output<"5">},
        tensor<1x3xf64> {spmd.result = #spmd.output<"6">},
        tensor<3x3xf64> {spmd.result = #spmd.output<"7">}) {
  %e0 = aten.slice.Tensor %x {dim = 0 : i64, start = 0 : i64, end = 0 : i64, step = 1 : i64} : (tensor<4x3xf64>) -> tensor<0x3xf64>
  %e = aten.exp %e0 : (tensor<0x3xf64>) -> tensor<0x3xf64>
  %0 = aten.sum.dim_IntList %e {dim = array<i64: 0>, keepdim = false} : (tensor<0x3xf64>) -> tensor<3xf64>
  %1 = aten.prod.dim_int %e {dim = 0 : i64, keepdim = false} : (tensor<0x3xf64>) -> tensor<3xf64>
  %l = aten.full {fill_value = 1.0 : f64, size = array<i64: 4, 0>} : () -> tensor<4x0xf64>
  %r = aten.full {fill_value = 1.0 : f64, size = array<i64: 0, 2>} : () -> tensor<0x2xf64>
  %2 = aten.mm %l, %r : (tensor<4x0xf64>, tensor<0x2xf64>) -> tensor<4x2xf64>
  %3 = aten.addmm %b, %l, %e {beta = 0.5 : f64, alpha = 1.0 : f64} : (tensor<3xf64>, tensor<4x0xf64>, tensor<0x3xf64>) -> tensor<4x3xf64>
  %4 = aten.slice_scatter %x, %e {dim = 0 : i64, start = 2 : i64, end = 2 : i64, step = 1 : i64} : (tensor<4x3xf64>, tensor<0x3xf64>) -> tensor<4x3xf64>
  %5 = aten.cat %x, %e, %x {dim = 0 : i64} : (tensor<4x3xf64>, tensor<0x3xf64>, tensor<4x3xf64>) -> tensor<8x3xf64>
  %6:3 = aten.split_with_sizes %x {dim = 0 : i64, split_sizes = array<i64: 1, 0, 3>} : (tensor<4x3xf64>) -> (tensor<1x3xf64>, tensor<0x3xf64>, tensor<3x3xf64>)
  return %0, %1, %2, %3, %4, %5, %6#0, %6#2
      : tensor<3xf64>, tensor<3xf64>, tensor<4x2xf64>, tensor<4x3xf64>, tensor<4x3xf64>, tensor<8x3xf64>, tensor<1x3xf64>, tensor<3x3xf64>
}
