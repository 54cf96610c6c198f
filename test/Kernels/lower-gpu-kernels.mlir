// RUN: spmd-opt %s --spmd-outline-kernels --spmd-lower-gpu-kernels=chip=sm_90 | FileCheck %s
// RUN: not spmd-opt %s --spmd-outline-kernels --spmd-lower-gpu-kernels=chip=sm_70 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not spmd-opt %s --spmd-lower-gpu-kernels 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: spmd-opt %s --spmd-outline-kernels --spmd-lower-gpu-kernels="sms=2" | FileCheck %s --check-prefix=PART
// RUN: not spmd-opt %s --spmd-lower-gpu-kernels="sms=133" 2>&1 | FileCheck %s --check-prefix=SMS
// RUN: not spmd-opt %s --spmd-lower-gpu-kernels="shared-bytes=-1" 2>&1 | FileCheck %s --check-prefix=SHARED

// CHIP: error: spmd-lower-gpu-kernels: unknown chip "sm_70"; known are sm_80, sm_90, sm_100
// SMS: error: option sms=133 is not between 1 and the 132 of sm_90
// SHARED: error: option shared-bytes=-1 is not between 1 and the 232448 of sm_90
// SYMBOL: error: 'kernel.cluster' op has no symbol; run spmd-outline-kernels before code generation

// Two SMs are full with a quarter of the blocks: threads have several accesses.
// PART: gpu.func @k0({{.*}} known_grid_size = array<i32: 96, 1, 1>

// A thread owns four elements side by side, as one access of 16 bytes; what does not vary along them is a scalar.
// CHECK-LABEL: gpu.func @k0(
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[W:.*]]: !llvm.ptr<1>
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 384, 1, 1>, spmd.arguments = array<i64: 1572864, 2048, 1572864>
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK-NOT: scf.if
// CHECK-LABEL: gpu.func @k1(

// A block shares a row of 768, 64 threads with three parts each, all read before anything else; they stay in registers,
// so the row is read once for three passes over it. A barrier for each of the two reductions.
// CHECK-SAME: known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 512, 1, 1>
// CHECK-SAME: spmd.moved_bytes = 3145728
// CHECK-SAME: spmd.shared_bytes = 32
// CHECK-COUNT-3: llvm.load {{.*}} !llvm.ptr<1> -> vector<4xf32>
// CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK: math.exp
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-3: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr<1>

// A sum over rows of few columns: each thread adds four columns up over a piece of the rows, and pieces meet once.
// CHECK-LABEL: gpu.func @k2(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 24, 1, 1>
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<4xf32>)
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr<1>

// An operand across the results is turned in shared memory, tiles of 32 x 32 with a column to spare.
// CHECK-LABEL: gpu.func @k3(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 384, 1, 1>
// CHECK-SAME: spmd.shared_bytes = 4224
// CHECK: llvm.store {{.*}} !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: llvm.load {{.*}} !llvm.ptr<3>
// CHECK: llvm.store {{.*}} !llvm.ptr<1>

// A row of odd length starts anywhere: one element at a time, in a loop whose last step some threads leave out.
// CHECK-LABEL: gpu.func @k4(
// CHECK-SAME: known_block_size = array<i32: 544, 1, 1>, known_grid_size = array<i32: 512, 1, 1>
// CHECK-NOT: vector<4xf32>
// CHECK: scf.for
func.func @f(%x: tensor<512x768xf32>, %w: tensor<512xf32>, %y: tensor<768x512xf32>, %z: tensor<512x50257xf32>)
    -> (tensor<512x768xf32>, tensor<512x768xf32>, tensor<768xf32>, tensor<512x768xf32>, tensor<512xf32>) {
  %0 = kernel.cluster dims [512, 768] parallel 2
      ins(%a = %x at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>, %b = %w at (d0, d1) -> (d0) : tensor<512xf32>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>) {
    %d = arith.subf %a, %b : f32
    kernel.yield %d : f32
  }
  %1 = kernel.cluster dims [512, 768] parallel 1
      ins(%a = %x at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>) {
    %m = kernel.reduce <max> %a over [1] : f32
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %s = kernel.reduce <add> %e over [1] : f32
    %r = arith.divf %e, %s : f32
    kernel.yield %r : f32
  }
  %2 = kernel.cluster dims [512, 768] parallel 0
      ins(%a = %x at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>)
      outs(at (d0, d1) -> (d1) : tensor<768xf32>) {
    %s = kernel.reduce <add> %a over [0] : f32
    kernel.yield %s : f32
  }
  %3 = kernel.cluster dims [512, 768] parallel 2
      ins(%a = %y at (d0, d1) -> (d0 + d1 * 512) : tensor<768x512xf32>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>) {
    %d = math.absf %a : f32
    kernel.yield %d : f32
  }
  %4 = kernel.cluster dims [512, 50257] parallel 1
      ins(%a = %z at (d0, d1) -> (d0 * 50257 + d1) : tensor<512x50257xf32>)
      outs(at (d0, d1) -> (d0) : tensor<512xf32>) {
    %s = kernel.reduce <add> %a over [1] : f32
    kernel.yield %s : f32
  }
  return %0, %1, %2, %3, %4 : tensor<512x768xf32>, tensor<512x768xf32>, tensor<768xf32>, tensor<512x768xf32>, tensor<512xf32>
}
