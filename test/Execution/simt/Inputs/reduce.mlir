// The sum of each of 5 rows of 300 numbers, a block of 64 threads per row: shuffles in a warp, shared memory between
// warps.
gpu.module @kernels {
  llvm.mlir.global external @k0_shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  gpu.func @k0(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 5, 1, 1>,
                  spmd.shared_bytes = 8 : i64, spmd.arguments = array<i64: 6000, 20>, spmd.operands = 1 : i64} {
    %c1 = arith.constant 1 : i64
    %c5 = arith.constant 5 : i64
    %c31 = arith.constant 31 : i64
    %c0 = arith.constant 0 : i64
    %c64 = arith.constant 64 : i64
    %c300 = arith.constant 300 : i64
    %zero = arith.constant 0.0 : f32
    %width = arith.constant 32 : i32
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %t = arith.index_cast %thread : index to i64
    %b = arith.index_cast %block : index to i64
    %row = arith.muli %b, %c300 : i64
    %mine = scf.for %i = %t to %c300 step %c64 iter_args(%sum = %zero) -> f32 : i64 {
      %at = arith.addi %row, %i : i64
      %p = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
      %next = arith.addf %sum, %v : f32
      scf.yield %next : f32
    }
    %m16 = arith.constant 16 : i32
    %s16, %v16 = gpu.shuffle xor %mine, %m16, %width : f32
    %a16 = arith.addf %mine, %s16 : f32
    %m8 = arith.constant 8 : i32
    %s8, %v8 = gpu.shuffle xor %a16, %m8, %width : f32
    %a8 = arith.addf %a16, %s8 : f32
    %m4 = arith.constant 4 : i32
    %s4, %v4 = gpu.shuffle xor %a8, %m4, %width : f32
    %a4 = arith.addf %a8, %s4 : f32
    %m2 = arith.constant 2 : i32
    %s2, %v2 = gpu.shuffle xor %a4, %m2, %width : f32
    %a2 = arith.addf %a4, %s2 : f32
    %m1 = arith.constant 1 : i32
    %s1, %v1 = gpu.shuffle xor %a2, %m1, %width : f32
    %a1 = arith.addf %a2, %s1 : f32
    %shared = llvm.mlir.addressof @k0_shared : !llvm.ptr<3>
    %lane = arith.andi %t, %c31 : i64
    %warp = arith.shrui %t, %c5 : i64
    %first = arith.cmpi eq, %lane, %c0 : i64
    scf.if %first {
      %p = llvm.getelementptr %shared[%warp] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
      llvm.store %a1, %p {alignment = 4 : i64} : f32, !llvm.ptr<3>
    }
    gpu.barrier
    %p1 = llvm.getelementptr %shared[%c1] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    %low = llvm.load %shared {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    %high = llvm.load %p1 {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    %all = arith.addf %low, %high : f32
    %only = arith.cmpi eq, %t, %c0 : i64
    scf.if %only {
      %p = llvm.getelementptr %y[%b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      llvm.store %all, %p {alignment = 4 : i64} : f32, !llvm.ptr<1>
    }
    gpu.return
  }
}
