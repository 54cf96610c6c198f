// RUN: spmd-opt %s --spmd-lower-kernels | FileCheck %s

// What kernels move between the second-level cache, 1 MiB, and memory.

func.func @rows(%short: tensor<512x768xf32>, %long: tensor<4x200000xf32>, %bias: tensor<200000xf32>,
                %wide: tensor<8x300000xf32>) {
  // An elementwise cluster moves what it must.
  // CHECK: llvm.func @gelu({{.*}} attributes {spmd.moved_bytes = 3145728 : i64}
  %0 = kernel.cluster dims [393216] parallel 1 ins(%a = %short at (d0) -> (d0) : tensor<512x768xf32>)
      outs(at (d0) -> (d0) : tensor<512x768xf32>) attributes {symbol = "gelu"} {
    %r = math.erf %a : f32
    kernel.yield %r : f32
  }
  // Three passes over a row of 3 KB: the cache has it.
  // CHECK: llvm.func @softmax({{.*}} attributes {spmd.moved_bytes = 3145728 : i64}
  %1 = kernel.cluster dims [512, 768] parallel 1 ins(%a = %short at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>)
      outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>) attributes {symbol = "softmax"} {
    %m = kernel.reduce <max> %a over [1] : f32
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %s = kernel.reduce <add> %e over [1] : f32
    %q = arith.divf %e, %s : f32
    kernel.yield %q : f32
  }
  // Rows of 800 KB in and out: read for the maximum and for the exponentials, which are written, read and written over.
  // 5 x 3,200,000 bytes.
  // CHECK: llvm.func @long_softmax({{.*}} attributes {spmd.moved_bytes = 16000000 : i64}
  %2 = kernel.cluster dims [4, 200000] parallel 1
      ins(%a = %long at (d0, d1) -> (d0 * 200000 + d1) : tensor<4x200000xf32>)
      outs(at (d0, d1) -> (d0 * 200000 + d1) : tensor<4x200000xf32>) attributes {symbol = "long_softmax"} {
    %m = kernel.reduce <max> %a over [1] : f32
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %s = kernel.reduce <add> %e over [1] : f32
    %q = arith.divf %e, %s : f32
    kernel.yield %q : f32
  }
  // One pass over a row moves it once, however long; what is no longer there when the next row comes is the bias, of
  // 800,000 bytes: 2 x 3,200,000 + 4 x 800,000.
  // CHECK: llvm.func @bias({{.*}} attributes {spmd.moved_bytes = 9600000 : i64}
  %3 = kernel.cluster dims [4, 200000] parallel 2
      ins(%a = %long at (d0, d1) -> (d0 * 200000 + d1) : tensor<4x200000xf32>,
          %b = %bias at (d0, d1) -> (d1) : tensor<200000xf32>)
      outs(at (d0, d1) -> (d0 * 200000 + d1) : tensor<4x200000xf32>) attributes {symbol = "bias"} {
    %s = arith.addf %a, %b : f32
    kernel.yield %s : f32
  }
  // A row that is summed in one pass, and then not looked at again.
  // CHECK: llvm.func @sum({{.*}} attributes {spmd.moved_bytes = 9600032 : i64}
  %4 = kernel.cluster dims [8, 300000] parallel 1
      ins(%a = %wide at (d0, d1) -> (d0 * 300000 + d1) : tensor<8x300000xf32>)
      outs(at (d0, d1) -> (d0) : tensor<8xf32>) attributes {symbol = "sum"} {
    %s = kernel.reduce <add> %a over [1] : f32
    kernel.yield %s : f32
  }
  // Columns: the sums of 200,000 columns on the stack, and a row as long, are more than the cache. The sums go there
  // and back with each of 4 rows: 4,000,000 + 2 x 4 x 800,000.
  // CHECK: llvm.func @columns({{.*}} attributes {spmd.moved_bytes = 10400000 : i64}
  %5 = kernel.cluster dims [4, 200000] parallel 0
      ins(%a = %long at (d0, d1) -> (d0 * 200000 + d1) : tensor<4x200000xf32>)
      outs(at (d0, d1) -> (d1) : tensor<200000xf32>) attributes {symbol = "columns"} {
    %s = kernel.reduce <add> %a over [0] : f32
    kernel.yield %s : f32
  }
  // CHECK: llvm.func @short_columns({{.*}} attributes {spmd.moved_bytes = 1575936 : i64}
  %6 = kernel.cluster dims [512, 768] parallel 0
      ins(%a = %short at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>)
      outs(at (d0, d1) -> (d1) : tensor<768xf32>) attributes {symbol = "short_columns"} {
    %s = kernel.reduce <add> %a over [0] : f32
    kernel.yield %s : f32
  }
  return
}

func.func @others(%table: tensor<50257x768xf32>, %ids: tensor<512xi64>, %grad: tensor<512x768xf32>,
                  %short: tensor<4x1000xf32>, %long: tensor<2x262144xf32>, %x: tensor<1048576xf32>,
                  %q: tensor<1x2x128x64xf32>, %t: tensor<1x2x4096x64xf32>) {
  // Ids, and each row in and out.
  // CHECK: llvm.func @gather({{.*}} attributes {spmd.moved_bytes = 3149824 : i64}
  %0 = kernel.gather_rows %table, %ids {symbol = "gather"}
      : (tensor<50257x768xf32>, tensor<512xi64>) -> tensor<512x768xf32>
  // The table is written, and of it each of 64 trips has 2.4 MB, more than the cache holds: 512 of its rows are read
  // and written again, and the ids are read by every trip. 154,389,504 + 1,572,864 + 64 x 4,096 + 2 x 1,572,864.
  // CHECK: llvm.func @scatter({{.*}} attributes {spmd.moved_bytes = 159370240 : i64}
  %1 = kernel.scatter_rows <add> %grad, %ids rows 50257 {symbol = "scatter"}
      : (tensor<512x768xf32>, tensor<512xi64>) -> tensor<50257x768xf32>
  // A row of 12 KB is sorted in the cache; one of 3 MB has two levels of its heap outside, which each entry passes once
  // or, in the lower half, twice: 2 x (4 + 12) x 262,144 + 2 x 1.5 x 262,144 x 2 x 4 x 12.
  // CHECK: llvm.func @sort({{.*}} attributes {spmd.moved_bytes = 64000 : i64}
  %2:2 = kernel.sort %short size 1000 {symbol = "sort"}
      : (tensor<4x1000xf32>) -> (tensor<4x1000xf32>, tensor<4x1000xi64>)
  // CHECK: llvm.func @long_sort({{.*}} attributes {spmd.moved_bytes = 83886080 : i64}
  %3:2 = kernel.sort %long size 262144 {symbol = "long_sort"}
      : (tensor<2x262144xf32>) -> (tensor<2x262144xf32>, tensor<2x262144xi64>)
  // Two sums over a shard of 4 MB: it is read for each. In pieces of 256 KB, once.
  // CHECK: llvm.func @sums({{.*}} attributes {spmd.moved_bytes = 8388616 : i64}
  %4:2 = kernel.segmented chunk 1048576 position ()[s0] -> (s0 * 1048576) segments [0] to [1048576]
      elements(%a = %x : tensor<1048576xf32>) outs(tensor<1xf32>, tensor<1xf32>) attributes {symbol = "sums"} {
    %s = arith.mulf %a, %a : f32
    %r = kernel.reduce <add> %s over [0] : f32
    %m = kernel.reduce <max> %a over [0] : f32
    kernel.yield %r, %m : f32, f32
  }
  // CHECK: llvm.func @pieces({{.*}} attributes {spmd.moved_bytes = 4194432 : i64}
  %5:2 = kernel.segmented chunk 1048576 position ()[s0] -> (s0 * 1048576) segments [0] to [1048576] pieces 16
      elements(%a = %x : tensor<1048576xf32>) outs(tensor<1x16xf32>, tensor<1x16xf32>) attributes {symbol = "pieces"} {
    %s = arith.mulf %a, %a : f32
    %r = kernel.reduce <add> %s over [0] : f32
    %m = kernel.reduce <max> %a over [0] : f32
    kernel.yield %r, %m : f32, f32
  }
  // Pieces of a copy, each element in and out.
  // CHECK: llvm.func @copy({{.*}} attributes {spmd.moved_bytes = 6291456 : i64}
  %6 = kernel.copy %grad, %grad pieces [
      #kernel.piece<0 [512, 768] (d0, d1) -> (d0 * 768 + d1) to (d0, d1) -> (d0 * 1536 + d1)>,
      #kernel.piece<1 [512, 768] (d0, d1) -> (d0 * 768 + d1) to (d0, d1) -> (d0 * 1536 + d1 + 768)>] {symbol = "copy"}
      : (tensor<512x768xf32>, tensor<512x768xf32>) -> tensor<512x1536xf32>
  // A head of 128 queries and keys lies in the cache.
  // CHECK: llvm.func @attention({{.*}} attributes {spmd.moved_bytes = 263168 : i64}
  %7, %8 = kernel.attention <batch = 1, heads = 2, kvHeads = 2, qLen = 128, kvLen = 128, headDim = 64, vDim = 64>
      scale 0.125
      q(%q at <offset = 0, batch = 16384, head = 8192, row = 64> : tensor<1x2x128x64xf32>)
      k(%q at <offset = 0, batch = 16384, head = 8192, row = 64> : tensor<1x2x128x64xf32>)
      v(%q at <offset = 0, batch = 16384, head = 8192, row = 64> : tensor<1x2x128x64xf32>)
      out(<offset = 0, batch = 16384, head = 8192, row = 64> : tensor<1x2x128x64xf32>) lse(tensor<1x2x128xf32>)
      {symbol = "attention"}
  // Of one of 4,096, queries are read again, and their sums read and written, for 15 of 16 blocks of
  // keys: 8,421,376 + 2 x 15 x 4,096 x (256 + 2 x 256).
  // CHECK: llvm.func @long_attention({{.*}} attributes {spmd.moved_bytes = 102793216 : i64}
  %9, %10 = kernel.attention <batch = 1, heads = 2, kvHeads = 2, qLen = 4096, kvLen = 4096, headDim = 64, vDim = 64>
      scale 0.125
      q(%t at <offset = 0, batch = 524288, head = 262144, row = 64> : tensor<1x2x4096x64xf32>)
      k(%t at <offset = 0, batch = 524288, head = 262144, row = 64> : tensor<1x2x4096x64xf32>)
      v(%t at <offset = 0, batch = 524288, head = 262144, row = 64> : tensor<1x2x4096x64xf32>)
      out(<offset = 0, batch = 524288, head = 262144, row = 64> : tensor<1x2x4096x64xf32>) lse(tensor<1x2x4096xf32>)
      {symbol = "long_attention"}
  return
}
