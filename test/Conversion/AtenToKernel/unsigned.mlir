// Bytes are numbers from 0 to 255: widened where a body reads them, cut where it yields them, and compared as such.
// RUN: spmd-opt --spmd-convert-aten-to-kernel %s | FileCheck %s

// CHECK-LABEL: @images
// CHECK: kernel.cluster
// CHECK-NEXT: ins(%[[BYTE:.*]] = %arg0 at {{.*}} : tensor<4x6xui8>)
// CHECK: %[[WIDE:.*]] = arith.extui %[[BYTE]] : i8 to i16
// CHECK: %[[REAL:.*]] = arith.sitofp %[[WIDE]] : i16 to f32
// CHECK: arith.divf %[[REAL]]
func.func @images(%x: tensor<4x6xui8>) -> tensor<4x6xf32> {
  %0 = aten._to_copy %x {dtype = f32} : (tensor<4x6xui8>) -> tensor<4x6xf32>
  %1 = aten.div.Scalar %0 {other = 2.550000e+02 : f64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: @wraps
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : i16
// CHECK: %[[REST:.*]] = arith.andi %[[SUM]], %c255_i16 : i16
// CHECK: arith.cmpi slt, %[[REST]], %{{.*}} : i16
// CHECK: %[[BYTE:.*]] = arith.trunci %[[REST]] : i16 to i8
// CHECK: kernel.yield {{.*}} : i8, i1
func.func @wraps(%x: tensor<6xui8>, %y: tensor<6xui8>) -> (tensor<6xui8>, tensor<6xi1>) {
  %0 = aten.add.Tensor %x, %y : (tensor<6xui8>, tensor<6xui8>) -> tensor<6xui8>
  %1 = aten.lt.Tensor %0, %y : (tensor<6xui8>, tensor<6xui8>) -> tensor<6xi1>
  return %0, %1 : tensor<6xui8>, tensor<6xi1>
}

// What moves whole rows moves bytes; what sorts them compares numbers.
// CHECK-LABEL: @rows
// CHECK: kernel.gather_rows %{{.*}} : (tensor<5x3xui8>, tensor<2xi64>) -> tensor<2x3xui8>
// CHECK: kernel.sort %{{.*}} : (tensor<2x3xi16>)
func.func @rows(%x: tensor<5x3xui8>, %ids: tensor<2xi64>) -> (tensor<2x3xui8>, tensor<2x3xui8>) {
  %0 = aten.gather_rows %x, %ids {batch_dims = 0 : i64} : (tensor<5x3xui8>, tensor<2xi64>) -> tensor<2x3xui8>
  %1, %2 = aten.sort.stable %0 {stable = true, dim = 1 : i64, descending = false} : (tensor<2x3xui8>) -> (tensor<2x3xui8>, tensor<2x3xi64>)
  return %0, %1 : tensor<2x3xui8>, tensor<2x3xui8>
}
