// RUN: spmd-opt %s -split-input-file -spmd-infer-index-bounds -spmd-unsort-rows | FileCheck %s

// Tokens go to two experts each, as transformers writes it: sorted by expert, multiplied, weighted, put back, summed; and
// the gradients of all that. Nothing of the sort stays, and rows that are repeated are views.
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32> {{.*}}, %[[W:.*]]: tensor<3x8x5xf32> {{.*}}, %[[S:.*]]: tensor<4x3xf32> {{.*}}, %[[G:.*]]: tensor<8x5xf32>
// CHECK-NOT: sort.stable %{{.*}} {dim = 0
// CHECK: %[[V:.*]], %[[I:.*]] = aten.sort.stable %[[S]]
// CHECK: %[[E:.*]] = aten.view %{{.*}} {size = array<i64: 8>} : (tensor<4x2xi64>) -> tensor<8xi64>
// CHECK-NOT: sort.stable
// CHECK-NOT: gather_rows
// CHECK-NOT: scatter_rows
// CHECK: %[[R:.*]] = aten.view %{{.*}} {size = array<i64: 8, 8>} : (tensor<4x2x8xf32>) -> tensor<8x8xf32>
// CHECK: %[[Y:.*]] = aten.grouped_mm %[[R]], %[[W]], %[[E]]
// CHECK: aten.relu %[[Y]]
// CHECK: %[[DX:.*]] = aten.grouped_mm %{{.*}}, %{{.*}}, %[[E]]
// CHECK: %[[DW:.*]] = aten.grouped_outer %[[R]], %{{.*}}, %[[E]] {num_groups = 3 : i64}
// CHECK: aten.view %[[DX]] {size = array<i64: 4, 2, 8>}
// CHECK: %[[SUM:.*]] = aten.sum.dim_IntList %{{.*}} {dim = array<i64: 1>
// CHECK: return %{{.*}}, %[[SUM]], %[[DW]]
func.func @step(%x: tensor<4x8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %w: tensor<3x8x5xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %s: tensor<4x3xf32> {spmd.arg = #spmd.batch<"s", dim = 0>},
                %g: tensor<8x5xf32> {spmd.arg = #spmd.batch<"g", dim = 0>})
    -> (tensor<8x5xf32> {spmd.result = #spmd.output<"0">}, tensor<4x8xf32> {spmd.result = #spmd.output<"1">},
        tensor<3x8x5xf32> {spmd.result = #spmd.output<"2">}) {
  %tv, %ti = aten.sort.stable %s {dim = 1 : i64, descending = true} : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
  %top = aten.slice.Tensor %ti {dim = 1 : i64, start = 0 : i64, end = 2 : i64} : (tensor<4x3xi64>) -> tensor<4x2xi64>
  %e = aten.view %top {size = array<i64: 8>} : (tensor<4x2xi64>) -> tensor<8xi64>
  %v, %p = aten.sort.stable %e {dim = 0 : i64} : (tensor<8xi64>) -> (tensor<8xi64>, tensor<8xi64>)
  // Groups by their ends.
  %n3 = aten.arange.start_step {start = 0 : i64, end = 3 : i64, step = 1 : i64} : () -> tensor<3xi64>
  %col = aten.view %n3 {size = array<i64: 3, 1>} : (tensor<3xi64>) -> tensor<3x1xi64>
  %line = aten.view %v {size = array<i64: 1, 8>} : (tensor<8xi64>) -> tensor<1x8xi64>
  %is = aten.eq.Tensor %col, %line : (tensor<3x1xi64>, tensor<1x8xi64>) -> tensor<3x8xi1>
  %counts = aten.sum.dim_IntList %is {dim = array<i64: 1>, keepdim = false, dtype = f32} : (tensor<3x8xi1>) -> tensor<3xf32>
  %icounts = aten._to_copy %counts {dtype = i32} : (tensor<3xf32>) -> tensor<3xi32>
  %ends = aten.cumsum %icounts {dim = 0 : i64} : (tensor<3xi32>) -> tensor<3xi32>
  %n8 = aten.arange.start_step {start = 0 : i64, end = 8 : i64, step = 1 : i64} : () -> tensor<8xi64>
  %rows = aten.unsqueeze %n8 {dim = 1 : i64} : (tensor<8xi64>) -> tensor<8x1xi64>
  %past = aten.le.Tensor %ends, %rows : (tensor<3xi32>, tensor<8x1xi64>) -> tensor<8x3xi1>
  %groups = aten.sum.dim_IntList %past {dim = array<i64: 1>, keepdim = false, dtype = i64} : (tensor<8x3xi1>) -> tensor<8xi64>
  // Rows by expert.
  %two = aten.scalar_tensor {s = 2 : i64} : () -> tensor<i64>
  %t = aten.floor_divide %p, %two : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %xs = aten.gather_rows %x, %t : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %y = aten.grouped_mm %xs, %w, %groups : (tensor<8x8xf32>, tensor<3x8x5xf32>, tensor<8xi64>) -> tensor<8x5xf32>
  %a = aten.relu %y : (tensor<8x5xf32>) -> tensor<8x5xf32>
  // And back, numbers below zero counted from the end.
  %i = aten.scatter_rows %p, %n8 {rows = 8 : i64, reduce = "set"} : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
  %below = aten.lt.Scalar %i {other = 0 : i64} : (tensor<8xi64>) -> tensor<8xi1>
  %more = aten.add.Scalar %i {other = 8 : i64} : (tensor<8xi64>) -> tensor<8xi64>
  %j = aten.where.self %below, %more, %i : (tensor<8xi1>, tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
  %jc = aten.check_index %j {low = 0 : i64, high = 8 : i64, use = "index"} : (tensor<8xi64>) -> tensor<8xi64>
  %r = aten.gather_rows %a, %jc : (tensor<8x5xf32>, tensor<8xi64>) -> tensor<8x5xf32>
  // Gradients.
  %ga = aten.scatter_rows %jc, %g {rows = 8 : i64, reduce = "sum"} : (tensor<8xi64>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %gy = aten.mul.Tensor %ga, %a : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %wt = aten.permute %w {dims = array<i64: 0, 2, 1>} : (tensor<3x8x5xf32>) -> tensor<3x5x8xf32>
  %gxs = aten.grouped_mm %gy, %wt, %groups : (tensor<8x5xf32>, tensor<3x5x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %gw = aten.grouped_outer %xs, %gy, %groups {num_groups = 3 : i64} : (tensor<8x8xf32>, tensor<8x5xf32>, tensor<8xi64>) -> tensor<3x8x5xf32>
  %gx = aten.scatter_rows %t, %gxs {rows = 4 : i64, reduce = "sum"} : (tensor<8xi64>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %r, %gx, %gw : tensor<8x5xf32>, tensor<4x8xf32>, tensor<3x8x5xf32>
}

// -----

// What is returned is sorted: computing it twice is not better.
// CHECK-LABEL: func.func @step
// CHECK: %[[V:.*]], %[[P:.*]] = aten.sort.stable
// CHECK: %[[S:.*]] = aten.gather_rows %{{.*}}, %[[P]]
// CHECK: %[[Y:.*]] = aten.exp %[[S]]
// CHECK: %[[T:.*]] = aten.sum.dim_IntList %[[Y]]
// CHECK: return %[[Y]], %[[T]]
func.func @step(%x: tensor<4x8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %e: tensor<4xi64> {spmd.arg = #spmd.batch<"e", dim = 0>})
    -> (tensor<4x8xf32> {spmd.result = #spmd.output<"0">}, tensor<8xf32> {spmd.result = #spmd.output<"1">}) {
  %v, %p = aten.sort.stable %e {dim = 0 : i64} : (tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>)
  %s = aten.gather_rows %x, %p : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %y = aten.exp %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = aten.sum.dim_IntList %y {dim = array<i64: 0>, keepdim = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  return %y, %t : tensor<4x8xf32>, tensor<8xf32>
}

// -----

// Sorted numbers that may lie outside of the groups are not the groups; and a scan over sorted rows needs their order.
// CHECK-LABEL: func.func @step
// CHECK: %[[V:.*]], %[[P:.*]] = aten.sort.stable
// CHECK: %[[GROUPS:.*]] = aten.sum.dim_IntList {{.*}} : (tensor<4x3xi1>) -> tensor<4xi64>
// CHECK: %[[S:.*]] = aten.gather_rows %{{.*}}, %[[P]]
// CHECK: aten.grouped_mm %[[S]], %{{.*}}, %[[GROUPS]]
// CHECK: aten.cumsum %[[S]]
func.func @step(%x: tensor<4x8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %w: tensor<3x8x5xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %e: tensor<4xi64> {spmd.arg = #spmd.batch<"e", dim = 0>})
    -> (tensor<4x5xf32> {spmd.result = #spmd.output<"0">}, tensor<8xf32> {spmd.result = #spmd.output<"1">}) {
  %v, %p = aten.sort.stable %e {dim = 0 : i64} : (tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>)
  %n3 = aten.arange.start_step {start = 0 : i64, end = 3 : i64, step = 1 : i64} : () -> tensor<3xi64>
  %col = aten.view %n3 {size = array<i64: 3, 1>} : (tensor<3xi64>) -> tensor<3x1xi64>
  %line = aten.view %v {size = array<i64: 1, 4>} : (tensor<4xi64>) -> tensor<1x4xi64>
  %is = aten.eq.Tensor %col, %line : (tensor<3x1xi64>, tensor<1x4xi64>) -> tensor<3x4xi1>
  %counts = aten.sum.dim_IntList %is {dim = array<i64: 1>, keepdim = false, dtype = i64} : (tensor<3x4xi1>) -> tensor<3xi64>
  %ends = aten.cumsum %counts {dim = 0 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %n4 = aten.arange.start_step {start = 0 : i64, end = 4 : i64, step = 1 : i64} : () -> tensor<4xi64>
  %rows = aten.unsqueeze %n4 {dim = 1 : i64} : (tensor<4xi64>) -> tensor<4x1xi64>
  %past = aten.le.Tensor %ends, %rows : (tensor<3xi64>, tensor<4x1xi64>) -> tensor<4x3xi1>
  %groups = aten.sum.dim_IntList %past {dim = array<i64: 1>, keepdim = false, dtype = i64} : (tensor<4x3xi1>) -> tensor<4xi64>
  %s = aten.gather_rows %x, %p : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %y = aten.grouped_mm %s, %w, %groups : (tensor<4x8xf32>, tensor<3x8x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  %c = aten.cumsum %s {dim = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = aten.sum.dim_IntList %c {dim = array<i64: 0>, keepdim = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  return %y, %t : tensor<4x5xf32>, tensor<8xf32>
}

// -----

// Positions among four are not all of three groups.
// CHECK-LABEL: func.func @step
// CHECK: aten.sort.stable %{{.*}} {descending = true, dim = 1
// CHECK: %[[V:.*]], %[[P:.*]] = aten.sort.stable
// CHECK: %[[GROUPS:.*]] = aten.sum.dim_IntList {{.*}} : (tensor<4x3xi1>) -> tensor<4xi64>
// CHECK: %[[S:.*]] = aten.gather_rows %{{.*}}, %[[P]]
// CHECK: aten.grouped_mm %[[S]], %{{.*}}, %[[GROUPS]]
// CHECK: aten.cumsum %[[S]]
func.func @step(%x: tensor<4x8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %w: tensor<3x8x5xf32> {spmd.arg = #spmd.param<"w", trainable>},
                %scores: tensor<4x4xf32> {spmd.arg = #spmd.batch<"scores", dim = 0>})
    -> (tensor<4x5xf32> {spmd.result = #spmd.output<"0">}, tensor<8xf32> {spmd.result = #spmd.output<"1">}) {
  %tv, %ti = aten.sort.stable %scores {dim = 1 : i64, descending = true} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xi64>)
  %top = aten.slice.Tensor %ti {dim = 1 : i64, start = 0 : i64, end = 1 : i64} : (tensor<4x4xi64>) -> tensor<4x1xi64>
  %e = aten.view %top {size = array<i64: 4>} : (tensor<4x1xi64>) -> tensor<4xi64>
  %v, %p = aten.sort.stable %e {dim = 0 : i64} : (tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>)
  %n3 = aten.arange.start_step {start = 0 : i64, end = 3 : i64, step = 1 : i64} : () -> tensor<3xi64>
  %col = aten.view %n3 {size = array<i64: 3, 1>} : (tensor<3xi64>) -> tensor<3x1xi64>
  %line = aten.view %v {size = array<i64: 1, 4>} : (tensor<4xi64>) -> tensor<1x4xi64>
  %is = aten.eq.Tensor %col, %line : (tensor<3x1xi64>, tensor<1x4xi64>) -> tensor<3x4xi1>
  %counts = aten.sum.dim_IntList %is {dim = array<i64: 1>, keepdim = false, dtype = i64} : (tensor<3x4xi1>) -> tensor<3xi64>
  %ends = aten.cumsum %counts {dim = 0 : i64} : (tensor<3xi64>) -> tensor<3xi64>
  %n4 = aten.arange.start_step {start = 0 : i64, end = 4 : i64, step = 1 : i64} : () -> tensor<4xi64>
  %rows = aten.unsqueeze %n4 {dim = 1 : i64} : (tensor<4xi64>) -> tensor<4x1xi64>
  %past = aten.le.Tensor %ends, %rows : (tensor<3xi64>, tensor<4x1xi64>) -> tensor<4x3xi1>
  %groups = aten.sum.dim_IntList %past {dim = array<i64: 1>, keepdim = false, dtype = i64} : (tensor<4x3xi1>) -> tensor<4xi64>
  %s = aten.gather_rows %x, %p : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %y = aten.grouped_mm %s, %w, %groups : (tensor<4x8xf32>, tensor<3x8x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  %c = aten.cumsum %s {dim = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = aten.sum.dim_IntList %c {dim = array<i64: 0>, keepdim = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  return %y, %t : tensor<4x5xf32>, tensor<8xf32>
}

// -----

// Row numbers are known without a list of them: the same for any number of rows.
// CHECK-LABEL: func.func @step
// CHECK-NOT: sort.stable
// CHECK-NOT: gather_rows
// CHECK: %[[Y:.*]] = aten.exp %{{.*}} : (tensor<34359738368x8xf32>)
// CHECK: return %[[Y]]
func.func @step(%x: tensor<17179869184x8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                %e: tensor<34359738368xi64> {spmd.arg = #spmd.batch<"e", dim = 0>})
    -> (tensor<34359738368x8xf32> {spmd.result = #spmd.output<"0">}) {
  %v, %p = aten.sort.stable %e {dim = 0 : i64} : (tensor<34359738368xi64>) -> (tensor<34359738368xi64>, tensor<34359738368xi64>)
  %two = aten.scalar_tensor {s = 2 : i64} : () -> tensor<i64>
  %t = aten.floor_divide %p, %two : (tensor<34359738368xi64>, tensor<i64>) -> tensor<34359738368xi64>
  %xs = aten.gather_rows %x, %t : (tensor<17179869184x8xf32>, tensor<34359738368xi64>) -> tensor<34359738368x8xf32>
  %y = aten.exp %xs : (tensor<34359738368x8xf32>) -> tensor<34359738368x8xf32>
  %n = aten.arange.start_step {start = 0 : i64, end = 34359738368 : i64, step = 1 : i64} : () -> tensor<34359738368xi64>
  %i = aten.scatter_rows %p, %n {rows = 34359738368 : i64, reduce = "set"} : (tensor<34359738368xi64>, tensor<34359738368xi64>) -> tensor<34359738368xi64>
  %below = aten.lt.Scalar %i {other = 0 : i64} : (tensor<34359738368xi64>) -> tensor<34359738368xi1>
  %more = aten.add.Scalar %i {other = 34359738368 : i64} : (tensor<34359738368xi64>) -> tensor<34359738368xi64>
  %j = aten.where.self %below, %more, %i : (tensor<34359738368xi1>, tensor<34359738368xi64>, tensor<34359738368xi64>) -> tensor<34359738368xi64>
  %r = aten.gather_rows %y, %j : (tensor<34359738368x8xf32>, tensor<34359738368xi64>) -> tensor<34359738368x8xf32>
  return %r : tensor<34359738368x8xf32>
}
