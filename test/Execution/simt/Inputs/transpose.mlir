// The transpose of 64 x 32 numbers, tiles of 32 x 32 through shared memory whose rows are 33 apart; each thread moves 4 x 1.
gpu.module @kernels {
  llvm.mlir.global external @k0_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  gpu.func @k0(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 2, 1, 1>,
                  spmd.shared_bytes = 4224 : i64, spmd.arguments = array<i64: 8192, 8192>, spmd.operands = 1 : i64} {
    %c5 = arith.constant 5 : i64
    %c8 = arith.constant 8 : i64
    %c31 = arith.constant 31 : i64
    %c0 = arith.constant 0 : i64
    %c32 = arith.constant 32 : i64
    %c33 = arith.constant 33 : i64
    %c64 = arith.constant 64 : i64
    %shared = llvm.mlir.addressof @k0_shared : !llvm.ptr<3>
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %t = arith.index_cast %thread : index to i64
    %b = arith.index_cast %block : index to i64
    %lane = arith.andi %t, %c31 : i64
    %warp = arith.shrui %t, %c5 : i64
    %base = arith.muli %b, %c32 : i64
    scf.for %r = %warp to %c32 step %c8 : i64 {
      %row = arith.addi %base, %r : i64
      %start = arith.muli %row, %c32 : i64
      %i = arith.addi %start, %lane : i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
      %at = arith.muli %r, %c33 : i64
      %j = arith.addi %at, %lane : i64
      %q = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
      llvm.store %v, %q {alignment = 4 : i64} : f32, !llvm.ptr<3>
    }
    gpu.barrier
    scf.for %c = %warp to %c32 step %c8 : i64 {
      %at = arith.muli %lane, %c33 : i64
      %j = arith.addi %at, %c : i64
      %q = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
      %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<3> -> f32
      %start = arith.muli %c, %c64 : i64
      %within = arith.addi %base, %lane : i64
      %i = arith.addi %start, %within : i64
      %p = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      llvm.store %v, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>
    }
    gpu.return
  }
}
