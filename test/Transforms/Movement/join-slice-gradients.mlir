// RUN: spmd-opt %s --spmd-join-slice-gradients --split-input-file | FileCheck %s

// Three slices, not in order, between other addends, which stay in theirs.
// CHECK-LABEL: @three
// CHECK-SAME: %[[G:.*]]: tensor<4x10xf32>, %[[X:.*]]: tensor<4x10xf32>
// CHECK-DAG: %[[A:.*]] = aten.neg
// CHECK-DAG: %[[B:.*]] = aten.slice.Tensor %[[G]] {{.*}}start = 3
// CHECK-DAG: %[[C:.*]] = aten.slice.Tensor %[[G]] {{.*}}start = 8
// CHECK-NOT: slice_backward
// CHECK: %[[CAT:.*]] = aten.cat %[[A]], %[[B]], %[[C]] {dim = 1 : i64, spmd.segment = 1 : i64}
// CHECK-NEXT: %[[FIRST:.*]] = aten.add.Tensor %[[X]], %[[CAT]]
// CHECK-NEXT: %[[LAST:.*]] = aten.add.Tensor %[[FIRST]], %[[X]]
// CHECK-NEXT: return %[[LAST]]
func.func @three(%g: tensor<4x10xf32>, %x: tensor<4x10xf32>) -> tensor<4x10xf32> {
  %a0 = aten.slice.Tensor %g {dim = 1 : i64, end = 3 : i64, start = 0 : i64} : (tensor<4x10xf32>) -> tensor<4x3xf32>
  %b = aten.slice.Tensor %g {dim = 1 : i64, end = 8 : i64, start = 3 : i64} : (tensor<4x10xf32>) -> tensor<4x5xf32>
  %c = aten.slice.Tensor %g {dim = 1 : i64, end = 10 : i64, start = 8 : i64} : (tensor<4x10xf32>) -> tensor<4x2xf32>
  %a = aten.neg %a0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %0 = aten.slice_backward %b {dim = 1 : i64, end = 8 : i64, input_sizes = array<i64: 4, 10>, start = 3 : i64, step = 1 : i64} : (tensor<4x5xf32>) -> tensor<4x10xf32>
  %1 = aten.slice_backward %a {dim = 1 : i64, end = 3 : i64, input_sizes = array<i64: 4, 10>, start = 0 : i64, step = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x10xf32>
  %2 = aten.slice_backward %c {dim = 1 : i64, end = 10 : i64, input_sizes = array<i64: 4, 10>, start = 8 : i64, step = 1 : i64} : (tensor<4x2xf32>) -> tensor<4x10xf32>
  %3 = aten.add.Tensor %x, %0 {spmd.segment = 1 : i64} : (tensor<4x10xf32>, tensor<4x10xf32>) -> tensor<4x10xf32>
  %4 = aten.add.Tensor %3, %1 {spmd.segment = 1 : i64} : (tensor<4x10xf32>, tensor<4x10xf32>) -> tensor<4x10xf32>
  %5 = aten.add.Tensor %4, %2 {spmd.segment = 1 : i64} : (tensor<4x10xf32>, tensor<4x10xf32>) -> tensor<4x10xf32>
  %6 = aten.add.Tensor %5, %x {spmd.segment = 1 : i64} : (tensor<4x10xf32>, tensor<4x10xf32>) -> tensor<4x10xf32>
  return %6 : tensor<4x10xf32>
}

// -----

// Slices that overlap, leave a gap, or are added with a factor are what they were; so is a sum that others read.
// CHECK-LABEL: @others
// CHECK-NOT: aten.cat
// CHECK: aten.neg
// CHECK-COUNT-4: aten.slice_backward
// CHECK-COUNT-5: aten.add.Tensor
// CHECK-NOT: aten.cat
func.func @others(%b: tensor<4x5xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %n = aten.neg %b : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %a = aten.slice.Tensor %n {dim = 1 : i64, end = 3 : i64, start = 0 : i64} : (tensor<4x5xf32>) -> tensor<4x3xf32>
  %0 = aten.slice_backward %a {dim = 1 : i64, end = 3 : i64, input_sizes = array<i64: 4, 8>, start = 0 : i64, step = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x8xf32>
  %1 = aten.slice_backward %b {dim = 1 : i64, end = 7 : i64, input_sizes = array<i64: 4, 8>, start = 2 : i64, step = 1 : i64} : (tensor<4x5xf32>) -> tensor<4x8xf32>
  %2 = aten.slice_backward %a {dim = 1 : i64, end = 6 : i64, input_sizes = array<i64: 4, 8>, start = 3 : i64, step = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x8xf32>
  %3 = aten.slice_backward %b {dim = 1 : i64, end = 8 : i64, input_sizes = array<i64: 4, 8>, start = 3 : i64, step = 1 : i64} : (tensor<4x5xf32>) -> tensor<4x8xf32>
  %overlap = aten.add.Tensor %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %gap = aten.add.Tensor %0, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %scaled = aten.add.Tensor %0, %3 {alpha = 2 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %read = aten.add.Tensor %overlap, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %more = aten.add.Tensor %read, %3 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %overlap, %gap, %scaled, %read, %more : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Two of the slices overlap and nothing covers row 1, though there are as many rows as the tensor has.
// CHECK-LABEL: @overlapAndGap
// CHECK-NOT: aten.cat
// CHECK-COUNT-2: aten.add.Tensor
func.func @overlapAndGap(%g: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %a = aten.slice.Tensor %g {dim = 0 : i64, end = 1 : i64, start = 0 : i64} : (tensor<4x5xf32>) -> tensor<1x5xf32>
  %b = aten.slice.Tensor %g {dim = 0 : i64, end = 4 : i64, start = 2 : i64} : (tensor<4x5xf32>) -> tensor<2x5xf32>
  %0 = aten.slice_backward %a {dim = 0 : i64, end = 1 : i64, input_sizes = array<i64: 4, 5>, start = 0 : i64, step = 1 : i64} : (tensor<1x5xf32>) -> tensor<4x5xf32>
  %1 = aten.slice_backward %b {dim = 0 : i64, end = 4 : i64, input_sizes = array<i64: 4, 5>, start = 2 : i64, step = 1 : i64} : (tensor<2x5xf32>) -> tensor<4x5xf32>
  %2 = aten.add.Tensor %0, %0 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %3 = aten.add.Tensor %2, %1 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  return %3 : tensor<4x5xf32>
}

// -----

// Every second row has gradients between those of the others.
// CHECK-LABEL: @everySecondRow
// CHECK-NOT: aten.cat
// CHECK: aten.add.Tensor
func.func @everySecondRow(%g: tensor<4x5xf32>) -> tensor<8x5xf32> {
  %0 = aten.slice_backward %g {dim = 0 : i64, end = 8 : i64, input_sizes = array<i64: 8, 5>, start = 0 : i64, step = 2 : i64} : (tensor<4x5xf32>) -> tensor<8x5xf32>
  %1 = aten.slice_backward %g {dim = 0 : i64, end = 8 : i64, input_sizes = array<i64: 8, 5>, start = 4 : i64, step = 1 : i64} : (tensor<4x5xf32>) -> tensor<8x5xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  return %2 : tensor<8x5xf32>
}

// -----

// A cat of different tensors would be a copy; the sum is fused with what makes and what uses it.
// CHECK-LABEL: @different
// CHECK-NOT: aten.cat
// CHECK: aten.add.Tensor
func.func @different(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) -> tensor<4x8xf32> {
  %0 = aten.slice_backward %a {dim = 1 : i64, end = 3 : i64, input_sizes = array<i64: 4, 8>, start = 0 : i64, step = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x8xf32>
  %1 = aten.slice_backward %b {dim = 1 : i64, end = 8 : i64, input_sizes = array<i64: 4, 8>, start = 3 : i64, step = 1 : i64} : (tensor<4x5xf32>) -> tensor<4x8xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
