//===- AtenBase.td - Dialect, types and op families --------*- tablegen -*-===//

#ifndef SPMD_ATEN_BASE_TD
#define SPMD_ATEN_BASE_TD

include "dialects/Aten/AtenInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def AtenDialect : Dialect {
  let name = "aten";
  let cppNamespace = "::spmd::aten";
  let summary = "PyTorch's ATen operators on tensor values";
  let description = [{
    One op per ATen overload, under PyTorch's name without `.default`, with
    operands and attributes named as the arguments of its schema. Only pure
    forms exist: a step that writes in place becomes a chain of values when it
    is imported. Tensors are ranked, have static shapes and are logically
    contiguous; a `Scalar` argument is an i64, f64 or bool attribute.

    List ops (`_foreach_*`, `_fused_*`) exist in two forms. In *list form* they
    are PyTorch's: parallel lists, one entry per parameter. In *chunk form*
    (after partition) the attribute `unit` names a shard unit, each list has one
    entry, and that is either a rank's chunk of the unit's flat buffer or a
    table `tensor<S>` with one entry per segment (parameter) of the unit, in
    layout order; attributes that have one entry per list position have one per
    segment.
  }];
  let useDefaultAttributePrinterParser = 0;
  let extraClassDeclaration = [{
    void registerPointwiseOps();
    void registerCompareOps();
    void registerViewOps();
    void registerReduceOps();
    void registerHeavyOps();
    void registerOptimOps();
    void registerNormOps();
    void registerRandomOps();
    void registerWindowOps();
  }];
}

// Types and attributes. bool is i1 here and one byte in memory.

def Aten_Tensor
    : RankedTensorOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8, I1],
                     [HasStaticShapePred], "statically shaped tensor">;
def Aten_List : Variadic<Aten_Tensor>;

def Aten_Scalar : AnyAttrOf<[I64Attr, F64Attr, BoolAttr],
                            "i64, f64 or bool scalar"> {
  let constBuilderCall = "$_builder.getI64IntegerAttr($0)";
}
def Aten_ScalarOne : DefaultValuedAttr<Aten_Scalar, "1">;
def Aten_Scalars : TypedArrayAttrBase<Aten_Scalar, "list of scalars">;
def Aten_False : DefaultValuedAttr<BoolAttr, "false">;

// Trait and base of all ops. `rule` and `flops` are C++ expressions over the
// operation `op`, calls of functions in AtenRules.h; `localizer` also sees the
// wanted `types`. `verifier` calls a function in AtenVerify.h.

class Aten_Op<string mnemonic, string torchSchema, string sum,
              list<Trait> traits = []>
    : Op<AtenDialect, mnemonic, !listconcat([Pure, AtenOpInterface], traits)> {
  string rule = "noRule(op)";
  string flops = "resultElements(op)";
  string localizer = "keepAttributes(op, types)";
  string viewLike = "false";
  string pointwise = "false";
  string heavy = "false";
  string verifier = "noConstraints(op)";

  let summary = sum;
  let description = "PyTorch: `" # torchSchema # "`.";
  let assemblyFormat =
      "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration =
      "static ::llvm::StringRef getSchema() { return R\"(" # torchSchema #
      ")\"; }\n" #
      "::mlir::FailureOr<::spmd::aten::ShardingRule> getShardingRule();\n" #
      "bool isViewLike() { return " # viewLike # "; }\n" #
      "bool isPointwise() { return " # pointwise # "; }\n" #
      "bool isHeavy() { return " # heavy # "; }\n" #
      "double getFlops();\n" #
      "::llvm::LogicalResult localize(::mlir::TypeRange types);\n";
  let hasVerifier = 1;
  let extraClassDefinition =
      "::llvm::LogicalResult $cppClass::verify() {\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return ::spmd::aten::" # verifier # ";\n}\n" #
      "::mlir::FailureOr<::spmd::aten::ShardingRule> " #
      "$cppClass::getShardingRule() {\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return ::spmd::aten::" # rule # ";\n}\n" #
      "double $cppClass::getFlops() {\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return ::spmd::aten::" # flops # ";\n}\n" #
      "::llvm::LogicalResult $cppClass::localize(::mlir::TypeRange types) {\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return ::spmd::aten::" # localizer # ";\n}\n";
}

// Pointwise ops broadcast their operands, aligned at the right.
class Aten_PointwiseOp<string mnemonic, string torchSchema, string sum,
                       list<Trait> traits = []>
    : Aten_Op<mnemonic, torchSchema, sum, traits> {
  let rule = "pointwiseRule(op)";
  let pointwise = "true";
  let verifier = "verifyPointwise(op)";
  let results = (outs Aten_Tensor:$result);
}
class Aten_UnaryOp<string name, string sum>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self);
}
class Aten_BinaryOp<string name, string sum>
    : Aten_PointwiseOp<
          name, "aten::" # name # "(Tensor self, Tensor other) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other);
}
class Aten_BinaryScalarOp<string name, string sum>
    : Aten_PointwiseOp<
          name, "aten::" # name # "(Tensor self, Scalar other) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$other);
}

#endif // SPMD_ATEN_BASE_TD
