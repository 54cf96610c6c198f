//===- AtenBase.td - Dialect, types and op families --------*- tablegen -*-===//

#ifndef SPMD_ATEN_BASE_TD
#define SPMD_ATEN_BASE_TD

include "dialects/Aten/AtenInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
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
    void registerMathOps();
    void registerSpecialOps();
    void registerBinaryOps();
    void registerActivationOps();
    void registerLossOps();
    void registerViewOps();
    void registerReduceOps();
    void registerHeavyOps();
    void registerIndexingOps();
    void registerOptimOps();
    void registerNormOps();
    void registerRandomOps();
    void registerRankOps();
    void registerWindowOps();
  }];
}

// Types and attributes. bool is i1 here and one byte in memory.

def Aten_Tensor
    : RankedTensorOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI8, I1],
                     [HasStaticShapePred], "statically shaped tensor">;
// Lists of a list op that have an entry for each position are of this class,
// which tells them from other lists (ListOpInterface).
class Aten_ParallelList : Variadic<Aten_Tensor>;
def Aten_List : Aten_ParallelList;

def Aten_Scalar : AnyAttrOf<[I64Attr, F64Attr, BoolAttr],
                            "i64, f64 or bool scalar"> {
  let constBuilderCall = "$_builder.getI64IntegerAttr($0)";
}
def Aten_ScalarOne : DefaultValuedAttr<Aten_Scalar, "1">;
def Aten_Scalars : TypedArrayAttrBase<Aten_Scalar, "list of scalars">;
def Aten_False : DefaultValuedAttr<BoolAttr, "false">;

// Trait and base of all ops. `rule` and `flops` are C++ expressions over the
// operation `op`, calls of functions in AtenRules.h; `localizer` also sees the
// wanted `types`. `verifier` calls a function in AtenVerify.h. `rowNumbers` is
// an expression over the OpOperand `operand` and the op's accessors
// (RowNumbers.h). `integerRanges` is one over the `ranges` of the operands
// (IntegerRange.h), `rowPieces` one over the accessors (Pieces.h), `statesSize` one
// over the `name` of an attribute.
//
// `body` is one element of the result, if the op has a scalar body: a C++
// expression, or statements that return, over a ScalarBuilder `s` and one
// mlir::Value for each operand, under its name (null when it is absent),
// converted as `computeIn` says (ScalarBuilder.h). Attributes are read by their
// accessors. The value is converted to the result's element type. From it come
// the interpreter's evaluator and the kernels of every target.
//
// `resultType` is a ResultType (AtenVerify.h): PyTorch's rule for the element
// type of a pointwise op's result. Import and the verifier follow it.

class Aten_Op<string mnemonic, string torchSchema, string sum,
              list<Trait> traits = [], Dialect dialect = AtenDialect>
    : Op<dialect, mnemonic,
         !listconcat([Pure, AtenOpInterface, InferIntRangeInterface], traits)> {
  string rule = "noRule(op)";
  string flops = "resultElements(op)";
  string localizer = "keepAttributes(op, types)";
  string viewLike = "false";
  string movesElements = viewLike;
  string pointwise = "false";
  string heavy = "false";
  string matrixProduct = "false";
  string rowNumbers = "std::nullopt";
  string fillName = "";
  string tensorOverload = "";
  string rowPieces = "std::nullopt";
  string statesSize = "false";
  string continuesRows = "false";
  string integerRanges = "";
  string verifier = "noConstraints(op)";
  string resultType = "";
  string computeIn = "result";
  string body = "";
  string moreDeclarations = "";
  string moreDefinitions = "";

  // One variable per operand of the body.
  string scalarOperands = !foldl("", !range(!size(arguments)), text, i,
      text # !if(!initialized(!getdagarg<AttrConstraint>(arguments, i)), "",
                 "  [[maybe_unused]] ::mlir::Value " #
                     !getdagname(arguments, i) # " = next();\n"));
  string scalarCode = !if(!eq(!find(body, "return "), -1),
                          "return " # body # ";", body);

  let summary = sum;
  let description = "PyTorch: `" # torchSchema # "`.";
  let assemblyFormat =
      "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration =
      "static ::llvm::StringRef getSchema() { return R\"(" # torchSchema #
      ")\"; }\n" #
      "::mlir::FailureOr<::spmd::aten::ShardingRule> getShardingRule();\n" #
      "bool isViewLike() { return " # viewLike # "; }\n" #
      "bool movesElements() { return " # movesElements # "; }\n" #
      "bool isPointwise() { return " # pointwise # "; }\n" #
      "bool isHeavy() { return " # heavy # "; }\n" #
      "bool isMatrixProduct() { return " # matrixProduct # "; }\n" #
      "std::optional<::spmd::aten::RowNumbers> getRowNumbers("
      "::mlir::OpOperand &operand);\n" #
      "static ::llvm::StringRef getFillName() { return \"" # fillName # "\"; }\n" #
      "static ::llvm::StringRef getTensorOverload();\n" #
      "std::optional<::spmd::aten::Pieces> getRowPieces();\n" #
      "bool statesSize(::llvm::StringRef name);\n" #
      "bool continuesRows() { return " # continuesRows # "; }\n" #
      "void inferResultRangesFromOptional("
      "::llvm::ArrayRef<::mlir::IntegerValueRange> operands, "
      "::mlir::SetIntLatticeFn setRange);\n" #
      "double getFlops();\n" #
      "::llvm::LogicalResult localize(::mlir::TypeRange types);\n" #
      "::mlir::Type getPointwiseType();\n" #
      "bool hasScalarBody() { return " # !if(!empty(body), "false", "true") #
      "; }\n" #
      "::mlir::Value buildScalarBody(::mlir::ImplicitLocOpBuilder &builder, "
      "::mlir::ValueRange args);\n" #
      moreDeclarations;
  let hasVerifier = 1;
  let extraClassDefinition =
      "::llvm::LogicalResult $cppClass::verify() {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return " # verifier # ";\n}\n" #
      "::mlir::FailureOr<::spmd::aten::ShardingRule> " #
      "$cppClass::getShardingRule() {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return " # rule # ";\n}\n" #
      "double $cppClass::getFlops() {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return " # flops # ";\n}\n" #
      "std::optional<::spmd::aten::RowNumbers> $cppClass::getRowNumbers("
      "[[maybe_unused]] ::mlir::OpOperand &operand) {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  return " # rowNumbers # ";\n}\n" #
      "::llvm::StringRef $cppClass::getTensorOverload() { return " #
      !if(!empty(tensorOverload), "{}", tensorOverload # "::getOperationName()") #
      "; }\n" #
      "std::optional<::spmd::aten::Pieces> $cppClass::getRowPieces() {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  return " # rowPieces # ";\n}\n" #
      "bool $cppClass::statesSize([[maybe_unused]] ::llvm::StringRef name) {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  [[maybe_unused]] ::mlir::Operation *op = getOperation();\n" #
      "  return " # statesSize # ";\n}\n" #
      "void $cppClass::inferResultRangesFromOptional("
      "::llvm::ArrayRef<::mlir::IntegerValueRange> operands, "
      "::mlir::SetIntLatticeFn setRange) {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      !if(!empty(integerRanges),
          "  inferIntegerRanges(op, operands, setRange);\n}\n",
          "  inferIntegerRanges(op, operands, setRange, "
          "[&]([[maybe_unused]] ::llvm::ArrayRef<KnownRange> ranges) "
          "-> ::llvm::SmallVector<KnownRange> { return {" # integerRanges #
          "}; });\n}\n") #
      "::llvm::LogicalResult $cppClass::localize(::mlir::TypeRange types) {\n" #
      "  using namespace ::spmd::aten;\n" #
      "  ::mlir::Operation *op = getOperation();\n" #
      "  return " # localizer # ";\n}\n" #
      "::mlir::Type $cppClass::getPointwiseType() {\n" #
      "  return " #
      !if(!empty(resultType), "{}",
          "::spmd::aten::getResultElementType(getOperation(), "
          "::spmd::aten::ResultType::" # resultType # ")") # ";\n}\n" #
      "::mlir::Value $cppClass::buildScalarBody("
      "::mlir::ImplicitLocOpBuilder &builder, ::mlir::ValueRange args) {\n" #
      !if(!empty(body), "  return {};\n",
          "  using namespace ::spmd::aten;\n" #
          "  using ::mlir::Value;\n" #
          "  ScalarBodyFrame frame(getOperation(), builder, args, "
          "ComputeIn::" # computeIn # ");\n" #
          "  [[maybe_unused]] ScalarBuilder &s = frame.s;\n" #
          "  unsigned group = 0;\n" #
          "  [[maybe_unused]] auto next = [&] { auto [start, size] = "
          "getODSOperandIndexAndLength(group++); return "
          "frame.operand(start, size); };\n" #
          scalarOperands #
          "  auto compute = [&]() -> Value {\n" # scalarCode # "\n  };\n" #
          "  return frame.result(compute());\n") #
      "}\n" #
      moreDefinitions;
}

// Pointwise ops broadcast their operands, aligned at the right.
class Aten_PointwiseOp<string mnemonic, string torchSchema, string sum,
                       list<Trait> traits = [], Dialect dialect = AtenDialect>
    : Aten_Op<mnemonic, torchSchema, sum, traits, dialect> {
  let rule = "pointwiseRule(op)";
  let pointwise = "true";
  let resultType = "promoted";
  let verifier = "verifyPointwise(op, ResultType::" # resultType # ")";
  let results = (outs Aten_Tensor:$result);
}
class Aten_UnaryOp<string name, string sum, string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self);
  let body = scalar;
}
// A function of real numbers: of integers it is f32.
class Aten_RealUnaryOp<string name, string sum, string scalar>
    : Aten_UnaryOp<name, sum, scalar> {
  let resultType = "floating";
}
class Aten_BinaryOp<string name, string sum, string scalar>
    : Aten_PointwiseOp<
          name, "aten::" # name # "(Tensor self, Tensor other) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other);
  let body = scalar;
}
class Aten_RealBinaryOp<string name, string sum, string scalar>
    : Aten_BinaryOp<name, sum, scalar> {
  let resultType = "floating";
}
class Aten_BinaryScalarOp<string name, string sum, string scalar>
    : Aten_PointwiseOp<
          name, "aten::" # name # "(Tensor self, Scalar other) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$other);
  let body = scalar;
}
// The gradient of a function of `self` or of its `output`: linear in the
// incoming gradient.
class Aten_UnaryBackwardOp<string name, string saved, string sum,
                           string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor grad_output, Tensor " #
                       saved # ") -> Tensor", sum> {
  let arguments = !con((ins Aten_Tensor:$grad_output),
                       !dag(ins, [Aten_Tensor], [saved]));
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = scalar;
}

#endif // SPMD_ATEN_BASE_TD
