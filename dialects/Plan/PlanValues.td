//===- PlanValues.td - the program in values, that a plan must compute ----===//
#ifndef SPMD_DIALECTS_PLAN_PLANVALUES_TD
#define SPMD_DIALECTS_PLAN_PLANVALUES_TD

include "dialects/Plan/PlanOperations.td"
include "dialects/Plan/PlanOps.td"

def Plan_DataflowOp : Plan_Op<"dataflow", [IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "what the step computes, apart from where and when";
  let description = [{
    The step as it was before its values had bytes: what it is given, every operation with its constants and operands,
    and what each state and output is in the end. It becomes the manifest's table "values", against which compiler and
    loader hold the plan (rule 8 of the certificate). An operation is a command with its constants; a view of a
    value is a part of it, a packed buffer is a join. `iteration` is that of `plan.program`, of ops by position.
    ```mlir
    plan.dataflow {
      %0 = plan.source #spmd.shard<@unit0, "param"> type tensor<128xf32> : !plan.bytes<512>
      %1 = plan.compute #plan.collective<all_gather f32 counts[128] unit "unit0">(%0) : (!plan.bytes<512>) -> !plan.bytes<1024>
      %2 = plan.part %1 at 0 segment "w" of "unit0" : !plan.bytes<1024> -> !plan.bytes<256>
      %3 = plan.compute #plan.kernel<@k0>(%2) : (!plan.bytes<256>) -> !plan.bytes<4>
      plan.target %3 is #spmd.loss<""> type tensor<f32> : !plan.bytes<4>
    }
    ```
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<DenseI64ArrayAttr, [DenseArrayCount<2>]>>:$iteration);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

class Plan_ValueOp<string mnemonic> : Plan_Op<mnemonic, [HasParent<"DataflowOp">]>;

def Plan_SourceOp : Plan_ValueOp<"source"> {
  let summary = "what an argument of the step holds when the step begins";
  let arguments = (ins AnyAttr:$role, TypeAttr:$tensor);
  let results = (outs Plan_BytesType:$value);
  let assemblyFormat = "$role `type` $tensor attr-dict `:` type($value)";
}

def Plan_ComputeOp : Plan_ValueOp<"compute"> {
  let summary = "the results of an operation";
  let description = [{
    Without results it is there for what it finds: the check of row numbers. `reads`, if it is there, says of each
    result the numbers of the operands that it is made of, since a kernel may be loops that share nothing; otherwise all
    are. `by_rank` has the numbers of the results that differ between ranks even where all operands are the same: a
    kernel made them with the rank's number, as when it cuts the rank's own chunk from a whole buffer. `along` are the
    axes of the mesh whose coordinates it reads; all if it is not there.
  }];
  let arguments = (ins Plan_OperationAttr:$what, Variadic<Plan_BytesType>:$operands,
                       OptionalAttr<TypedArrayAttrBase<DenseI32ArrayAttr, "numbers of operands">>:$reads,
                       OptionalAttr<DenseI32ArrayAttr>:$by_rank, OptionalAttr<StrArrayAttr>:$along);
  let results = (outs Variadic<Plan_BytesType>:$values);
  let assemblyFormat = "$what `(` $operands `)` attr-dict `:` functional-type($operands, $values)";
}

def Plan_PartOp : Plan_ValueOp<"part"> {
  let summary = "bytes of a value, from byte `at` on";
  let description = [{ Of a unit's flat buffer it is the segment of parameter `segment`. }];
  let arguments = (ins Plan_BytesType:$whole, I64Attr:$at, OptionalAttr<StrAttr>:$segment, OptionalAttr<StrAttr>:$unit);
  let results = (outs Plan_BytesType:$value);
  let assemblyFormat = [{
    $whole `at` $at (`segment` $segment^ `of` $unit)? attr-dict `:` type($whole) `->` type($value)
  }];
}

def Plan_JoinOp : Plan_ValueOp<"join"> {
  let summary = "a unit's flat buffer: segments of parameters at ascending bytes, zeros between them";
  let arguments = (ins Variadic<Plan_BytesType>:$parts, DenseI64ArrayAttr:$at, StrArrayAttr:$segments,
                       StrAttr:$unit);
  let results = (outs Plan_BytesType:$value);
  let assemblyFormat = [{
    `(` $parts `)` `at` $at `segments` $segments `of` $unit attr-dict `:` functional-type($parts, $value)
  }];
}

def Plan_TargetOp : Plan_ValueOp<"target"> {
  let summary = "what an updated argument or an output holds when the step ends";
  let arguments = (ins Plan_BytesType:$value, AnyAttr:$role, TypeAttr:$tensor);
  let assemblyFormat = "$value `is` $role `type` $tensor attr-dict `:` type($value)";
}

#endif // SPMD_DIALECTS_PLAN_PLANVALUES_TD
