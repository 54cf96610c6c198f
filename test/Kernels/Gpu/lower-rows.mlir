// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_90 | FileCheck %s
// RUN: spmd-opt %s --spmd-lower-gpu-kernels=chip=sm_80 | FileCheck %s --check-prefix=SM80

func.func @rows(%table: tensor<50257x768xf32>, %ids: tensor<4096xi64>, %grad: tensor<4096x768xf32>, %odd: tensor<4096x770xf32>,
             %many: tensor<5000xi64>, %narrow: tensor<5000x768xbf16>, %short: tensor<1000x5xf32>,
             %row: tensor<2x40000xf32>, %ids2: tensor<2048xi64>, %grad2: tensor<2048x768xf32>, %a: tensor<64x64xf32>)
    -> tensor<4096x768xf32> {
  // A thread moves 16 bytes four times; all loads come before the first store.
  // CHECK-LABEL: gpu.func @gather(
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 768, 1, 1>
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
  %0 = kernel.gather_rows %table, %ids {symbol = "gather"} : (tensor<50257x768xf32>, tensor<4096xi64>) -> tensor<4096x768xf32>

  // 48 rows a block: 1048 blocks, of which the 132 SMs hold 1056. All ids fit the list of hits, so it is the only way.
  // CHECK-LABEL: gpu.func @scatter(
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1048, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 24832 : i64
  // SM80-LABEL: gpu.func @scatter(
  // SM80-SAME: known_grid_size = array<i32: 852, 1, 1>
  // A scan, the list, a sort of it with another scan, and one store per element.
  // CHECK: gpu.barrier
  // CHECK: llvm.store {{.*}} !llvm.ptr<3>
  // CHECK: gpu.barrier
  // CHECK: gpu.barrier
  // CHECK: gpu.barrier
  // CHECK: scf.if
  // CHECK: scf.for
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
  // CHECK-NOT: !llvm.ptr<1>
  // CHECK: gpu.return
  %1 = kernel.scatter_rows <add> %grad2, %ids2 rows 50257 {symbol = "scatter"}
      : (tensor<2048x768xf32>, tensor<2048xi64>) -> tensor<50257x768xf32>

  // Rows of 770 have 8 bytes at a time.
  // CHECK-LABEL: gpu.func @scatter_odd(
  // CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
  %2 = kernel.scatter_rows <add> %odd, %ids rows 50257 {symbol = "scatter_odd"}
      : (tensor<4096x770xf32>, tensor<4096xi64>) -> tensor<50257x770xf32>

  // Narrow floats are summed in f32; with more ids than the list may hold, there is a second way.
  // CHECK-LABEL: gpu.func @scatter_narrow(
  // CHECK: scf.if
  // CHECK: arith.extf {{.*}} : vector<8xbf16> to vector<8xf32>
  // CHECK: arith.addf {{.*}} : vector<8xf32>
  // CHECK: arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
  // CHECK: } else {
  // CHECK: arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
  %3 = kernel.scatter_rows <add> %narrow, %many rows 50257 {symbol = "scatter_narrow"}
      : (tensor<5000x768xbf16>, tensor<5000xi64>) -> tensor<50257x768xbf16>

  // 32 rows of five in a block; 8 bytes of shared memory per element.
  // CHECK-LABEL: gpu.func @sort(
  // CHECK-SAME: known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 32, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 1280 : i64
  %4, %5 = kernel.sort %short size 5 {symbol = "sort"} : (tensor<1000x5xf32>) -> (tensor<1000x5xf32>, tensor<1000x5xi64>)

  // Too long for shared memory: in the results.
  // CHECK-LABEL: gpu.func @sort_long(
  // CHECK-SAME: known_block_size = array<i32: 1024, 1, 1>, known_grid_size = array<i32: 2, 1, 1>
  // CHECK-SAME: spmd.shared_bytes = 0 : i64
  %6, %7 = kernel.sort %row size 40000 {symbol = "sort_long"} : (tensor<2x40000xf32>) -> (tensor<2x40000xf32>, tensor<2x40000xi64>)

  // Blocks of the pieces follow each other: a piece that lies as it comes, one that is turned, zeros.
  // CHECK-LABEL: gpu.func @copy(
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
  // CHECK: scf.if
  // CHECK: gpu.barrier
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
  // CHECK: gpu.return
  %8 = kernel.copy %a, %a pieces [
      #kernel.piece<0 [64, 64] (d0, d1) -> (d0 * 64 + d1) to (d0, d1) -> (d0 * 192 + d1)>,
      #kernel.piece<1 [64, 64] (d0, d1) -> (d1 * 64 + d0) to (d0, d1) -> (d0 * 192 + d1 + 64)>,
      #kernel.piece<zero [64, 64] to (d0, d1) -> (d0 * 192 + d1 + 128)>] {symbol = "copy"}
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x192xf32>
  return %0 : tensor<4096x768xf32>
}
