// RUN: spmd-opt %s --split-input-file --spmd-dynamic-batch --verify-diagnostics -o - | FileCheck %s

// What adds rows up gets zeros, what takes the largest gets the least; a select where the value is made serves all uses,
// and what only moves rows needs no other. A number that the captures have in proportion to the rows is computed.
// CHECK: func.func @step(%[[X:.*]]: tensor<9x4xf32> {{.*}}, %[[W:.*]]: tensor<4x5xf32> {{.*}}, %[[ROWS:.*]]: tensor<i64>
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %w: tensor<4x5xf32> {spmd.arg = #spmd.constant<"w">},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>})
      -> (tensor<4x5xf32>, tensor<5xf32>, tensor<9x5xf32>, tensor<5xf32>) {
    // CHECK-DAG: %[[N:.*]] = aten._to_copy %[[ROWS]] {dtype = f64
    // CHECK-DAG: %[[PADDING:.*]] = aten.ge.Tensor %{{.*}}, %[[ROWS]] {{.*}} : (tensor<9xi64>, tensor<i64>) -> tensor<9xi1>
    // CHECK-DAG: %[[OWN:.*]] = aten.masked_fill.Scalar %[[X]], %{{.*}} {{.*}}value = 0.000000e+00 : f64}
    // CHECK: %[[H:.*]] = aten.mm %[[OWN]], %[[W]]
    // CHECK: aten.masked_fill.Scalar %[[H]], %{{.*}} {{.*}}value = 0xFFF0000000000000 : f64
    // CHECK: %[[E:.*]] = aten.exp
    // CHECK: %[[ZEROS:.*]] = aten.masked_fill.Scalar %[[E]], %{{.*}} {{.*}}value = 0.000000e+00 : f64
    // CHECK: %[[T:.*]] = aten.permute %[[OWN]]
    // CHECK-NOT: masked_fill
    // CHECK: aten.mm %[[T]], %[[ZEROS]]
    // CHECK: aten.amax
    // CHECK: %[[S:.*]] = aten.sum.dim_IntList %[[ZEROS]]
    // CHECK: aten.div.Tensor %[[S]], %{{.*}} : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
    %h = aten.mm %x, %w {spmd.segment = 0} : (tensor<9x4xf32>, tensor<4x5xf32>) -> tensor<9x5xf32>
    %e = aten.exp %h {spmd.segment = 0} : (tensor<9x5xf32>) -> tensor<9x5xf32>
    %t = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 0} : (tensor<9x4xf32>) -> tensor<4x9xf32>
    %d = aten.mm %t, %e {spmd.segment = 0} : (tensor<4x9xf32>, tensor<9x5xf32>) -> tensor<4x5xf32>
    %m = aten.amax %h {dim = array<i64: 0>, spmd.segment = 0} : (tensor<9x5xf32>) -> tensor<5xf32>
    %s = aten.sum.dim_IntList %e {dim = array<i64: 0>, spmd.segment = 0} : (tensor<9x5xf32>) -> tensor<5xf32>
    %a = aten.div.Scalar %s {other = 18 : i64, spmd.segment = 0} : (tensor<5xf32>) -> tensor<5xf32>
    return %d, %m, %e, %a : tensor<4x5xf32>, tensor<5xf32>, tensor<9x5xf32>, tensor<5xf32>
  }
  // CHECK-NOT: module @other_batch
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %w: tensor<4x5xf32> {spmd.arg = #spmd.constant<"w">},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>})
        -> (tensor<4x5xf32>, tensor<5xf32>, tensor<8x5xf32>, tensor<5xf32>) {
      %h = aten.mm %x, %w {spmd.segment = 0} : (tensor<8x4xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
      %e = aten.exp %h {spmd.segment = 0} : (tensor<8x5xf32>) -> tensor<8x5xf32>
      %t = aten.permute %x {dims = array<i64: 1, 0>, spmd.segment = 0} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %d = aten.mm %t, %e {spmd.segment = 0} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
      %m = aten.amax %h {dim = array<i64: 0>, spmd.segment = 0} : (tensor<8x5xf32>) -> tensor<5xf32>
      %s = aten.sum.dim_IntList %e {dim = array<i64: 0>, spmd.segment = 0} : (tensor<8x5xf32>) -> tensor<5xf32>
      %a = aten.div.Scalar %s {other = 16 : i64, spmd.segment = 0} : (tensor<5xf32>) -> tensor<5xf32>
      return %d, %m, %e, %a : tensor<4x5xf32>, tensor<5xf32>, tensor<8x5xf32>, tensor<5xf32>
    }
  }
}

// -----

// Zeros stay zeros where rows are moved alone; a mean divides by the rows there are, less one for a variance, and by the
// elements of a row where it is of each.
// CHECK: func.func @step(%[[X:.*]]: tensor<9x4xf32> {{.*}}, %[[ROWS:.*]]: tensor<i64>
// CHECK-DAG: %[[OWN:.*]] = aten.masked_fill.Scalar %[[X]], %{{.*}} {{.*}}value = 0.000000e+00
// CHECK-DAG: %[[N:.*]] = aten.mul.Scalar %{{.*}} {other = 4.000000e+00
// CHECK-DAG: %[[COUNT:.*]] = aten._to_copy %[[N]] {dtype = f32
// CHECK-DAG: %[[LESS:.*]] = aten.sub.Scalar %{{.*}} {{.*}}other = 1.000000e+00
// CHECK-DAG: %[[CLAMPED:.*]] = aten.maximum %[[LESS]]
// CHECK-DAG: %[[COUNT1:.*]] = aten._to_copy %[[CLAMPED]] {dtype = f32
// CHECK: %[[S:.*]] = aten.sum.dim_IntList %[[OWN]]
// CHECK: aten.div.Tensor %[[S]], %[[COUNT]]
// CHECK: %[[Q:.*]] = aten.sum.dim_IntList
// CHECK: aten.div.Tensor %[[Q]], %[[COUNT1]]
// CHECK: %[[E:.*]] = aten.exp %[[OWN]]
// CHECK: %[[E0:.*]] = aten.masked_fill.Scalar %[[E]]
// CHECK: %[[M:.*]] = aten.sum.dim_IntList %[[E0]]
// CHECK: aten.div.Tensor %[[M]], %[[COUNT]]
// CHECK: %[[R:.*]] = aten.sum.dim_IntList %[[OWN]] {dim = array<i64: 1>
// CHECK: aten.div.Scalar %[[R]] {other = 4
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>})
      -> (tensor<f32>, tensor<f32>, tensor<9xf32>) {
    %v, %a = aten.var_mean.correction %x {dim = array<i64: 0, 1>} : (tensor<9x4xf32>) -> (tensor<f32>, tensor<f32>)
    %e = aten.exp %x : (tensor<9x4xf32>) -> tensor<9x4xf32>
    %m = aten.mean.dim %e {dim = array<i64: 0, 1>} : (tensor<9x4xf32>) -> tensor<f32>
    %r = aten.mean.dim %x {dim = array<i64: 1>} : (tensor<9x4xf32>) -> tensor<9xf32>
    return %m, %v, %r : tensor<f32>, tensor<f32>, tensor<9xf32>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>})
        -> (tensor<f32>, tensor<f32>, tensor<8xf32>) {
      %v, %a = aten.var_mean.correction %x {dim = array<i64: 0, 1>} : (tensor<8x4xf32>) -> (tensor<f32>, tensor<f32>)
      %e = aten.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %m = aten.mean.dim %e {dim = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
      %r = aten.mean.dim %x {dim = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32>
      return %m, %v, %r : tensor<f32>, tensor<f32>, tensor<8xf32>
    }
  }
}

// -----

// A product of all rows with all: each of its two dimensions is the batch.
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<9x9xf32> {
    %t = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<9x4xf32>) -> tensor<4x9xf32>
    // expected-error @below {{needs all rows of the batch at once: operand 1 of type 'tensor<4x9xf32>' has them in dimension 1; compile each size for itself}}
    %p = aten.mm %x, %t : (tensor<9x4xf32>, tensor<4x9xf32>) -> tensor<9x9xf32>
    return %p : tensor<9x9xf32>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<8x8xf32> {
      %t = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %p = aten.mm %x, %t : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      return %p : tensor<8x8xf32>
    }
  }
}

// -----

// Rows less one: no number that is in proportion.
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<9x4xf32> {
    // expected-error @below {{has other = 8 : i64 with a batch of 9 rows and 7 : i64 with 8, which is no size, nor a factor that a program can compute from the rows}}
    %y = aten.mul.Scalar %x {other = 8 : i64} : (tensor<9x4xf32>) -> tensor<9x4xf32>
    return %y : tensor<9x4xf32>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<8x4xf32> {
      %y = aten.mul.Scalar %x {other = 7 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
      return %y : tensor<8x4xf32>
    }
  }
}

// -----

// Rows that begin elsewhere with another number of them.
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<9xi64> {
    // expected-error @below {{has start = -9 : i64 with a batch of 9 rows and -8 : i64 with 8}}
    %y = aten.arange.start_step {start = -9, end = 0} : () -> tensor<9xi64>
    return %y : tensor<9xi64>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<8xi64> {
      %y = aten.arange.start_step {start = -8, end = 0} : () -> tensor<8xi64>
      return %y : tensor<8xi64>
    }
  }
}

// -----

// State that has the rows of one batch.
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  // expected-error @below {{has argument 1, #spmd.constant<"queue"> of type 'tensor<9xf32>', whose shape depends on the batch otherwise than by its rows}}
  func.func @step(%x: tensor<9xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %q: tensor<9xf32> {spmd.arg = #spmd.constant<"queue">},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<9xf32> {
    %y = aten.add.Tensor %x, %q : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    return %y : tensor<9xf32>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %q: tensor<8xf32> {spmd.arg = #spmd.constant<"queue">},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<8xf32> {
      %y = aten.add.Tensor %x, %q : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %y : tensor<8xf32>
    }
  }
}

// -----

// What Python computes otherwise for one of the sizes.
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<9xf32> {
    // expected-error @below {{is computed with a batch of 9 rows, and 'aten.cos' in its place with 8}}
    %y = aten.exp %x : (tensor<9xf32>) -> tensor<9xf32>
    return %y : tensor<9xf32>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<8xf32> {
      %y = aten.cos %x : (tensor<8xf32>) -> tensor<8xf32>
      return %y : tensor<8xf32>
    }
  }
}

// -----

// The other capture is missing: nothing says what depends on the batch.
// expected-error @below {{has no capture of another size, other_batch/step.json; capture it again with dynamic_batch}}
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>}) -> tensor<9xf32> {
    return %x : tensor<9xf32>
  }
}

// -----

// Rows that are made of none: all alike, or numbered from the first. A number everywhere is computed as any other is.
// CHECK: func.func @step(%[[X:.*]]: tensor<9x4xf32> {{.*}}, %[[C:.*]]: tensor<1x4xf32> {{.*}}, %[[ROWS:.*]]: tensor<i64>
module attributes {spmd.dynamic_batch = {rows = "rows", size = 9}} {
  func.func @step(%x: tensor<9x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                  %c: tensor<1x4xf32> {spmd.arg = #spmd.constant<"c">},
                  %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>})
      -> (tensor<4xf32>, tensor<9xf32>, tensor<f32>) {
    // CHECK-DAG: %[[N:.*]] = aten._to_copy %[[ROWS]] {dtype = f64
    // CHECK-DAG: %[[N32:.*]] = aten._to_copy %[[N]] {dtype = f32
    // CHECK-DAG: %[[TWICE:.*]] = aten.mul.Scalar %[[N]] {other = 2.000000e+00
    // CHECK-DAG: %[[TWICE32:.*]] = aten._to_copy %[[TWICE]] {dtype = f32
    // CHECK: %[[E:.*]] = aten.expand %[[C]] {size = array<i64: 9, 4>
    // CHECK: %[[A:.*]] = aten.add.Tensor %[[X]], %[[E]]
    // CHECK: %[[OWN:.*]] = aten.masked_fill.Scalar %[[A]]
    // CHECK: %[[F:.*]] = aten.expand %[[N32]] {size = array<i64: 9>
    // CHECK: %[[P:.*]] = aten.arange.start_step
    // CHECK: %[[M:.*]] = aten.mul.Tensor %[[F]], %[[P]]
    // CHECK: %[[S:.*]] = aten.sum.dim_IntList %[[OWN]]
    // CHECK: return %[[S]], %[[M]], %[[TWICE32]]
    %e = aten.expand %c {size = array<i64: 9, 4>, spmd.segment = 0} : (tensor<1x4xf32>) -> tensor<9x4xf32>
    %a = aten.add.Tensor %x, %e {spmd.segment = 0} : (tensor<9x4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
    %f = aten.full {size = array<i64: 9>, fill_value = 9.0 : f64, spmd.segment = 0} : () -> tensor<9xf32>
    %p = aten.arange.start_step {start = 0, end = 9, spmd.segment = 0} : () -> tensor<9xf32>
    %m = aten.mul.Tensor %f, %p {spmd.segment = 0} : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %s = aten.sum.dim_IntList %a {dim = array<i64: 0>, spmd.segment = 0} : (tensor<9x4xf32>) -> tensor<4xf32>
    %t = aten.scalar_tensor {s = 18.0 : f64, spmd.segment = 0} : () -> tensor<f32>
    return %s, %m, %t : tensor<4xf32>, tensor<9xf32>, tensor<f32>
  }
  module @other_batch attributes {spmd.dynamic_batch = {rows = "rows", size = 8}} {
    func.func @step(%x: tensor<8x4xf32> {spmd.arg = #spmd.batch<"x", dim = 0>},
                    %c: tensor<1x4xf32> {spmd.arg = #spmd.constant<"c">},
                    %rows: tensor<i64> {spmd.arg = #spmd.batch<"rows", dim = none>})
        -> (tensor<4xf32>, tensor<8xf32>, tensor<f32>) {
      %e = aten.expand %c {size = array<i64: 8, 4>, spmd.segment = 0} : (tensor<1x4xf32>) -> tensor<8x4xf32>
      %a = aten.add.Tensor %x, %e {spmd.segment = 0} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      %f = aten.full {size = array<i64: 8>, fill_value = 8.0 : f64, spmd.segment = 0} : () -> tensor<8xf32>
      %p = aten.arange.start_step {start = 0, end = 8, spmd.segment = 0} : () -> tensor<8xf32>
      %m = aten.mul.Tensor %f, %p {spmd.segment = 0} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %s = aten.sum.dim_IntList %a {dim = array<i64: 0>, spmd.segment = 0} : (tensor<8x4xf32>) -> tensor<4xf32>
      %t = aten.scalar_tensor {s = 16.0 : f64, spmd.segment = 0} : () -> tensor<f32>
      return %s, %m, %t : tensor<4xf32>, tensor<8xf32>, tensor<f32>
    }
  }
}
