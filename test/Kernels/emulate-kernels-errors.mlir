// RUN: spmd-opt %s -split-input-file -verify-diagnostics --spmd-emulate-kernels=path=%t.so

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op has no known_block_size}}
  gpu.func @k0() kernel attributes {spmd.arguments = array<i64>, spmd.operands = 0 : i64} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op has a known_grid_size that is not one-dimensional}}
  gpu.func @k0() kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 2, 1>,
                                    spmd.arguments = array<i64>, spmd.operands = 0 : i64} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op has blocks of 2048 threads, more than 1024}}
  gpu.func @k0() kernel attributes {known_block_size = array<i32: 2048, 1, 1>, known_grid_size = array<i32: 2, 1, 1>,
                                    spmd.arguments = array<i64>, spmd.operands = 0 : i64} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op needs spmd.arguments, the bytes behind each pointer, and spmd.operands, how many of them are operands}}
  gpu.func @k0(%x: !llvm.ptr<1>) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op has argument 0 of type '!llvm.ptr'; expected a pointer into global memory}}
  gpu.func @k0(%x: !llvm.ptr) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 1, 1>,
                  spmd.arguments = array<i64: 4>, spmd.operands = 0 : i64} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k0(%x: !llvm.ptr<1>) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 1, 1>,
                  spmd.arguments = array<i64: 4>, spmd.operands = 0 : i64} {
    %one = arith.constant 1 : i32
    // expected-error @below {{'llvm.atomicrmw' op cannot be emulated}}
    %0 = llvm.atomicrmw add %x, %one monotonic : !llvm.ptr<1>, i32
    gpu.return
  }
}
