// RUN: spmd-opt --spmd-convert-aten-to-kernel %s 2>&1 | FileCheck %s --check-prefixes=REMARK,CHECK

spmd.mesh @mesh ["data" = 2]
spmd.shard_unit @unit0 modules [""] mesh @mesh axes ["data"] fully_shard reshard_after_forward layout
  #spmd.flat<f32, padded = 512, [
    #spmd.segment<"w", shape = [16, 8], group = 0, offset = 0, numel = 128, trainable = true>,
    #spmd.segment<"b", shape = [16], group = 0, offset = 128, numel = 16, trainable = true>]>

// REMARK: remark: copies the value of "b" into its slot of the flat buffer

// A gradient that comes as the transpose of a product is computed in the layout of the parameter; one kernel writes each slot.
// CHECK-LABEL: func.func @gradients
// CHECK:         %[[W:.*]] = kernel.gemm m 16 n 8 k 32 a(%arg1 ld 16 trans : tensor<32x16xf32>) b(%arg0 ld 8 : tensor<32x8xf32>)
// CHECK:         %[[B:.*]] = kernel.cluster dims [16] parallel 1
// CHECK:         spmd.pack %[[W]], %[[B]] unit @unit0 ["w", "b"]
func.func @gradients(%x: tensor<32x8xf32>, %g: tensor<32x16xf32>, %b: tensor<16xf32>) -> tensor<512xf32> {
  %xt = aten.permute %x {dims = array<i64: 1, 0>} : (tensor<32x8xf32>) -> tensor<8x32xf32>
  %0 = aten.mm %xt, %g : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %1 = aten.permute %0 {dims = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  // An argument is not where the reduce-scatter reads: it is copied into its slot.
  %2 = spmd.pack %1, %b unit @unit0 ["w", "b"] : (tensor<16x8xf32>, tensor<16xf32>) -> tensor<512xf32>
  return %2 : tensor<512xf32>
}

// What backward computes again reads parameters from the buffer gathered for backward: its view gets the bias too. The
// forward buffer is released where it was.
// CHECK-LABEL: func.func @regather
// CHECK:         %[[F:.*]]:2 = spmd.unpack %{{.*}} ["w", "b"]
// CHECK:         %[[P:.*]] = kernel.gemm
// CHECK:         spmd.release
// CHECK:         %[[R:.*]]:2 = spmd.unpack %{{.*}} ["w", "b"]
// CHECK:         kernel.gemm
// CHECK-NEXT:    kernel.cluster
// CHECK:             = %[[P]] at
// CHECK:             = %[[R]]#1 at
func.func @regather(%shard: tensor<256xf32>, %x: tensor<32x8xf32>, %g: tensor<32x8xf32>) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %h = spmd.all_gather_start %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 512 stream gather {spmd.segment = 0 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat = spmd.wait %h {spmd.segment = 0 : i64} : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %w, %b = spmd.unpack %flat unit @unit0 ["w", "b"] {spmd.segment = 0 : i64} : tensor<512xf32> -> tensor<16x8xf32>, tensor<16xf32>
  %wt = aten.permute %w {dims = array<i64: 1, 0>, spmd.segment = 0 : i64} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %y = aten.addmm %b, %x, %wt {spmd.segment = 0 : i64} : (tensor<16xf32>, tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %a = aten.relu %y {spmd.segment = 0 : i64} : (tensor<32x16xf32>) -> tensor<32x16xf32>
  spmd.release %flat {spmd.segment = 0 : i64} : tensor<512xf32>
  %h1 = spmd.all_gather_start %shard on @mesh ["data"] unit @unit0 dim 0 pre 1 total 512 stream gather {spmd.segment = 1 : i64} : tensor<256xf32> -> !spmd.handle<tensor<512xf32>>
  %flat1 = spmd.wait %h1 {spmd.segment = 1 : i64} : !spmd.handle<tensor<512xf32>> -> tensor<512xf32>
  %w1 = spmd.unpack %flat1 unit @unit0 ["w"] {spmd.segment = 1 : i64} : tensor<512xf32> -> tensor<16x8xf32>
  %w1t = aten.permute %w1 {dims = array<i64: 1, 0>, spmd.segment = 1 : i64} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %da = aten.mm %g, %w1t {spmd.segment = 1 : i64} : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %dy = aten.gelu_backward %da, %y {approximate = "none", spmd.segment = 1 : i64} : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
  spmd.release %flat1 {spmd.segment = 1 : i64} : tensor<512xf32>
  return %a, %dy : tensor<32x16xf32>, tensor<32x16xf32>
}

// The optimizer of a unit is one kernel over the rank's chunk, with tables by segment.
// CHECK-LABEL: func.func @optimizer
// CHECK:         kernel.segmented chunk 256 position ()[s0] -> (s0 * 256) segments [0, 128] to [128, 144]
// CHECK-NEXT:        elements(%{{.*}} = %arg0 : tensor<256xf32>, %{{.*}} = %arg1 : tensor<256xf32>)
// CHECK-NEXT:        tables(%{{.*}} = %arg2 : tensor<2xf32>)
// CHECK-NEXT:        scalars(%{{.*}} = %arg3 : tensor<f32>)
// CHECK:           kernel.segment_constant dense<[1.000000e-01, 0.000000e+00]>
// CHECK-NOT:     kernel.segmented
func.func @optimizer(%p: tensor<256xf32>, %g: tensor<256xf32>, %rate: tensor<2xf32>, %scale: tensor<f32>) -> tensor<256xf32> {
  %decays = aten.constant dense<[0.1, 0.0]> : tensor<2xf32> : tensor<2xf32>
  %decay = spmd.segment_broadcast %decays unit @unit0 : tensor<2xf32> -> tensor<256xf32>
  %r = spmd.segment_broadcast %rate unit @unit0 : tensor<2xf32> -> tensor<256xf32>
  %0 = aten.mul.Tensor %p, %decay : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %1 = aten.mul.Tensor %g, %scale : (tensor<256xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = aten.add.Tensor %0, %1 : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %3 = aten.mul.Tensor %2, %r : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  %4 = aten.sub.Tensor %p, %3 : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>
  return %4 : tensor<256xf32>
}

// The norm of each segment: partial sums of squares per segment, then over the parts.
// CHECK-LABEL: func.func @norms
// CHECK:         %[[PARTS:.*]] = kernel.segmented chunk 256
// CHECK-SAME:      pieces 16
// CHECK:           kernel.reduce <add>
// CHECK:         kernel.cluster dims [2, 16] parallel 1
// CHECK:           math.sqrt
func.func @norms(%g: tensor<256xf32>) -> tensor<2xf32> {
  %0 = spmd.segment_norm norm2 %g unit @unit0 : tensor<256xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Of order infinity: the largest magnitude, whatever its sign; 0 where a rank has nothing of a segment.
// CHECK-LABEL: func.func @largest
// CHECK:         kernel.segmented chunk 256
// CHECK:           %[[SIZE:.*]] = math.absf
// CHECK:           kernel.reduce <max> %[[SIZE]]
// CHECK:         kernel.cluster dims [2, 16] parallel 1
// CHECK:           arith.cmpf olt
// CHECK-NEXT:      arith.select
func.func @largest(%g: tensor<256xf32>) -> tensor<2xf32> {
  %0 = spmd.segment_norm max %g unit @unit0 : tensor<256xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Of bf16: sums in f32, one rounding.
// CHECK-LABEL: func.func @narrow_norms
// CHECK:         kernel.segmented chunk 256
// CHECK:           %[[WIDE:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK:           %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f32
// CHECK:           kernel.reduce <add> %[[SQUARE]] over [0] : f32
// CHECK:         kernel.cluster dims [2, 16] parallel 1
// CHECK:           %[[ROOT:.*]] = math.sqrt %{{.*}} : f32
// CHECK:           arith.truncf %[[ROOT]] : f32 to bf16
func.func @narrow_norms(%g: tensor<256xbf16>) -> tensor<2xbf16> {
  %0 = spmd.segment_norm norm2 %g unit @unit0 : tensor<256xbf16> -> tensor<2xbf16>
  return %0 : tensor<2xbf16>
}

// A gradient that every rank has whole: its part is copied for the kernel of the norms, which comes after the copy.
// CHECK-LABEL: func.func @whole_norms
// CHECK:         %[[PART:.*]] = kernel.cluster dims [256] parallel 1
// CHECK:         kernel.segmented chunk 256
// CHECK-NEXT:      elements(%{{.*}} = %[[PART]] : tensor<256xf32>)
func.func @whole_norms(%g: tensor<512xf32>) -> tensor<2xf32> {
  %0 = spmd.slice %g on @mesh ["data"] dim 0 pre 1 chunk 256 : tensor<512xf32> -> tensor<256xf32>
  %1 = spmd.segment_norm norm2 %0 unit @unit0 : tensor<256xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// What a chunk has no bytes for becomes a tensor before it, too.
// CHECK-LABEL: func.func @virtual_norms
// CHECK:         %[[SPREAD:.*]] = kernel.segmented chunk 256
// CHECK:         kernel.segmented chunk 256
// CHECK-NEXT:      elements(%{{.*}} = %[[SPREAD]] : tensor<256xf32>)
func.func @virtual_norms(%rate: tensor<2xf32>) -> tensor<2xf32> {
  %0 = spmd.segment_broadcast %rate unit @unit0 : tensor<2xf32> -> tensor<256xf32>
  %1 = spmd.segment_norm max %0 unit @unit0 : tensor<256xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
