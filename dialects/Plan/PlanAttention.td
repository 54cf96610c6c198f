//===- PlanAttention.td - what an attention of a plan computes ------------===//
#ifndef SPMD_DIALECTS_PLAN_PLANATTENTION_TD
#define SPMD_DIALECTS_PLAN_PLANATTENTION_TD

include "dialects/Plan/Plan.td"

/// What a mask does to a score, beyond the window of keys that its positions leave; in the order of Kinds.def.
def Plan_AttentionMask : I32Enum<"AttentionMask", "mask of an attention", [
    I32EnumCase<"condition", 0>, I32EnumCase<"added", 1>]> {
  let cppNamespace = "::spmd::plan";
}
def Plan_AttentionMaskAttr : EnumAttr<Plan_Dialect, Plan_AttentionMask, "attention_mask">;

def Plan_ViewAttr : AttrDef<Plan_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "where [batch, head, row, column] lies in a range of bytes";
  let description = [{
    Element (b, h, t, c) is at `offset + b * batch + h * head + t * row + c`, counted in elements from the first byte.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$batch, "int64_t":$head, "int64_t":$row);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Plan_AttentionShapeAttr : AttrDef<Plan_Dialect, "AttentionShape"> {
  let mnemonic = "attention_shape";
  let summary = "what an attention computes, or with views of gradients its backward";
  let description = [{
    `softmax(scale * q k^T + mask) v` per batch and head: sizes, the element type, the views of its operands and
    results, and of its mask what a library can be told. Query t sees the keys in `[t + low, t + high]`, which is no
    bound where one is missing: `high = 0` is causal. A mask that says more is a `condition`, which leaves out the pairs
    where it is false, or `added` to the score; what it computes, the kernel knows. Query head h has key and value head
    `h / (heads / kvHeads)`.

    Constraints: (S1) sizes are positive, and heads a multiple of kvHeads; (S2) elements are f32, bf16 or f16, and the
    scale is finite; (S3) offsets and strides are not negative; (S4) there are views of all gradients or of none.
  }];
  let parameters = (ins "::mlir::Type":$dtype, "int64_t":$batch, "int64_t":$heads, "int64_t":$kvHeads, "int64_t":$qLen,
                        "int64_t":$kvLen, "int64_t":$headDim, "int64_t":$vDim, "::mlir::FloatAttr":$scale,
                        OptionalParameter<"::spmd::plan::AttentionMaskAttr">:$mask,
                        OptionalParameter<"std::optional<int64_t>">:$low,
                        OptionalParameter<"std::optional<int64_t>">:$high, "::spmd::plan::ViewAttr":$q,
                        "::spmd::plan::ViewAttr":$k, "::spmd::plan::ViewAttr":$v, "::spmd::plan::ViewAttr":$out,
                        OptionalParameter<"::spmd::plan::ViewAttr">:$dout,
                        OptionalParameter<"::spmd::plan::ViewAttr">:$dq,
                        OptionalParameter<"::spmd::plan::ViewAttr">:$dk,
                        OptionalParameter<"::spmd::plan::ViewAttr">:$dv);
  let assemblyFormat = [{
    `<` $dtype `,` struct($batch, $heads, $kvHeads, $qLen, $kvLen, $headDim, $vDim, $scale, $mask, $low, $high, $q,
                          $k, $v, $out, $dout, $dq, $dk, $dv) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = "bool isBackward() const { return static_cast<bool>(getDout()); }";
}

#endif // SPMD_DIALECTS_PLAN_PLANATTENTION_TD
