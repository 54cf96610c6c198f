//===- Plan.td - the plan dialect: attributes and types -------------------===//
//
// The command plan of one program as IR: arena buffers with fixed offsets, and the commands of every stream in program
// order. It is the last IR before the artifact, and the only one in which an operand is a place and not a value.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_DIALECTS_PLAN_PLAN_TD
#define SPMD_DIALECTS_PLAN_PLAN_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::spmd::plan";
  let summary = "the command list of a rank, as data";
  let description = [{
    A `plan.program` holds the arena's buffers, the binding of the program's inputs and outputs to them, and one op per
    command. Every command has exactly one result, an event, so the number that the printer gives to the event is the
    position of the command in the program and its id in `train_step.plan.json`. Commands of one stream run in order;
    between streams only `plan.wait` orders anything.

    One plan serves all ranks: the offset of an operand is affine in the rank's mesh coordinates.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Plan_BufferClass : I32EnumAttr<"BufferClass", "what the bytes of a buffer are for", [
    I32EnumAttrCase<"parameters", 0>, I32EnumAttrCase<"gradients", 1>, I32EnumAttrCase<"optimizer_state", 2>,
    I32EnumAttrCase<"activations", 3>, I32EnumAttrCase<"gathered", 4>, I32EnumAttrCase<"io", 5>,
    I32EnumAttrCase<"workspace", 6>]> {
  let cppNamespace = "::spmd::plan";
  let genSpecializedAttr = 0;
}
def Plan_BufferClassAttr : EnumAttr<Plan_Dialect, Plan_BufferClass, "class"> {
  let assemblyFormat = "``$value";
}

def Plan_Access : I32EnumAttr<"Access", "how a command uses a range of bytes", [
    I32EnumAttrCase<"Read", 1, "r">, I32EnumAttrCase<"Write", 2, "w">, I32EnumAttrCase<"ReadWrite", 3, "rw">]> {
  let cppNamespace = "::spmd::plan";
  let genSpecializedAttr = 0;
}

/// A queue of commands; in the order that the artifact has them.
def Plan_Stream : I32Enum<"Stream", "stream", [
    I32EnumCase<"compute", 0>, I32EnumCase<"gather", 1>, I32EnumCase<"reduce", 2>,
    I32EnumCase<"scalar", 3>]> {
  let cppNamespace = "::spmd::plan";
}
def Plan_StreamAttr : EnumAttr<Plan_Dialect, Plan_Stream, "stream"> {
  let assemblyFormat = "``$value";
}

def Plan_ReductionKind : I32Enum<"ReductionKind", "reduction", [
    I32EnumCase<"sum", 0>, I32EnumCase<"max", 1>, I32EnumCase<"min", 2>, I32EnumCase<"norm2", 3>]> {
  let cppNamespace = "::spmd::plan";
}
def Plan_ReductionKindAttr : EnumAttr<Plan_Dialect, Plan_ReductionKind, "reduction"> {
  let assemblyFormat = "``$value";
}
def Plan_ReductionKindArrayAttr : TypedArrayAttrBase<Plan_ReductionKindAttr, "array of reductions">;

def Plan_Activation : I32Enum<"Activation", "activation", [
    I32EnumCase<"relu", 0>, I32EnumCase<"gelu", 1>, I32EnumCase<"gelu_tanh", 2>,
    I32EnumCase<"gelu_tanh_backward", 3>]> {
  let cppNamespace = "::spmd::plan";
}
def Plan_ActivationAttr : EnumAttr<Plan_Dialect, Plan_Activation, "activation">;

def Plan_GemmOperand : I32Enum<"GemmOperand", "matrix of a GEMM", [
    I32EnumCase<"a", 0>, I32EnumCase<"b", 1>, I32EnumCase<"c", 2>]> {
  let cppNamespace = "::spmd::plan";
}
def Plan_GemmOperandAttr : EnumAttr<Plan_Dialect, Plan_GemmOperand, "gemm_operand">;

def Plan_RefAttr : AttrDef<Plan_Dialect, "Ref"> {
  let mnemonic = "ref";
  let summary = "a range of bytes inside a buffer, and how it is used";
  let description = [{
    The bytes `[o, o + bytes)` of a buffer, where `o = offset + sum(coord[i] * c_i)` and `c_i` is the rank's coordinate
    on mesh axis i. Written `r @b3[128 + 64 * c0 : 256]`: read 256 bytes from byte 128 + 64 c0 of buffer @b3.

    An op prints its operands without the `#plan.ref<...>` around them.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$buffer, "int64_t":$offset,
                        ArrayRefParameter<"int64_t">:$coord, "int64_t":$bytes, "::spmd::plan::Access":$access);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool reads() const { return static_cast<uint32_t>(getAccess()) & 1; }
    bool writes() const { return static_cast<uint32_t>(getAccess()) & 2; }
  }];
}
def Plan_RefArrayAttr : TypedArrayAttrBase<Plan_RefAttr, "ranges of bytes used by a command">;

def Plan_EventType : TypeDef<Plan_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "the completion of one command";
}

def Plan_BytesType : TypeDef<Plan_Dialect, "Bytes"> {
  let mnemonic = "bytes";
  let summary = "a value of this many bytes, wherever they lie";
  let parameters = (ins "int64_t":$size);
  let assemblyFormat = "`<` $size `>`";
}

#endif // SPMD_DIALECTS_PLAN_PLAN_TD
