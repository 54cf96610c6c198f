// RUN: spmd-opt %s -spmd-lower-kernels | FileCheck %s
// A function of the user's is called by a pointer that the loader sets, with two arrays of DLTensor of six words.

// CHECK: llvm.mlir.global external @spmd_external.0123.gained() {{.*}} : !llvm.ptr
// The shape of an input is that of the attribute, whatever tensor it is read from.
// CHECK: llvm.mlir.global internal constant @k0_table0(dense<[4, 12]>
// CHECK: llvm.mlir.global internal constant @k0_table1(dense<[12, 1]>
// CHECK: llvm.mlir.global internal constant @[[NUMBER:.*]](dense<2.000000e+00> : tensor<1xf64>)
// CHECK: llvm.func @k0(%[[ARGS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK: %[[RESULTS:.*]] = llvm.alloca %c6_i64 x i64
// CHECK: %[[ARGUMENTS:.*]] = llvm.alloca %c18_i64 x i64
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: %[[DATA:.*]] = llvm.mlir.addressof @[[NUMBER]]
// CHECK: llvm.store %[[DATA]]
// CHECK: %[[AT:.*]] = llvm.mlir.addressof @spmd_external.0123.gained
// CHECK: %[[FUNCTION:.*]] = llvm.load %[[AT]]
// CHECK: llvm.call %[[FUNCTION]](%[[ARGUMENTS]], %[[RESULTS]])
func.func @step(%x: tensor<48xf32>, %gain: tensor<12xf32>) -> tensor<4x12xf32> {
  %0 = kernel.custom_call "gained" of "libgained.so" hash "0123"(%x, %gain) arguments [unit, unit, 2.0] shapes [array<i64: 4, 12>, array<i64: 12>] {symbol = "k0"} : (tensor<48xf32>, tensor<12xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}
