// What passes ask of ops, ops of another project answer (Mylib.td).

// RUN: sh -c 'spmd-opt %s --load-dialect-plugin=$SPMD_BIN/../lib/libSpmdTestMylib.so --split-input-file --spmd-infer-index-bounds --spmd-dynamic-batch' | FileCheck %s

// Row numbers are bounded by a scalar body, by what the op says of its result, and by what is moved.
// CHECK-LABEL: func.func @step(%{{.*}}: tensor<65x4xf32>
// CHECK: mylib.bucket %{{.*}} {count = 65
// CHECK-NOT: check_index
// CHECK: %[[MORE:.*]] = mylib.bucket %{{.*}} {count = 66
// CHECK: aten.check_index %[[MORE]] {high = 65
// CHECK: mylib.nearest
// CHECK: %[[BOTH:.*]] = mylib.beside
// CHECK-NOT: check_index
// CHECK: %[[NOT:.*]] = mylib.beside
// CHECK: aten.check_index %[[NOT]] {high = 65
// CHECK-NOT: check_index
// CHECK: return
func.func @step(%w: tensor<65x4xf32>, %x: tensor<3xi64>, %c: tensor<65xf32>, %f: tensor<3xf32>)
    -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %a = mylib.bucket %x {count = 65 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %ac = aten.check_index %a {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<3xi64>) -> tensor<3xi64>
  %0 = aten.embedding %w, %ac : (tensor<65x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %b = mylib.bucket %x {count = 66 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %bc = aten.check_index %b {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<3xi64>) -> tensor<3xi64>
  %1 = aten.embedding %w, %bc : (tensor<65x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %n = mylib.nearest %f, %c : (tensor<3xf32>, tensor<65xf32>) -> tensor<3xi64>
  %d = mylib.beside %a, %n {dim = 0 : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<6xi64>
  %dc = aten.check_index %d {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<6xi64>) -> tensor<6xi64>
  %2 = aten.embedding %w, %dc : (tensor<65x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  %e = mylib.beside %b, %n {dim = 0 : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<6xi64>
  %ec = aten.check_index %e {low = 0 : i64, high = 65 : i64, use = "embedding"} : (tensor<6xi64>) -> tensor<6xi64>
  %3 = aten.embedding %w, %ec : (tensor<65x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  return %0, %1, %2, %3 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Two batches side by side are rows of the batch still, of which those that are not there are in two places.
// CHECK: func.func @step(%[[X:.*]]: tensor<9x4xf32> {{.*}}, %{{.*}}: tensor<i64>
// CHECK: %[[BOTH:.*]] = mylib.beside %[[X]], %[[X]]
// CHECK: %[[MASKED:.*]] = aten.masked_fill.Scalar %[[BOTH]]
// CHECK: aten.sum.dim_IntList %[[MASKED]]
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<4xf32> {
    %b = mylib.beside %x, %x {dim = 0 : i64, spmd.segment = 0} : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<18x4xf32>
    %s = aten.sum.dim_IntList %b {dim = array<i64: 0>, spmd.segment = 0} : (tensor<18x4xf32>) -> tensor<4xf32>
    return %s : tensor<4xf32>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<4xf32> {
      %b = mylib.beside %x, %x {dim = 0 : i64, spmd.segment = 0} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
      %s = aten.sum.dim_IntList %b {dim = array<i64: 0>, spmd.segment = 0} : (tensor<16x4xf32>) -> tensor<4xf32>
      return %s : tensor<4xf32>
    }
  }
}
