//===- KernelBase.td - kernel dialect, attributes, interface ----*- tablegen -*-===//

#ifndef SPMD_DIALECTS_KERNEL_BASE_TD
#define SPMD_DIALECTS_KERNEL_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::spmd::kernel";
  let summary = "What one rank computes between two collectives, one op per generated or library kernel";
  let description = [{
    One op is one kernel: a fused cluster of scalar operations over an iteration space, a GEMM, an attention, a row
    gather or scatter, a copy. Values are whole, contiguous tensors; nothing here knows of a target. The README beside
    this file says why the ops look the way they do.
  }];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def Kernel_ReduceKind : I32EnumAttr<"ReduceKind", "how kernel.reduce combines two values", [
    I32EnumAttrCase<"Add", 0, "add">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">,
    I32EnumAttrCase<"Mul", 3, "mul">]> {
  let cppNamespace = "::spmd::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_ScatterKind : I32EnumAttr<"ScatterKind", "how kernel.scatter_rows combines two values", [
    I32EnumAttrCase<"Set", 0, "set">,
    I32EnumAttrCase<"Add", 1, "add">,
    I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Max", 3, "max">,
    I32EnumAttrCase<"Min", 4, "min">]> {
  let cppNamespace = "::spmd::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_Activation : I32EnumAttr<"Activation", "what an epilogue of kernel.gemm applies", [
    I32EnumAttrCase<"Relu", 0, "relu">,
    I32EnumAttrCase<"Gelu", 1, "gelu">,
    I32EnumAttrCase<"GeluTanh", 2, "gelu_tanh">,
    I32EnumAttrCase<"GeluTanhBackward", 3, "gelu_tanh_backward">]> {
  let cppNamespace = "::spmd::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_GemmOperand : I32EnumAttr<"GemmOperand", "one of the matrices of kernel.gemm", [
    I32EnumAttrCase<"A", 0, "a">,
    I32EnumAttrCase<"B", 1, "b">,
    I32EnumAttrCase<"C", 2, "c">]> {
  let cppNamespace = "::spmd::kernel";
  let genSpecializedAttr = 0;
}

class Kernel_Attr<string name, string attrMnemonic> : AttrDef<Kernel_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Kernel_ScatterKindAttr : EnumAttr<Kernel_Dialect, Kernel_ScatterKind, "scatter_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Kernel_ReduceKindAttr : EnumAttr<Kernel_Dialect, Kernel_ReduceKind, "kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Kernel_ActivationAttr : EnumAttr<Kernel_Dialect, Kernel_Activation, "activation"> {
  let assemblyFormat = "$value";
}

def Kernel_GemmOperandAttr : EnumAttr<Kernel_Dialect, Kernel_GemmOperand, "gemm_operand"> {
  let assemblyFormat = "$value";
}

def Kernel_ViewAttr : Kernel_Attr<"View", "view"> {
  let summary = "where [batch, head, row, column] lies in a flat tensor";
  let description = [{
    Element (b, h, t, c) is at `offset + b * batch + h * head + t * row + c`, counted in elements; columns are
    contiguous. A stride may be 0 (broadcast) on operands.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$batch, "int64_t":$head, "int64_t":$row);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_AttentionSizesAttr : Kernel_Attr<"AttentionSizes", "attention_sizes"> {
  let summary = "sizes of one attention";
  let description = [{
    `heads` is a multiple of `kvHeads`: query head h attends to key/value head h / (heads / kvHeads).
  }];
  let parameters = (ins "int64_t":$batch, "int64_t":$heads, "int64_t":$kvHeads, "int64_t":$qLen, "int64_t":$kvLen,
                        "int64_t":$headDim, "int64_t":$vDim);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_PieceAttr : Kernel_Attr<"Piece", "piece"> {
  let summary = "one rectangular piece of a kernel.copy";
  let description = [{
    For every point of the box `dims`, element `to(point)` of the result is element `from(point)` of source number
    `source`, or zero when `source` is -1 (then `from` is the same map as `to` and is not read).
  }];
  let parameters = (ins "int64_t":$source, ArrayRefParameter<"int64_t">:$dims, "::mlir::AffineMap":$from,
                        "::mlir::AffineMap":$to);
  let hasCustomAssemblyFormat = 1;
}

def Kernel_LaunchAttr : Kernel_Attr<"Launch", "launch"> {
  let summary = "how a kernel of the user's is launched";
  let description = [{
    Kernel `function` of a cubin, with `grid` blocks of `block` threads in three dimensions and `shared` bytes of dynamic
    shared memory. `parameters` are what it takes in order: a tensor by its number as index (results after inputs), or a
    number of its type.
  }];
  let parameters = (ins StringRefParameter<>:$function, ArrayRefParameter<"int64_t">:$grid,
                        ArrayRefParameter<"int64_t">:$block, "int64_t":$shared, "::mlir::ArrayAttr":$parameters);
  let assemblyFormat = [{
    `<` $function `grid` `[` $grid `]` `block` `[` $block `]` `shared` $shared `parameters` $parameters `>`
  }];
}

def Kernel_PieceArrayAttr : TypedArrayAttrBase<Kernel_PieceAttr, "array of #kernel.piece">;

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::spmd::kernel";
  let description = "What the planner and the code generators ask of every op that is one kernel.";
  let methods = [
    InterfaceMethod<[{
      Iterations of the parallel loop. Any cut of [0, iterations) into ranges gives the same bits.
    }], "int64_t", "getParallelIterations">,
    InterfaceMethod<[{
      Fewest iterations worth handing to another thread.
    }], "int64_t", "getGrain">,
    InterfaceMethod<[{
      Whether the memory of result number `result` may be the memory of operand number `operand`, which is then dead
      after this op. The same value passed as two operands is judged for all its uses.
    }], "bool", "canAlias", (ins "unsigned":$operand, "unsigned":$result)>,
    InterfaceMethod<"Floating-point operations, one per scalar operation of a body.", "double", "getFlops">,
    InterfaceMethod<"Bytes read and written when every operand element is read once.", "int64_t", "getBytesMoved">,
    InterfaceMethod<"Whether code is generated for this op (a GEMM is a library call).", "bool", "isGenerated", (ins),
                    "", "return true;">,
    InterfaceMethod<"Symbol of the generated kernel, assigned by spmd-outline-kernels.", "::mlir::StringAttr",
                    "getSymbolAttr">,
    InterfaceMethod<"Sets the symbol.", "void", "setSymbolAttr", (ins "::mlir::StringAttr":$symbol)>,
  ];
}

#endif // SPMD_DIALECTS_KERNEL_BASE_TD
