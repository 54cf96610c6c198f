// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_90 | FileCheck %s
// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_90 --spmd-emit-ptx=chip=sm_90 -o /dev/null | FileCheck %s --check-prefix=PTX

// Four blocks of 256 threads per eighth of an SM's threads: 4 * 8 * 132 of them would have 249 elements each, so each has
// one access of 1024.
// CHECK-LABEL: gpu.func @update(
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1024, 1, 1>
// CHECK-SAME: spmd.shared_bytes = 0 : i64
// The first segment that ends behind the block's stretch, and the first that starts behind it, by bisection.
// CHECK: %[[FIRST:.*]] = scf.for
// CHECK: arith.shrui
// CHECK: %[[END:.*]] = scf.for
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]]
// Padding before the segment, by all threads.
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c256
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : f32
// Two accesses of a thread in flight: three operands and twice two results.
// CHECK: scf.for
// CHECK-COUNT-6: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
// One.
// CHECK: scf.for
// CHECK-COUNT-3: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
// What no access fits.
// CHECK: scf.for
// CHECK-COUNT-3: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 4 : i64} : f32
// Padding behind the last segment.
// CHECK: scf.for
// CHECK: gpu.return

// PTX-LABEL: .visible .entry update(
// PTX-COUNT-6: ld.global.v4.b32
// PTX-NOT: ld.global
// PTX-COUNT-4: st.global.v4.b32
func.func @segmented(%p: tensor<1048576xf32>, %g: tensor<1048576xf32>, %m: tensor<1048576xf32>, %decay: tensor<3xf32>)
    -> (tensor<1048576xf32>, tensor<1048576xf32>) {
  %0:2 = kernel.segmented chunk 1048576 position ()[s0] -> (s0 * 1048576) segments [0, 786432, 787200] to [786432, 787000, 1600000]
      elements(%a = %p : tensor<1048576xf32>, %b = %g : tensor<1048576xf32>, %c = %m : tensor<1048576xf32>)
      tables(%d = %decay : tensor<3xf32>) outs(tensor<1048576xf32>, tensor<1048576xf32>) attributes {symbol = "update"} {
    %factor = kernel.segment_constant dense<[0.9, 0.8, 0.7]> : tensor<3xf32> : f32
    %x = arith.mulf %c, %factor : f32
    %y = arith.addf %x, %b : f32
    %z = arith.mulf %a, %d : f32
    %w = arith.subf %z, %y : f32
    kernel.yield %w, %y : f32, f32
  }

  // A block per piece; the threads of it follow from how long pieces are.
  // CHECK-LABEL: gpu.func @norm(
  // CHECK-SAME: known_block_size = array<i32: 1024, 1, 1>, known_grid_size = array<i32: 48, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 128 : i64
  // CHECK: %{{.*}}:5 = scf.for {{.*}} step %c16384
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // Lanes of a warp, then one barrier, then the warps.
  // CHECK-COUNT-5: gpu.shuffle xor
  // CHECK: gpu.barrier
  // CHECK-COUNT-5: gpu.shuffle xor
  // CHECK-NOT: gpu.barrier
  // CHECK: gpu.return
  %1 = kernel.segmented chunk 1048576 position ()[s0] -> (s0 * 1048576) segments [0, 786432, 787200] to [786432, 787000, 1600000] pieces 16
      elements(%a = %g : tensor<1048576xf32>) outs(tensor<3x16xf32>) attributes {symbol = "norm"} {
    %s = arith.mulf %a, %a : f32
    %r = kernel.reduce <add> %s over [0] : f32
    kernel.yield %r : f32
  }
  return %0#0, %0#1 : tensor<1048576xf32>, tensor<1048576xf32>
}
