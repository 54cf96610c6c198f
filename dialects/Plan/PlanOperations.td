//===- PlanOperations.td - what commands compute, as attributes -----------===//
#ifndef SPMD_DIALECTS_PLAN_PLANOPERATIONS_TD
#define SPMD_DIALECTS_PLAN_PLANOPERATIONS_TD

include "dialects/Plan/PlanAttention.td"

/// A collective by its name (Kinds.def).
def Plan_CollectiveKindParameter : AttrParameter<"::spmd::plan::CollectiveKind", "kind of a collective"> {
  let parser = "::spmd::plan::parseCollective($_parser)";
  let printer = "$_printer << ::spmd::runtime::nameOf($_self)";
}

/// A command with all its constants, without where its operands lie, when it runs and in what pieces.
class Plan_Operation<string name, string attributeMnemonic> : AttrDef<Plan_Dialect, name # "Operation"> {
  let mnemonic = attributeMnemonic;
}

def Plan_KernelOperationAttr : Plan_Operation<"Kernel", "kernel"> {
  let summary = "a kernel, whose arguments are the operands, which it reads, and then the results, which it writes";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$kernel);
  let assemblyFormat = "`<` $kernel `>`";
}

def Plan_AttentionOperationAttr : Plan_Operation<"Attention", "attention"> {
  let summary = "a kernel that computes an attention or its backward; operands and results are its arguments";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$kernel, "::spmd::plan::AttentionShapeAttr":$shape);
  let assemblyFormat = "`<` $kernel $shape `>`";
}

def Plan_GemmOperationAttr : Plan_Operation<"Gemm", "gemm"> {
  let summary = "a GEMM: sizes, leading dimensions, strides of a batch, and what its epilogue takes and gives";
  let parameters = (ins "::mlir::Type":$dtype, "int64_t":$m, "int64_t":$n, "int64_t":$k, "int64_t":$lda,
                        "int64_t":$ldb, "int64_t":$ldc, DefaultValuedParameter<"bool", "false">:$trans_a,
                        DefaultValuedParameter<"bool", "false">:$trans_b, DefaultValuedParameter<"int64_t", "1">:$batch,
                        DefaultValuedParameter<"int64_t", "0">:$stride_a, DefaultValuedParameter<"int64_t", "0">:$stride_b,
                        DefaultValuedParameter<"int64_t", "0">:$stride_c, DefaultValuedParameter<"bool", "false">:$bias,
                        DefaultValuedParameter<"bool", "false">:$residual,
                        OptionalParameter<"::spmd::plan::ActivationAttr">:$activation,
                        DefaultValuedParameter<"bool", "false">:$pre_activation,
                        OptionalParameter<"::spmd::plan::GemmOperandAttr">:$bias_gradient_of);
  let assemblyFormat = [{
    `<` $dtype `,` struct($m, $n, $k, $lda, $ldb, $ldc, $trans_a, $trans_b, $batch, $stride_a, $stride_b, $stride_c, $bias,
                          $residual, $activation, $pre_activation, $bias_gradient_of) `>`
  }];
}

def Plan_CollectiveOperationAttr : Plan_Operation<"Collective", "collective"> {
  let summary = "a collective, of which unit it is, and along which axes of the mesh where these are not all";
  let description = [{ Counts are elements, one for each operand; where values are combined, so are reductions. }];
  let parameters = (ins Plan_CollectiveKindParameter:$kind, "::mlir::Type":$dtype,
                        OptionalArrayRefParameter<"int64_t">:$counts,
                        OptionalArrayRefParameter<"::spmd::plan::ReductionKind">:$reductions,
                        OptionalParameter<"::mlir::StringAttr">:$unit,
                        OptionalArrayRefParameter<"::mlir::StringAttr">:$axes);
  let assemblyFormat = [{
    `<` $kind $dtype (`reduce` `[` $reductions^ `]`)? `counts` `[` $counts `]` (`along` `[` $axes^ `]`)? (`unit` $unit^)? `>`
  }];
}

def Plan_CheckIndexOperationAttr : Plan_Operation<"CheckIndex", "check_index"> {
  let summary = "a check that integers are in [low, high), or `ignore_index`";
  let parameters = (ins "::mlir::Type":$dtype, "int64_t":$count, "int64_t":$low, "int64_t":$high,
                        OptionalParameter<"std::optional<int64_t>">:$ignore_index, "::mlir::StringAttr":$use);
  let assemblyFormat = "`<` $dtype `,` struct($count, $low, $high, $ignore_index, $use) `>`";
}

def Plan_OperationAttr : AnyAttrOf<[Plan_KernelOperationAttr, Plan_AttentionOperationAttr, Plan_GemmOperationAttr,
                                    Plan_CollectiveOperationAttr, Plan_CheckIndexOperationAttr], "what a command computes">;

#endif // SPMD_DIALECTS_PLAN_PLANOPERATIONS_TD
