// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s
// RUN: spmd-opt --spmd-convert-aten-to-kernel=fuse=false %s | FileCheck %s --check-prefix=ALONE
// RUN: spmd-opt --spmd-convert-aten-to-kernel %s -o %t.mlir
// RUN: spmd-interpret %t.mlir --compare=%s

// Light ops before a product are one cluster, those after it another; the transposition is the product's own. Alone each
// light op is a cluster.
// CHECK-LABEL: func.func @step
// CHECK: %[[Z:.*]] = kernel.cluster dims [4, 8]
// CHECK: arith.mulf
// CHECK: arith.negf
// CHECK: %[[P:.*]] = kernel.gemm m 4 n 6 k 8 a(%[[Z]]{{.*}} b(%{{.*}} trans
// CHECK: kernel.cluster dims [24]
// CHECK: math.exp
// CHECK-NOT: kernel.cluster
// CHECK-NOT: aten.
// CHECK: return
// ALONE: kernel.cluster
// ALONE: arith.mulf
// ALONE: kernel.cluster
// ALONE: arith.negf
// ALONE: kernel.gemm
// ALONE: kernel.cluster
// ALONE: math.exp
func.func @step(%a: tensor<4x8xf64> {spmd.arg = #spmd.batch<"a", dim = 0>}, %b: tensor<8xf64> {spmd.arg = #spmd.batch<"b", dim = none>},
                %w: tensor<6x8xf64> {spmd.arg = #spmd.batch<"w", dim = none>})
    -> (tensor<4x6xf64> {spmd.result = #spmd.output<"0">}) {
  %y = aten.mul.Tensor %a, %b : (tensor<4x8xf64>, tensor<8xf64>) -> tensor<4x8xf64>
  %z = aten.neg %y : (tensor<4x8xf64>) -> tensor<4x8xf64>
  %t = aten.permute %w {dims = array<i64: 1, 0>} : (tensor<6x8xf64>) -> tensor<8x6xf64>
  %p = aten.mm %z, %t : (tensor<4x8xf64>, tensor<8x6xf64>) -> tensor<4x6xf64>
  %e = aten.exp %p : (tensor<4x6xf64>) -> tensor<4x6xf64>
  return %e : tensor<4x6xf64>
}
