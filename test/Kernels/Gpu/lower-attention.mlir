// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_90 | FileCheck %s
// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_80 | FileCheck %s --check-prefix=SM80

func.func @attention(%x: tensor<4x1024x2304xf32>, %g: tensor<4x1024x768xf32>, %q: tensor<2x32x2048x128xf32>, %kv: tensor<2x8x2048x128xf32>,
             %padding: tensor<2x2048xi1>) -> tensor<4x1024x768xf32> {
  // 64 queries and 64 keys a tile: 16 tiles of each of 48 heads. Tiles of q, k, v and P, rows of 64 + 4 words.
  // CHECK-LABEL: gpu.func @causal(
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 768, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 69632 : i64
  // SM80-LABEL: gpu.func @causal(
  // SM80-SAME: spmd.shared_bytes = 69632 : i64
  // The queries, 16 bytes at a time.
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
  // Keys up to the last that the tile's last query sees; 4 maxima, 4 sums, 4 x 4 outputs go through the loop.
  // CHECK: arith.minsi
  // CHECK: %[[END:.*]] = arith.minsi
  // CHECK: %{{.*}}:12 = scf.for %{{.*}} to %[[END]] step %c64
  // CHECK: gpu.barrier
  // CHECK: gpu.barrier
  // CHECK: %[[S:.*]]:16 = scf.for {{.*}} step %c4
  // CHECK-COUNT-64: math.fma {{.*}} : f32
  // CHECK-COUNT-4: gpu.shuffle xor
  // CHECK: math.exp
  // CHECK: gpu.barrier
  // CHECK: %{{.*}}:4 = scf.for {{.*}} step %c4
  // CHECK-COUNT-16: math.fma {{.*}} : vector<4xf32>
  // CHECK-NOT: gpu.barrier
  // CHECK: gpu.return
  %out, %lse = kernel.attention <batch = 4, heads = 12, kvHeads = 12, qLen = 1024, kvLen = 1024, headDim = 64, vDim = 64> scale 0.125
      q(%x at <offset = 0, batch = 2359296, head = 64, row = 2304> : tensor<4x1024x2304xf32>)
      k(%x at <offset = 768, batch = 2359296, head = 64, row = 2304> : tensor<4x1024x2304xf32>)
      v(%x at <offset = 1536, batch = 2359296, head = 64, row = 2304> : tensor<4x1024x2304xf32>)
      mask() {
    %t = kernel.index 2
    %s = kernel.index 3
    %c = arith.cmpi sle, %s, %t : index
    kernel.yield %c : i1
  } out(<offset = 0, batch = 786432, head = 64, row = 768> : tensor<4x1024x768xf32>) lse(tensor<4x12x1024xf32>) {symbol = "causal"}

  // The first 768 blocks make dk and dv, the other 768 dq.
  // CHECK-LABEL: gpu.func @backward(
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1536, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 104704 : i64
  // Fewer bytes fit twice into the shared memory of an SM.
  // SM80-LABEL: gpu.func @backward(
  // SM80-SAME: spmd.shared_bytes = 70784 : i64
  // CHECK: scf.if
  // CHECK: %{{.*}}:8 = scf.for
  // CHECK: gpu.barrier
  // CHECK: scf.if
  // CHECK: %{{.*}}:4 = scf.for
  // CHECK: gpu.barrier
  // CHECK-NOT: scf.if %{{.*}} {{{$}}
  // CHECK: gpu.return
  %d = kernel.attention_backward <batch = 4, heads = 12, kvHeads = 12, qLen = 1024, kvLen = 1024, headDim = 64, vDim = 64> scale 0.125
      dout(%g at <offset = 0, batch = 786432, head = 64, row = 768> : tensor<4x1024x768xf32>)
      q(%x at <offset = 0, batch = 2359296, head = 64, row = 2304> : tensor<4x1024x2304xf32>)
      k(%x at <offset = 768, batch = 2359296, head = 64, row = 2304> : tensor<4x1024x2304xf32>)
      v(%x at <offset = 1536, batch = 2359296, head = 64, row = 2304> : tensor<4x1024x2304xf32>)
      mask() {
    %t = kernel.index 2
    %s = kernel.index 3
    %c = arith.cmpi sle, %s, %t : index
    kernel.yield %c : i1
  } out(%out at <offset = 0, batch = 786432, head = 64, row = 768> : tensor<4x1024x768xf32>) lse(%lse : tensor<4x12x1024xf32>)
      dq(<offset = 0, batch = 2359296, head = 64, row = 2304>) dk(<offset = 768, batch = 2359296, head = 64, row = 2304>)
      dv(<offset = 1536, batch = 2359296, head = 64, row = 2304>) {symbol = "backward"} -> tensor<4x1024x2304xf32>

  // Heads of 128: keys and values take turns in one tile. The mask is read where scores are.
  // CHECK-LABEL: gpu.func @grouped(
  // CHECK-SAME: known_grid_size = array<i32: 2048, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 84992 : i64
  // CHECK-COUNT-4: gpu.barrier
  // CHECK: gpu.return
  %out2, %lse2 = kernel.attention <batch = 2, heads = 32, kvHeads = 8, qLen = 2048, kvLen = 2048, headDim = 128, vDim = 128> scale 0.125
      q(%q at <offset = 0, batch = 8388608, head = 262144, row = 128> : tensor<2x32x2048x128xf32>)
      k(%kv at <offset = 0, batch = 2097152, head = 262144, row = 128> : tensor<2x8x2048x128xf32>)
      v(%kv at <offset = 0, batch = 2097152, head = 262144, row = 128> : tensor<2x8x2048x128xf32>)
      mask(%p = %padding at (d0, d1, d2, d3) -> (d0 * 2048 + d3) : tensor<2x2048xi1>) {
    kernel.yield %p : i1
  } out(<offset = 0, batch = 8388608, head = 262144, row = 128> : tensor<2x32x2048x128xf32>) lse(tensor<2x32x2048xf32>) {symbol = "grouped"}

  // CHECK-LABEL: gpu.func @grouped_backward(
  // CHECK-SAME: known_grid_size = array<i32: 2560, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 110848 : i64
  %dq, %dk, %dv = kernel.attention_backward <batch = 2, heads = 32, kvHeads = 8, qLen = 2048, kvLen = 2048, headDim = 128, vDim = 128> scale 0.125
      dout(%q at <offset = 0, batch = 8388608, head = 262144, row = 128> : tensor<2x32x2048x128xf32>)
      q(%q at <offset = 0, batch = 8388608, head = 262144, row = 128> : tensor<2x32x2048x128xf32>)
      k(%kv at <offset = 0, batch = 2097152, head = 262144, row = 128> : tensor<2x8x2048x128xf32>)
      v(%kv at <offset = 0, batch = 2097152, head = 262144, row = 128> : tensor<2x8x2048x128xf32>)
      mask(%p = %padding at (d0, d1, d2, d3) -> (d0 * 2048 + d3) : tensor<2x2048xi1>) {
    kernel.yield %p : i1
  } out(%out2 at <offset = 0, batch = 8388608, head = 262144, row = 128> : tensor<2x32x2048x128xf32>) lse(%lse2 : tensor<2x32x2048xf32>)
      dq(<offset = 0, batch = 8388608, head = 262144, row = 128>) dk(<offset = 0, batch = 2097152, head = 262144, row = 128>)
      dv(<offset = 0, batch = 2097152, head = 262144, row = 128>) {symbol = "grouped_backward"}
      -> tensor<2x32x2048x128xf32>, tensor<2x8x2048x128xf32>, tensor<2x8x2048x128xf32>
  return %out : tensor<4x1024x768xf32>
}
