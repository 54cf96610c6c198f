//===- KernelOps.td - ops of the kernel dialect -----------------*- tablegen -*-===//

#ifndef SPMD_DIALECTS_KERNEL_OPS_TD
#define SPMD_DIALECTS_KERNEL_OPS_TD

include "KernelBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

/// An op that is one kernel: pure on tensors.
class Kernel_KernelOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<KernelOpInterface>] # traits> {
  let hasVerifier = 1;
}

def Kernel_Scalar : AnyTypeOf<[AnySignlessInteger, AnyFloat, Index], "scalar">;
def Kernel_Tensor : StaticShapeTensorOf<[AnySignlessInteger, UI8, AnyFloat]>;

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

def Kernel_ClusterOp : Kernel_KernelOp<"cluster", [IsolatedFromAbove, SingleBlock]> {
  let summary = "Scalar operations over an iteration space, fused into one kernel";
  let description = [{
    `dims` is the iteration space. Its first `parallel` dims are cut among threads; the others run inside one iteration.
    Operands and results are contiguous tensors; each has an affine map from the dims (and, as symbols, the mesh
    coordinates of the rank) to ONE element index, in which views, permutes, slices and expands are folded. A `guarded`
    operand reads 0 where its index is outside the tensor.

    The body is one block with one scalar argument per operand: its element at the current point. Every SSA value is a
    function over the iteration space. `kernel.reduce` combines it over some sequential dims, which makes it constant
    along them; passes over memory follow from that. A result whose map lacks a dim must be constant along it.

    Reductions have a fixed shape (16 lanes, 4 accumulators, a fixed tree), so the bits depend neither on threads nor
    on the vector width of the CPU. A reduction over a parallel dim is two clusters: one per block, one over blocks.

    Constraints:
    (C1) sizes are positive and `parallel` is at most their number;
    (C2) maps have all the dims and one result, and there is a body argument per operand, of its element type;
    (C3) the body holds only scalar arith, math and kernel element ops, and yields the results' element types;
    (C4) where a map is linear and free of symbols, its indices are inside the tensor, unless guarded;
    (C5) a reduction names distinct sequential dims;
    (C6) a yielded value varies only along dims of the result's map;
    (C7) the result's map has every parallel dim of size above 1, and its dims count exactly the result's elements, or
    those of its rows without their padding: the type's last dim is then the rows' leading dimension, and what lies
    between a row and the next, less than a row's alignment (spmd-pad-leading-dims), is written by nobody.

    Example, a softmax over rows:
    ```mlir
    %y = kernel.cluster dims [512, 768] parallel 1
        ins(%a = %x at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>)
        outs(at (d0, d1) -> (d0 * 768 + d1) : tensor<512x768xf32>) {
      %m = kernel.reduce <max> %a over [1] : f32
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %s = kernel.reduce <add> %e over [1] : f32
      %r = arith.divf %e, %s : f32
      kernel.yield %r : f32
    }
    ```
  }];
  let arguments = (ins
    Variadic<Kernel_Tensor>:$inputs,
    DenseI64ArrayAttr:$dims,
    I64Attr:$parallel,
    AffineMapArrayAttr:$operand_maps,
    AffineMapArrayAttr:$result_maps,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$guarded,
    OptionalAttr<StrAttr>:$symbol);
  let results = (outs Variadic<Kernel_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$outputs, "::mlir::ValueRange":$inputs, "::llvm::ArrayRef<int64_t>":$dims,
                   "int64_t":$parallel, "::llvm::ArrayRef<::mlir::AffineMap>":$operandMaps,
                   "::llvm::ArrayRef<::mlir::AffineMap>":$resultMaps,
                   CArg<"::llvm::ArrayRef<int64_t>", "{}">:$guarded)>
  ];
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    ::mlir::AffineMap getOperandMap(unsigned i) {
      return ::mlir::cast<::mlir::AffineMapAttr>(getOperandMaps()[i]).getValue();
    }
    ::mlir::AffineMap getResultMap(unsigned i) {
      return ::mlir::cast<::mlir::AffineMapAttr>(getResultMaps()[i]).getValue();
    }
  }];
}

def Kernel_SegmentedOp : Kernel_KernelOp<"segmented", [IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments]> {
  let summary = "A cluster over this rank's chunk of a flat buffer, with per-segment tables";
  let description = [{
    The iteration space is the chunk; element i of it is element `position + i` of the unit's flat buffer, `position`
    being affine in the mesh coordinates. Segment s is `[starts[s], ends[s])` of the flat buffer. What no segment
    covers is padding: results are 0 there and reductions leave it out.

    Operands are told apart by their number of elements: `elements` first (one per chunk element, argument = element at
    the point), then `tables` (one entry per segment, argument = entry of the point's segment), then `scalars` (one
    element). `kernel.segment_constant` gives a constant that differs between segments.

    Without `kernel.reduce`, all results are chunks. With it (dim 0), all results are tables of `segments x pieces`
    elements: entry (s, p) is the reduction over the p-th of `pieces` equal parts of the rank's part of segment s
    (the neutral element if that is empty); adding the pieces is another cluster.

    Constraints:
    (C1) segments are ordered, disjoint and as many as table entries; `pieces` is positive and 1 without a reduction;
    (C2) operand and result element counts are those of their kind;
    (C3) one body argument per operand and one yielded value per result, of their element types;
    (C4) either no `kernel.reduce` or every yielded value depends on elements only through one.

    ```mlir
    %p1 = kernel.segmented chunk 256 position ()[s0] -> (s0 * 256) segments [0, 128] to [100, 1000]
        elements(%p = %param : tensor<256xf32>, %g = %grad : tensor<256xf32>)
        tables(%wd = %decay : tensor<2xf32>) scalars(%lr = %rate : tensor<f32>)
        outs(tensor<256xf32>) { ... }
    ```
  }];
  let arguments = (ins
    Variadic<Kernel_Tensor>:$elements,
    Variadic<Kernel_Tensor>:$tables,
    Variadic<Kernel_Tensor>:$scalars,
    I64Attr:$chunk,
    AffineMapAttr:$position,
    DenseI64ArrayAttr:$starts,
    DenseI64ArrayAttr:$ends,
    DefaultValuedAttr<I64Attr, "1">:$pieces,
    OptionalAttr<StrAttr>:$symbol);
  let results = (outs Variadic<Kernel_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$outputs, "::mlir::ValueRange":$elements, "::mlir::ValueRange":$tables,
                   "::mlir::ValueRange":$scalars, "int64_t":$chunk, "::mlir::AffineMap":$position,
                   "::llvm::ArrayRef<int64_t>":$starts, "::llvm::ArrayRef<int64_t>":$ends,
                   CArg<"int64_t", "1">:$pieces)>
  ];
  let extraClassDeclaration = [{
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    /// Whether the body reduces over segments.
    bool hasReduction();
  }];
}

//===----------------------------------------------------------------------===//
// Element ops: only inside a body
//===----------------------------------------------------------------------===//

/// Ops with a body of scalar operations over an iteration space.
defvar Kernel_BodyParents = ["ClusterOp", "SegmentedOp", "AttentionOp", "AttentionBackwardOp"];

def Kernel_IndexOp : Kernel_Op<"index", [Pure, ParentOneOf<Kernel_BodyParents>]> {
  let summary = "Position along one dim of the iteration space";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
}

def Kernel_CoordOp : Kernel_Op<"coord", [Pure, ParentOneOf<Kernel_BodyParents>]> {
  let summary = "Coordinate of this rank along one mesh axis";
  let arguments = (ins I64Attr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Kernel_ReduceOp : Kernel_Op<"reduce", [Pure, SameOperandsAndResultType,
                                           ParentOneOf<["ClusterOp", "SegmentedOp"]>]> {
  let summary = "Combines a value over some sequential dims";
  let description = [{
    `max` and `min` give NaN when any value is NaN; on i1 they are or and and; on wider integers they are signed.
  }];
  let arguments = (ins Kernel_ReduceKindAttr:$kind, AnyTypeOf<[AnySignlessInteger, AnyFloat]>:$value,
                       DenseI64ArrayAttr:$over);
  let results = (outs AnyTypeOf<[AnySignlessInteger, AnyFloat]>:$result);
  let assemblyFormat = "$kind $value `over` $over attr-dict `:` type($value)";
}

def Kernel_SegmentConstantOp : Kernel_Op<"segment_constant", [Pure, HasParent<"SegmentedOp">]> {
  let summary = "A constant per segment: its entry for the segment of the current element";
  let arguments = (ins ElementsAttr:$values);
  let results = (outs Kernel_Scalar:$result);
  let assemblyFormat = "$values attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kernel_UniformOp : Kernel_Op<"uniform", [Pure, ParentOneOf<Kernel_BodyParents>]> {
  let summary = "A random number in [0, 1), a function of seed, step, element and stream";
  let description = [{
    Word `word` of Philox4x32-10 with the seed as key and (index, stream, step) as counter, its upper 24 bits as a
    fraction: [Note: random numbers] in Runtime/Core/Philox.h. `seed` and `step` are the same for all elements.
  }];
  let arguments = (ins I64:$seed, I64:$step, I64:$index, I64Attr:$stream,
                       ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<3>]>:$word);
  let results = (outs F32:$result);
  let assemblyFormat = "$seed `,` $step `,` $index `stream` $stream `word` $word attr-dict";
}

def Kernel_YieldOp : Kernel_Op<"yield", [Pure, Terminator, ParentOneOf<Kernel_BodyParents>]> {
  let summary = "Ends a body: one value per result";
  let arguments = (ins Variadic<Kernel_Scalar>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Heavy ops
//===----------------------------------------------------------------------===//

def Kernel_GemmOp : Kernel_KernelOp<"gemm", [
    AttrSizedOperandSegments, AttrSizedResultSegments,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Matrix product, batched, of row-major views, with an epilogue; a library call";
  let description = [{
    `result[i] = activation(op(A_i) * op(B_i) + bias + residual[i])` for i < batch, where A_i starts at element
    `a_offset + i * a_stride` of `a` and has leading dimension `lda` (likewise B), op transposes when `trans_a` /
    `trans_b` is there, and the result is batch x m x `ldc`, of which each row's first n elements are written; without
    `ldc` it is contiguous. op(A) is m x k, op(B) is k x n.

    What comes after the product is its epilogue, of which a library may have parts: `bias` has an element per column;
    `residual` has the elements of the result, which may overwrite it, as when a gradient is accumulated; `activation`
    is `relu`, `gelu` or `gelu_tanh` (gelu with PyTorch's approximate="tanh"), and then `pre_activation`, if it is
    wanted, is what it is applied to. The order is that of the formula. Our own products (f32, on CPUs) round every
    step, as ops of their own would; a library may round once.

    `activation gelu_tanh_backward pre_activation(h)` is the gradient of gelu_tanh instead:
    `result[i] = op(A_i) * op(B_i) * gelu_tanh'(h[i])`, where the product is the gradient of gelu_tanh(h), and is not
    rounded before (in f32; of f64 in f64).

    `bias_gradient_of` is a matrix that is also to be summed: of a, `bias_gradient` has the sum over k of each row of
    op(A), of b that of each column of op(B), of c that of each column of the result as it is in memory. That is the
    gradient of a bias where the matrix is the gradient of what the bias made: an operand, where the product is the
    gradient of the weight, or the result of gelu_tanh_backward. Sums are in f32 (of f64 in f64) and rounded once.

    Constraints: (C1) sizes positive; (C2) one element type: f32, f64, or bf16 or f16, then summed in f32; (C3) views inside
    their tensors and leading dimensions at least a row; (C4) result, residual and pre_activation have batch * m * ldc
    elements, bias has n; (C5) a result pre_activation only with an activation, an operand with gelu_tanh_backward and
    only there, without bias, residual and a result pre_activation; (C6) bias_gradient only with bias_gradient_of, of m
    elements for a and n for b and c, in a batch of 1; for a and b without bias and activation, for c with
    gelu_tanh_backward.

    ```mlir
    %y, %x = kernel.gemm m 8 n 6 k 4 a(%a ld 4 : tensor<8x4xf32>) b(%b ld 4 trans : tensor<6x4xf32>)
        bias(%bias : tensor<6xf32>) residual(%r : tensor<8x6xf32>) activation gelu_tanh
        -> tensor<8x6xf32>, pre_activation tensor<8x6xf32>
    %dw, %db = kernel.gemm m 6 n 4 k 8 a(%dy ld 6 trans : tensor<8x6xf32>) b(%x ld 4 : tensor<8x4xf32>)
        bias_gradient_of a -> tensor<6x4xf32>, bias_gradient tensor<6xf32>
    %dh, %dc = kernel.gemm m 8 n 6 k 4 a(%dg ld 4 : tensor<8x4xf32>) b(%v ld 6 : tensor<4x6xf32>)
        activation gelu_tanh_backward pre_activation(%h : tensor<8x6xf32>) bias_gradient_of c
        -> tensor<8x6xf32>, bias_gradient tensor<6xf32>
    ```
  }];
  let arguments = (ins
    Kernel_Tensor:$a, Kernel_Tensor:$b, Optional<Kernel_Tensor>:$residual, Optional<Kernel_Tensor>:$bias,
    Optional<Kernel_Tensor>:$saved_pre_activation,
    I64Attr:$m, I64Attr:$n, I64Attr:$k, DefaultValuedOptionalAttr<I64Attr, "1">:$batch,
    UnitAttr:$trans_a, UnitAttr:$trans_b,
    DefaultValuedOptionalAttr<I64Attr, "0">:$a_offset, I64Attr:$lda, DefaultValuedOptionalAttr<I64Attr, "0">:$a_stride,
    DefaultValuedOptionalAttr<I64Attr, "0">:$b_offset, I64Attr:$ldb, DefaultValuedOptionalAttr<I64Attr, "0">:$b_stride,
    OptionalAttr<Kernel_ActivationAttr>:$activation, OptionalAttr<Kernel_GemmOperandAttr>:$bias_gradient_of,
    OptionalAttr<I64Attr>:$ldc);
  let results = (outs Kernel_Tensor:$result, Optional<Kernel_Tensor>:$pre_activation,
                      Optional<Kernel_Tensor>:$bias_gradient);
  let assemblyFormat = [{
    `m` $m `n` $n `k` $k (`batch` $batch^)?
    `a` `(` $a `ld` $lda (`offset` $a_offset^)? (`stride` $a_stride^)? (`trans` $trans_a^)? `:` type($a) `)`
    `b` `(` $b `ld` $ldb (`offset` $b_offset^)? (`stride` $b_stride^)? (`trans` $trans_b^)? `:` type($b) `)`
    (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    (`activation` $activation^)?
    (`pre_activation` `(` $saved_pre_activation^ `:` type($saved_pre_activation) `)`)?
    (`bias_gradient_of` $bias_gradient_of^)? (`ldc` $ldc^)? attr-dict
    `->` type($result) `` custom<SideResult>(type($pre_activation), type($bias_gradient))
  }];
  let extraClassDeclaration = [{
    bool isGenerated() { return false; }
    bool isGeluTanhBackward() { return getActivation() == Activation::GeluTanhBackward; }
    /// Elements from a row of the result, of the residual and of either pre_activation to the next.
    int64_t getResultLd() { return getLdc().value_or(getN()); }
  }];
}

def Kernel_GroupedGemmOp : Kernel_KernelOp<"grouped_gemm"> {
  let summary = "Rows times the matrix of their group (the experts of a mixture)";
  let description = [{
    `result[s, :] = a[s, :] * op(B_g)` with `g = groups[s]`, for s < m; zeros where that is none of the `num_groups`
    groups. Rows are contiguous. B_g starts at element `b_offset + g * b_stride` of `b` and has leading dimension `ldb`;
    op transposes when `trans_b` is there; op(B_g) is k x n. Rows may come in any order.

    Constraints: (C1) sizes positive; (C2) one element type: f32, f64, or bf16 or f16, then summed in f32; groups are
    i32 or i64; (C3) the view of b inside its tensor and its leading dimension at least a row; (C4) a has m * k, groups
    m, the result m * n elements.

    ```mlir
    %y = kernel.grouped_gemm m 8 n 6 k 4 groups 3(%g : tensor<8xi64>) a(%a : tensor<8x4xf32>)
        b(%b ld 4 stride 24 trans : tensor<3x6x4xf32>) -> tensor<8x6xf32>
    ```
  }];
  let arguments = (ins
    Kernel_Tensor:$a, Kernel_Tensor:$b, Kernel_Tensor:$groups,
    I64Attr:$m, I64Attr:$n, I64Attr:$k, I64Attr:$num_groups, UnitAttr:$trans_b,
    DefaultValuedOptionalAttr<I64Attr, "0">:$b_offset, I64Attr:$ldb, I64Attr:$b_stride, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Kernel_Tensor:$result);
  let assemblyFormat = [{
    `m` $m `n` $n `k` $k `groups` $num_groups `(` $groups `:` type($groups) `)` `a` `(` $a `:` type($a) `)`
    `b` `(` $b `ld` $ldb (`offset` $b_offset^)? `stride` $b_stride (`trans` $trans_b^)? `:` type($b) `)`
    attr-dict `->` type($result)
  }];
}

def Kernel_GroupedOuterOp : Kernel_KernelOp<"grouped_outer"> {
  let summary = "Sums of outer products of rows, by group (gradients of experts)";
  let description = [{
    `result[g, :, :] = sum over s with groups[s] = g of transpose(a[s, :]) * b[s, :]`, in order of s, for g <
    num_groups. Rows of a have m elements, rows of b n; they are contiguous. Rows of no group are left out.

    Constraints: (C1) sizes positive; (C2) one element type: f32, f64, or bf16 or f16, then summed in f32; groups are
    i32 or i64; (C3) a has rows * m, b rows * n, groups rows, the result num_groups * m * n elements.

    ```mlir
    %y = kernel.grouped_outer rows 8 m 4 n 6 groups 3(%g : tensor<8xi64>) a(%a : tensor<8x4xf32>)
        b(%b : tensor<8x6xf32>) -> tensor<3x4x6xf32>
    ```
  }];
  let arguments = (ins
    Kernel_Tensor:$a, Kernel_Tensor:$b, Kernel_Tensor:$groups,
    I64Attr:$rows, I64Attr:$m, I64Attr:$n, I64Attr:$num_groups, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Kernel_Tensor:$result);
  let assemblyFormat = [{
    `rows` $rows `m` $m `n` $n `groups` $num_groups `(` $groups `:` type($groups) `)` `a` `(` $a `:` type($a) `)`
    `b` `(` $b `:` type($b) `)` attr-dict `->` type($result)
  }];
}

/// What attention's forward and backward have in common.
class Kernel_AttentionLikeOp<string mnemonic, list<Trait> traits = []>
    : Kernel_KernelOp<mnemonic, [IsolatedFromAbove, SingleBlock] # traits> {
  let regions = (region AnyRegion:$mask);
  let hasRegionVerifier = 1;
}

def Kernel_AttentionOp : Kernel_AttentionLikeOp<"attention"> {
  let summary = "Scaled dot-product attention, forward";
  let description = [{
    `out = softmax(scale * q k^T + mask) v` per batch and head, and the row log-sum-exp `lse`, contiguous
    [batch, heads, qLen], f32. q, k, v and out are views of flat tensors, so heads need not be made contiguous; `out`
    must be covered by its view. A query that sees no key has out 0 and lse -inf.

    `mask` is a body of scalar operations over [batch, head, query, key], as a cluster's, that yields i1 (the score
    stays where true, else it is -inf) or f32 (added to the score). It is computed where scores are, so a mask made of
    positions, of padding or of a table takes no memory; what its positions say (`key <= query`, a window) bounds the
    loops (AttentionMask.h). Without `mask` every query sees every key.

    Constraints: (C1) sizes positive and heads a multiple of kvHeads; (C2) one element type, f32, bf16 or f16, computed
    in f32; (C3) views inside their tensors; (C4) a mask is a body as (C2) to (C4) of kernel.cluster say, over
    [batch, heads, qLen, kvLen], that yields one i1 or f32 and reduces nothing; (C5) lse has batch * heads * qLen
    elements.

    Example, causal with padding:
    ```mlir
    %out, %lse = kernel.attention
        <batch = 2, heads = 3, kvHeads = 3, qLen = 8, kvLen = 8, headDim = 4, vDim = 4> scale 0.5
        q(%q at <offset = 0, batch = 96, head = 32, row = 4> : tensor<2x3x8x4xf32>)
        k(%k at <offset = 0, batch = 96, head = 32, row = 4> : tensor<2x3x8x4xf32>)
        v(%v at <offset = 0, batch = 96, head = 32, row = 4> : tensor<2x3x8x4xf32>)
        mask(%p = %padding at (d0, d1, d2, d3) -> (d0 * 8 + d3) : tensor<2x8xi1>) {
      %t = kernel.index 2
      %s = kernel.index 3
      %c = arith.cmpi sle, %s, %t : index
      %m = arith.andi %c, %p : i1
      kernel.yield %m : i1
    } out(<offset = 0, batch = 96, head = 32, row = 4> : tensor<2x3x8x4xf32>) lse(tensor<2x3x8xf32>)
    ```
  }];
  let arguments = (ins
    Kernel_Tensor:$q, Kernel_Tensor:$k, Kernel_Tensor:$v, Variadic<Kernel_Tensor>:$mask_inputs,
    Kernel_AttentionSizesAttr:$sizes, F64Attr:$scale,
    Kernel_ViewAttr:$q_view, Kernel_ViewAttr:$k_view, Kernel_ViewAttr:$v_view, AffineMapArrayAttr:$mask_maps,
    Kernel_ViewAttr:$out_view, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Kernel_Tensor:$out, Kernel_Tensor:$lse);
  let assemblyFormat = [{
    $sizes `scale` $scale
    `q` `(` $q `at` $q_view `:` type($q) `)` `k` `(` $k `at` $k_view `:` type($k) `)`
    `v` `(` $v `at` $v_view `:` type($v) `)` custom<Mask>($mask_inputs, type($mask_inputs), $mask_maps, $mask)
    `out` `(` $out_view `:` type($out) `)` `lse` `(` type($lse) `)` attr-dict
  }];
}

def Kernel_AttentionBackwardOp : Kernel_AttentionLikeOp<"attention_backward", [AttrSizedResultSegments]> {
  let summary = "Scaled dot-product attention, backward";
  let description = [{
    Gradients of q, k and v from the gradient of out, recomputing probabilities from `lse`. There are three,
    or one tensor that holds all three at their views (the gradient of a packed qkv projection); views must cover them.
    `mask_grad` is the gradient of an f32 mask, summed over batch or heads where it has one of them.

    Constraints: as kernel.attention, and (C6) one or three gradients; (C7) mask_grad is f32
    [1 or batch, 1 or heads, qLen, kvLen], and the mask yields f32.
  }];
  let arguments = (ins
    Kernel_Tensor:$dout, Kernel_Tensor:$q, Kernel_Tensor:$k, Kernel_Tensor:$v, Variadic<Kernel_Tensor>:$mask_inputs,
    Kernel_Tensor:$out, Kernel_Tensor:$lse,
    Kernel_AttentionSizesAttr:$sizes, F64Attr:$scale,
    Kernel_ViewAttr:$dout_view, Kernel_ViewAttr:$q_view, Kernel_ViewAttr:$k_view, Kernel_ViewAttr:$v_view,
    AffineMapArrayAttr:$mask_maps, Kernel_ViewAttr:$out_view,
    Kernel_ViewAttr:$dq_view, Kernel_ViewAttr:$dk_view, Kernel_ViewAttr:$dv_view, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Variadic<Kernel_Tensor>:$grads, Optional<Kernel_Tensor>:$mask_grad);
  let assemblyFormat = [{
    $sizes `scale` $scale `dout` `(` $dout `at` $dout_view `:` type($dout) `)`
    `q` `(` $q `at` $q_view `:` type($q) `)` `k` `(` $k `at` $k_view `:` type($k) `)`
    `v` `(` $v `at` $v_view `:` type($v) `)` custom<Mask>($mask_inputs, type($mask_inputs), $mask_maps, $mask)
    `out` `(` $out `at` $out_view `:` type($out) `)` `lse` `(` $lse `:` type($lse) `)`
    `dq` `(` $dq_view `)` `dk` `(` $dk_view `)` `dv` `(` $dv_view `)` (`mask_grad` `(` type($mask_grad)^ `)`)? attr-dict
    `->` type($grads)
  }];
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

def Kernel_GatherRowsOp : Kernel_KernelOp<"gather_rows"> {
  let summary = "Rows of a table by index (embedding, gather)";
  let description = [{
    `result[b, i, :] = table[b, ids[b, i], :]` for the `batch` tables of `rows` rows (its first dim, if not given) that
    lie one after the other; rows of zeros where an id is outside the table. The row size is the number of table
    elements over its rows.

    Constraints: (C1) table has at least one dim, and its elements are rows of equal size; ids are i32 or i64; (C2) ids
    divide into batches; result has ids' elements times the row size, of the table's element type.
  }];
  let arguments = (ins Kernel_Tensor:$table, Kernel_Tensor:$ids, DefaultValuedOptionalAttr<I64Attr, "1">:$batch,
                       OptionalAttr<I64Attr>:$rows, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Kernel_Tensor:$result);
  let assemblyFormat = [{
    $table `,` $ids (`batch` $batch^)? (`rows` $rows^)? attr-dict `:` functional-type(operands, $result)
  }];
  let extraClassDeclaration = [{
    /// Rows of one table, and elements of a row.
    int64_t getNumRows();
    int64_t getRowSize();
  }];
}

def Kernel_ScatterRowsOp : Kernel_KernelOp<"scatter_rows"> {
  let summary = "Combines rows into a table by index, in the order of the rows (embedding backward, scatter)";
  let description = [{
    `result = into` (zeros without it), then for i in order, in each of `batch` tables of `rows` rows:
    `result[b, ids[b, i], :] = kind(result[b, ids[b, i], :], src[b, i, :])`, leaving out ids that are `padding_idx` or
    outside the table. `set` takes the row of src. The result may overwrite `into`.

    Constraints: (C1) ids are i32 or i64, batch and rows positive; (C2) src has ids' elements times the row size, the
    result batch times `rows` times; element types are equal; (C3) into has the result's elements.
  }];
  let arguments = (ins Kernel_ScatterKindAttr:$kind, Kernel_Tensor:$src, Kernel_Tensor:$ids,
                       Optional<Kernel_Tensor>:$into, DefaultValuedOptionalAttr<I64Attr, "1">:$batch, I64Attr:$rows,
                       DefaultValuedOptionalAttr<I64Attr, "-1">:$padding_idx, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Kernel_Tensor:$result);
  let assemblyFormat = [{
    $kind $src `,` $ids (`into` $into^)? (`batch` $batch^)? `rows` $rows (`padding_idx` $padding_idx^)? attr-dict
    `:` functional-type(operands, $result)
  }];
  let extraClassDeclaration = [{
    int64_t getRowSize();
    /// Iterations per table: each owns a range of its rows.
    int64_t getIterationsPerTable();
  }];
}

def Kernel_SortOp : Kernel_KernelOp<"sort"> {
  let summary = "Sorts rows";
  let description = [{
    The elements of each row of `size` elements in ascending or `descending` order, and the place in its row from which
    each of them comes. Equal elements keep their order; not-a-number counts as greatest.

    Constraints: (C1) size is positive and divides the elements; (C2) values are like self, indices i64, as many.
  }];
  let arguments = (ins Kernel_Tensor:$self, I64Attr:$size, UnitAttr:$descending, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Kernel_Tensor:$values, Kernel_Tensor:$indices);
  let assemblyFormat = "$self `size` $size (`descending` $descending^)? attr-dict `:` functional-type($self, results)";
}

def Kernel_CustomCallOp : Kernel_KernelOp<"custom_call"> {
  let summary = "A function of the user's own, in a shared library or a cubin (docs/custom-kernels.md)";
  let description = [{
    On CPUs, calls `function` of `library`, whose bytes have `hash`, once: with an array of its arguments and one of its
    results, as DLTensors. `arguments` has unit for the next input, whose shape is that of `shapes`, else a number or
    numbers. On GPUs, launches `launch` of the one of `cubins` ("CHIP HASH FILE") that is for the chip.

    Constraints: (C1) there is a unit, and a shape, for each input; (C2) a shape has its input's elements; (C3) there is a
    result; (C4) there is a function, with library and hash, or a launch, with cubins; (C5) a launch has three sizes of
    the grid and of the block, and takes tensors that there are, or numbers.
  }];
  let arguments = (ins Variadic<Kernel_Tensor>:$inputs, OptionalAttr<StrAttr>:$library, OptionalAttr<StrAttr>:$hash,
                       OptionalAttr<StrAttr>:$function, ArrayAttr:$arguments, ArrayAttr:$shapes,
                       OptionalAttr<Kernel_LaunchAttr>:$launch, OptionalAttr<StrArrayAttr>:$cubins,
                       OptionalAttr<StrAttr>:$symbol);
  let results = (outs Variadic<Kernel_Tensor>:$results);
  let assemblyFormat = [{
    ($function^ `of` $library `hash` $hash)? `(` $inputs `)` `arguments` $arguments `shapes` $shapes
    (`launch` $launch^ `of` $cubins)? attr-dict `:` functional-type($inputs, $results)
  }];
}

def Kernel_CheckIndexOp : Kernel_Op<"check_index", [MemoryEffects<[MemWrite]>]> {
  let summary = "Ends the step with an error when a row number is out of range";
  let description = [{
    Every element of `ids` must lie in `[low, high)` or be `ignore_index`; `use` is the op that reads rows by them, for
    the message. Kernels that come later may not run before it.

    Constraints: ids are i1, i8, i16, i32 or i64.
  }];
  let arguments = (ins TensorOf<[I1, I8, I16, I32, I64]>:$ids, I64Attr:$low, I64Attr:$high,
                       OptionalAttr<I64Attr>:$ignore_index, StrAttr:$use);
  let assemblyFormat = "$ids `in` $low `to` $high (`or` $ignore_index^)? `for` $use attr-dict `:` type($ids)";
}

def Kernel_CopyOp : Kernel_KernelOp<"copy"> {
  let summary = "Moves pieces of tensors to one result (cat, slice backward, change of layout)";
  let description = [{
    Pieces are disjoint and cover the result together: each element is written once, so pieces run in parallel. Zeros
    are a piece of their own (`zero`).

    Constraints: (C1) sources exist; (C2) maps have the piece's dims and one result and stay inside their tensors;
    (C3) one element type; (C4) the pieces' sizes add up to the result.

    ```mlir
    %y = kernel.copy %a, %b pieces [
        #kernel.piece<0 [4, 8] (d0, d1) -> (d0 * 8 + d1) to (d0, d1) -> (d0 * 20 + d1)>,
        #kernel.piece<zero [4, 12] to (d0, d1) -> (d0 * 20 + d1 + 8)>] : (...) -> tensor<4x20xf32>
    ```
  }];
  let arguments = (ins Variadic<Kernel_Tensor>:$sources, Kernel_PieceArrayAttr:$pieces, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Kernel_Tensor:$result);
  let assemblyFormat = "$sources `pieces` $pieces attr-dict `:` functional-type($sources, $result)";
}

#endif // SPMD_DIALECTS_KERNEL_OPS_TD
