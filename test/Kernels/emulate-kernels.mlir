// RUN: spmd-opt %s --spmd-emulate-kernels="cpu=x86-64-v3 path=%t.so" | FileCheck %s
// RUN: llvm-nm --dynamic --defined-only %t.so | FileCheck %s --check-prefix=SYMBOLS

// The kernels stay what they are; beside them lies a library with their functions.
// CHECK: gpu.func @k0(%{{.*}}: !llvm.ptr<1>) kernel
// CHECK: gpu.thread_id
// CHECK: llvm.store
// SYMBOLS: T k0{{$}}
gpu.module @kernels {
  gpu.func @k0(%x: !llvm.ptr<1>) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>,
                  spmd.arguments = array<i64: 256>, spmd.operands = 0 : i64} {
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i64
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
    llvm.store %i, %p {alignment = 8 : i64} : i64, !llvm.ptr<1>
    gpu.return
  }
}
