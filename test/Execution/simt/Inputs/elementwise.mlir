// y = exp(x) * 3 + coordinate, 16 bytes a thread; the 10 numbers of the last block are fewer than it has threads for.
gpu.module @kernels {
  gpu.func @k0(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %rank: i64) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 3, 1, 1>,
                  spmd.shared_bytes = 0 : i64, spmd.arguments = array<i64: 1064, 1064>, spmd.operands = 1 : i64} {
    %c1 = arith.constant 1 : i64
    %c4 = arith.constant 4 : i64
    %c32 = arith.constant 32 : i64
    %c266 = arith.constant 266 : i64
    %three = arith.constant 3.0 : f32
    %threes = arith.constant dense<3.0> : vector<4xf32>
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %t = arith.index_cast %thread : index to i64
    %b = arith.index_cast %block : index to i64
    %coordinate = arith.sitofp %rank : i64 to f32
    %coordinates = vector.broadcast %coordinate : f32 to vector<4xf32>
    %start = arith.muli %b, %c32 : i64
    %number = arith.addi %start, %t : i64
    %i = arith.muli %number, %c4 : i64
    %end = arith.addi %i, %c4 : i64
    %whole = arith.cmpi sle, %end, %c266 : i64
    scf.if %whole {
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      %e = math.exp %v : vector<4xf32>
      %m = arith.mulf %e, %threes : vector<4xf32>
      %r = arith.addf %m, %coordinates : vector<4xf32>
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      llvm.store %r, %q {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    } else {
      scf.for %j = %i to %c266 step %c1 : i64 {
        %p = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %e = math.exp %v : f32
        %m = arith.mulf %e, %three : f32
        %r = arith.addf %m, %coordinate : f32
        %q = llvm.getelementptr %y[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        llvm.store %r, %q {alignment = 4 : i64} : f32, !llvm.ptr<1>
      }
    }
    gpu.return
  }
}
