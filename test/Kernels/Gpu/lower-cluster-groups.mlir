// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_90 | FileCheck %s

// Threads that share a row. A row that lies in their registers is read once, so there may be more of them than wanted
// (one for 16 elements): of the fewest that have room and up to twice as many, those with the fewest parts missing.

func.func @norms(%even: tensor<512x4096xf32>, %odd: tensor<512x1280xf32>, %prime: tensor<512x1600xf32>,
                 %single: tensor<512x20011xf32>, %long: tensor<512x40000xf32>, %ids: tensor<512x1600xi32>,
                 %g: tensor<4096x8192xbf16>, %x: tensor<4096x8192xbf16>, %w: tensor<8192xbf16>,
                 %gg: tensor<4096x16384xbf16>, %xx: tensor<4096x16384xbf16>, %ww: tensor<16384xf32>,
                 %short: tensor<8192x768xbf16>, %added: tensor<8192x768xbf16>)
    -> (tensor<512x4096xf32>, tensor<512x1280xf32>, tensor<512x1600xf32>, tensor<512x20011xf32>, tensor<512x40000xf32>,
        tensor<512x1600xi32>, tensor<4096x8192xbf16>, tensor<256x8192xf32>, tensor<256x8192xf32>,
        tensor<4096x16384xbf16>, tensor<256x16384xf32>, tensor<8192x768xbf16>, tensor<256x768xf32>) {
  // CHECK-LABEL: gpu.func @even(
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
  // CHECK-COUNT-4: llvm.load {{.*}} -> vector<4xf32>
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  %0 = kernel.cluster dims [512, 4096] parallel 1
      ins(%a = %even at (d0, d1) -> (d0 * 4096 + d1) : tensor<512x4096xf32>)
      outs(at (d0, d1) -> (d0 * 4096 + d1) : tensor<512x4096xf32>) attributes {symbol = "even"} {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  // 320 accesses: 96 threads do not divide them, 160 do.
  // CHECK-LABEL: gpu.func @odd(
  // CHECK-SAME: known_block_size = array<i32: 160, 1, 1>
  // CHECK-COUNT-2: llvm.load {{.*}} -> vector<4xf32>
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  %1 = kernel.cluster dims [512, 1280] parallel 1
      ins(%a = %odd at (d0, d1) -> (d0 * 1280 + d1) : tensor<512x1280xf32>)
      outs(at (d0, d1) -> (d0 * 1280 + d1) : tensor<512x1280xf32>) attributes {symbol = "odd"} {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  // 400 accesses: 224 threads have two each, but for 48 that have one; these read zeros and add nothing.
  // CHECK-LABEL: gpu.func @prime(
  // CHECK-SAME: known_block_size = array<i32: 224, 1, 1>
  // CHECK-SAME: spmd.moved_bytes = 6553600
  // CHECK: %[[THERE:.*]] = arith.cmpi slt, %{{.*}}, %c176_i64
  // CHECK: llvm.load {{.*}} -> vector<4xf32>
  // CHECK: %[[LAST:.*]] = scf.if %[[THERE]] -> (vector<4xf32>) {
  // CHECK: llvm.getelementptr
  // CHECK-NEXT: llvm.load {{.*}} -> vector<4xf32>
  // CHECK: } else {
  // CHECK: scf.yield %cst
  // CHECK: %[[SUM:.*]] = arith.addf %[[BEFORE:.*]], %[[LAST]]
  // CHECK-NEXT: arith.select %[[THERE]], %[[SUM]], %[[BEFORE]]
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  // CHECK: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr<1>
  // CHECK: scf.if %[[THERE]] {
  // CHECK: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr<1>
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.return
  %2 = kernel.cluster dims [512, 1600] parallel 1
      ins(%a = %prime at (d0, d1) -> (d0 * 1600 + d1) : tensor<512x1600xf32>)
      outs(at (d0, d1) -> (d0 * 1600 + d1) : tensor<512x1600xf32>) attributes {symbol = "prime"} {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  // Elements one by one, 20 of a thread.
  // CHECK-LABEL: gpu.func @single(
  // CHECK-SAME: known_block_size = array<i32: 1024, 1, 1>
  // CHECK-SAME: spmd.moved_bytes = 81965056
  // CHECK-COUNT-20: llvm.load {{.*}} : !llvm.ptr<1> -> f32
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  %3 = kernel.cluster dims [512, 20011] parallel 1
      ins(%a = %single at (d0, d1) -> (d0 * 20011 + d1) : tensor<512x20011xf32>)
      outs(at (d0, d1) -> (d0 * 20011 + d1) : tensor<512x20011xf32>) attributes {symbol = "single"} {
    %m = kernel.reduce <max> %a over [1] : f32
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %s = kernel.reduce <add> %e over [1] : f32
    %q = arith.divf %e, %s : f32
    kernel.yield %q : f32
  }
  // 1,024 threads have 32 registers for a row, and 40,000 elements do not fit: read for the sum and again, by threads of
  // which two blocks fit an SM.
  // CHECK-LABEL: gpu.func @long(
  // CHECK-SAME: known_block_size = array<i32: 512, 1, 1>
  // CHECK-SAME: spmd.moved_bytes = 245760000
  // CHECK-SAME: spmd.resident_blocks = 2
  // CHECK: scf.for
  // CHECK: scf.for
  %4 = kernel.cluster dims [512, 40000] parallel 1
      ins(%a = %long at (d0, d1) -> (d0 * 40000 + d1) : tensor<512x40000xf32>)
      outs(at (d0, d1) -> (d0 * 40000 + d1) : tensor<512x40000xf32>) attributes {symbol = "long"} {
    %s = kernel.reduce <add> %a over [1] : f32
    %d = arith.subf %a, %s : f32
    kernel.yield %d : f32
  }
  // Nobody divides by the zeros of a part that is missing.
  // CHECK-LABEL: gpu.func @divides(
  // CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
  // CHECK: scf.for
  %5 = kernel.cluster dims [512, 1600] parallel 1
      ins(%a = %ids at (d0, d1) -> (d0 * 1600 + d1) : tensor<512x1600xi32>)
      outs(at (d0, d1) -> (d0 * 1600 + d1) : tensor<512x1600xi32>) attributes {symbol = "divides"} {
    %s = kernel.reduce <add> %a over [1] : i32
    %d = arith.divsi %s, %a : i32
    kernel.yield %d : i32
  }
  // Two sums per column, and what is read, are more than registers hold: the sums are in shared memory, 64 KB, where
  // each thread meets its own. Four parts of three operands are read before the first sum, and none after it.
  // CHECK-LABEL: gpu.func @sums(
  // CHECK-SAME: known_block_size = array<i32: 512, 1, 1>
  // CHECK-SAME: spmd.moved_bytes = 218120192
  // CHECK-SAME: spmd.shared_bytes = 65664
  // CHECK-COUNT-12: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
  // CHECK-NOT: llvm.load {{.*}} vector<4xbf16>
  // CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
  // CHECK: gpu.barrier
  // CHECK-NOT: llvm.load {{.*}} vector<4xbf16>
  %6:3 = kernel.cluster dims [256, 16, 8192] parallel 1
      ins(%a = %g at (d0, d1, d2) -> (d0 * 131072 + d1 * 8192 + d2) : tensor<4096x8192xbf16>,
          %b = %x at (d0, d1, d2) -> (d0 * 131072 + d1 * 8192 + d2) : tensor<4096x8192xbf16>,
          %c = %w at (d0, d1, d2) -> (d2) : tensor<8192xbf16>)
      outs(at (d0, d1, d2) -> (d0 * 131072 + d1 * 8192 + d2) : tensor<4096x8192xbf16>,
           at (d0, d1, d2) -> (d0 * 8192 + d2) : tensor<256x8192xf32>,
           at (d0, d1, d2) -> (d0 * 8192 + d2) : tensor<256x8192xf32>) attributes {symbol = "sums"} {
    %dy = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %gv = arith.mulf %dy, %v : f32
    %gh = arith.mulf %dy, %h : f32
    %s = kernel.reduce <add> %gv over [2] : f32
    %dw = kernel.reduce <add> %gh over [1] : f32
    %db = kernel.reduce <add> %dy over [1] : f32
    %u = arith.mulf %h, %s : f32
    %d = arith.subf %gv, %u : f32
    %r = arith.truncf %d : f32 to bf16
    kernel.yield %r, %dw, %db : bf16, f32, f32
  }
  // More columns: the weight, which all rows share, comes out of a cache when it is needed, for the sum and for the
  // result. Four parts of two operands are read before the first weight.
  // CHECK-LABEL: gpu.func @columns(
  // CHECK-SAME: known_block_size = array<i32: 1024, 1, 1>
  // CHECK-SAME: spmd.moved_bytes = 419495936
  // CHECK-COUNT-8: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xbf16>
  // CHECK-NOT: llvm.load {{.*}} vector<4xbf16>
  // CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1> -> vector<4xf32>
  // CHECK: gpu.barrier
  // CHECK-NOT: llvm.load {{.*}} vector<4xbf16>
  // CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  // Few points of 32 rows, and registers for more threads: eight teams of 64 threads have 4 rows each. Both operands of a
  // row are read before its first sum, which takes one barrier a row. At the end each team leaves its sums in shared memory,
  // where all add them up, and the first stores them.
  // CHECK-LABEL: gpu.func @teams(
  // CHECK-SAME: known_block_size = array<i32: 512, 1, 1>
  // CHECK-SAME: known_grid_size = array<i32: 256, 1, 1>
  // CHECK-SAME: spmd.resident_blocks = 2
  // CHECK: scf.for %{{.*}} = %c0_i64 to %c4_i64
  // CHECK-COUNT-6: llvm.load {{.*}} : !llvm.ptr<1> -> vector<4xbf16>
  // CHECK: gpu.barrier
  // CHECK-NOT: gpu.barrier
  // CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
  // CHECK: scf.yield
  // CHECK-COUNT-3: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr<3>
  // CHECK-NEXT: gpu.barrier
  // CHECK-COUNT-24: llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK: scf.if
  // CHECK: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr<1>
  // CHECK-LABEL: gpu.func @end(
  %7:2 = kernel.cluster dims [256, 16, 16384] parallel 1
      ins(%a = %gg at (d0, d1, d2) -> (d0 * 262144 + d1 * 16384 + d2) : tensor<4096x16384xbf16>,
          %b = %xx at (d0, d1, d2) -> (d0 * 262144 + d1 * 16384 + d2) : tensor<4096x16384xbf16>,
          %c = %ww at (d0, d1, d2) -> (d2) : tensor<16384xf32>)
      outs(at (d0, d1, d2) -> (d0 * 262144 + d1 * 16384 + d2) : tensor<4096x16384xbf16>,
           at (d0, d1, d2) -> (d0 * 16384 + d2) : tensor<256x16384xf32>) attributes {symbol = "columns"} {
    %dy = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %gh = arith.mulf %dy, %h : f32
    %gv = arith.mulf %gh, %c : f32
    %s = kernel.reduce <add> %gv over [2] : f32
    %dw = kernel.reduce <add> %gh over [1] : f32
    %u = arith.addf %c, %s : f32
    %d = arith.subf %gh, %u : f32
    %r = arith.truncf %d : f32 to bf16
    kernel.yield %r, %dw : bf16, f32
  }
  %9:2 = kernel.cluster dims [256, 32, 768] parallel 1
      ins(%a = %short at (d0, d1, d2) -> (d0 * 24576 + d1 * 768 + d2) : tensor<8192x768xbf16>,
          %b = %added at (d0, d1, d2) -> (d0 * 24576 + d1 * 768 + d2) : tensor<8192x768xbf16>)
      outs(at (d0, d1, d2) -> (d0 * 24576 + d1 * 768 + d2) : tensor<8192x768xbf16>,
           at (d0, d1, d2) -> (d0 * 768 + d2) : tensor<256x768xf32>) attributes {symbol = "teams"} {
    %dy = arith.extf %a : bf16 to f32
    %h = arith.extf %b : bf16 to f32
    %s = kernel.reduce <add> %dy over [2] : f32
    %d = arith.subf %dy, %s : f32
    %u = arith.addf %d, %h : f32
    %dw = kernel.reduce <add> %dy over [1] : f32
    %r = arith.truncf %u : f32 to bf16
    kernel.yield %r, %dw : bf16, f32
  }
  %8 = kernel.cluster dims [] parallel 0 outs(at () -> (0) : tensor<f32>) attributes {symbol = "end"} {
    %z = arith.constant 0.0 : f32
    kernel.yield %z : f32
  }
  return %0, %1, %2, %3, %4, %5, %6#0, %6#1, %6#2, %7#0, %7#1, %9#0, %9#1 : tensor<512x4096xf32>, tensor<512x1280xf32>, tensor<512x1600xf32>,
      tensor<512x20011xf32>, tensor<512x40000xf32>, tensor<512x1600xi32>, tensor<4096x8192xbf16>, tensor<256x8192xf32>,
      tensor<256x8192xf32>, tensor<4096x16384xbf16>, tensor<256x16384xf32>, tensor<8192x768xbf16>, tensor<256x768xf32>
}
