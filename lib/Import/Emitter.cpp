//===- Emitter.cpp - Creating aten ops for captured calls -----------------===//

#include "Emitter.h"

#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/Schema.h"
#include "dialects/Aten/TypePromotion.h"
#include "dialects/Spmd/Roles.h"

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

RankedTensorType spmd::getTensorType(const step::TensorSpec &spec, MLIRContext *context) {
  return RankedTensorType::get(spec.shape, getElementType(spec.dtype, context));
}

BoundArg *Call::find(StringRef name) {
  for (BoundArg &arg : args)
    if (arg.name() == name)
      return &arg;
  return nullptr;
}

Value Call::value(StringRef name) {
  BoundArg *arg = find(name);
  return arg && arg->isValue() ? arg->values.front() : Value();
}

int64_t Call::integer(StringRef name, int64_t otherwise) {
  BoundArg *arg = find(name);
  return arg && arg->literal.kind == Kind::integer ? arg->literal.integer : otherwise;
}

double Call::number(StringRef name, double otherwise) {
  BoundArg *arg = find(name);
  return arg && arg->isNumber() ? arg->number() : otherwise;
}

bool Call::boolean(StringRef name) {
  BoundArg *arg = find(name);
  return arg && arg->literal.kind == Kind::boolean && arg->literal.boolean;
}

InFlightDiagnostic Emitter::error(const Twine &message) {
  InFlightDiagnostic diagnostic = emitError(loc, message);
  diagnostic.attachNote() << place;
  return diagnostic;
}

/// "mylib::swish" is an op of the dialect mylib, all others are ops of aten.
static std::string getOperationName(StringRef op) {
  auto [library, name] = op.split("::");
  return name.empty() ? ("aten." + op).str() : (library + "." + name).str();
}

Operation *Emitter::create(StringRef op, ValueRange operands, ArrayRef<NamedAttribute> attrs, TypeRange results) {
  OperationState state(loc, getOperationName(op), operands, results, attrs);
  state.addAttribute(kSegmentAttr, builder.getI64IntegerAttr(segment));
  return builder.create(state);
}

Attribute Emitter::scalar(const step::Arg &arg) {
  if (arg.kind == Kind::boolean)
    return builder.getBoolAttr(arg.boolean);
  if (arg.kind == Kind::real)
    return builder.getF64FloatAttr(arg.real);
  return builder.getI64IntegerAttr(arg.integer);
}

/// The attribute for a literal as the schema's type wants it; null if it does
/// not fit.
static Attribute convertLiteral(Emitter &emitter, const step::Arg &arg, StringRef type) {
  Builder &builder = emitter.builder;
  type.consume_back("?");
  bool number = arg.kind == Kind::integer || arg.kind == Kind::real || arg.kind == Kind::boolean;
  if (type == "Scalar")
    return number ? emitter.scalar(arg) : Attribute();
  if (type == "int" || type == "SymInt")
    return arg.kind == Kind::integer ? builder.getI64IntegerAttr(arg.integer) : Attribute();
  if (type == "float") {
    if (arg.kind == Kind::integer)
      return builder.getF64FloatAttr(static_cast<double>(arg.integer));
    return arg.kind == Kind::real ? builder.getF64FloatAttr(arg.real) : Attribute();
  }
  if (type == "bool")
    return arg.kind == Kind::boolean ? builder.getBoolAttr(arg.boolean) : Attribute();
  if (type == "str")
    return arg.kind == Kind::string ? builder.getStringAttr(arg.string) : Attribute();
  if (type == "ScalarType")
    return arg.kind == Kind::dtype ? TypeAttr::get(getElementType(arg.dtype, builder.getContext())) : Attribute();
  StringRef element = type.take_front(type.find('['));
  if (element == "int" || element == "SymInt") {
    if (arg.kind == Kind::integer)
      return builder.getDenseI64ArrayAttr({arg.integer});
    return arg.kind == Kind::integers ? builder.getDenseI64ArrayAttr(arg.integers) : Attribute();
  }
  if (element == "bool" && arg.kind == Kind::booleans) {
    SmallVector<bool> values(arg.booleans.begin(), arg.booleans.end());
    return builder.getDenseBoolArrayAttr(values);
  }
  if (element == "Scalar" && arg.kind == Kind::integers)
    return builder.getI64ArrayAttr(arg.integers);
  if (element == "Scalar" && arg.kind == Kind::reals)
    return builder.getF64ArrayAttr(arg.reals);
  return {};
}

void Emitter::wrapNumber(Call &call, BoundArg &arg) {
  SmallVector<RankedTensorType> tensors;
  for (BoundArg &other : call.args)
    for (Value value : other.values)
      if (value)
        tensors.push_back(typeOf(value));
  Attribute number = scalar(arg.literal);
  Type type = aten::promoteTypes(tensors, {number}, builder.getContext(), defaultFloat);
  arg.values = {createValue("scalar_tensor", {}, named("s", number), RankedTensorType::get({}, type))};
  arg.literal.kind = Kind::value;
}

Operation *Emitter::createFromSchema(Call &call) {
  auto name = RegisteredOperationName::lookup(getOperationName(call.op), builder.getContext());
  auto *interface = name ? name->getInterface<aten::AtenOpInterface>() : nullptr;
  if (!interface) {
    InFlightDiagnostic unknown = error("unknown op '");
    unknown << call.op << "'";
    if (call.op.find("::") != std::string::npos) // an operator of the user's
      unknown << "; before the capture, register its decomposition with spmd.register_decomposition(\"" << call.op
              << "\", function) or its kernel with spmd.register_kernel, or load its dialect (--load-dialect-plugin)";
    return nullptr;
  }
  ArrayRef<StringAttr> attrNames = name->getAttributeNames();
  SmallVector<Value> operands;
  SmallVector<int32_t> operandSegments, resultSegments;
  SmallVector<NamedAttribute> attrs;
  for (const aten::SchemaArg &schemaArg : aten::parseSchemaArgs(interface->getSchema())) {
    BoundArg *arg = call.find(schemaArg.name);
    if (schemaArg.isTensor()) {
      size_t before = operands.size();
      if (arg && arg->isNumber() && schemaArg.type == "Tensor")
        wrapNumber(call, *arg);
      if (arg)
        for (Value value : arg->values)
          operands.push_back(value);
      bool isTensor = arg && (!arg->values.empty() || arg->literal.kind == Kind::values);
      if (!isTensor && !(schemaArg.isOptional() && (!arg || arg->isNone()))) {
        error("argument '") << schemaArg.name << "' of '" << call.op << "' must be a tensor";
        return nullptr;
      }
      operandSegments.push_back(operands.size() - before);
      continue;
    }
    // Placement and layout arguments have no attribute: values have neither.
    if (!arg || arg->isNone() ||
        !llvm::any_of(attrNames, [&](StringAttr attr) { return attr.getValue() == schemaArg.name; }))
      continue;
    Attribute attr = convertLiteral(*this, arg->literal, schemaArg.type);
    if (!attr) {
      error("argument '") << schemaArg.name << "' of '" << call.op << "' must be " << schemaArg.type;
      return nullptr;
    }
    attrs.push_back(named(schemaArg.name, attr));
  }
  for (Value operand : operands) {
    if (!operand) {
      error("'") << call.op << "' has an absent tensor in a list";
      return nullptr;
    }
  }
  SmallVector<Type> results;
  for (RankedTensorType type : call.resultTypes) {
    resultSegments.push_back(type ? 1 : 0);
    if (type)
      results.push_back(type);
  }
  if (name->hasTrait<OpTrait::AttrSizedOperandSegments>())
    attrs.push_back(named("operandSegmentSizes", builder.getDenseI32ArrayAttr(operandSegments)));
  if (name->hasTrait<OpTrait::AttrSizedResultSegments>())
    attrs.push_back(named("resultSegmentSizes", builder.getDenseI32ArrayAttr(resultSegments)));
  return create(call.op, operands, attrs, results);
}

Value Emitter::view(Value value, ArrayRef<int64_t> shape) {
  if (auto inner = value.getDefiningOp<aten::ViewOp>())
    value = inner.getSelf();
  RankedTensorType type = typeOf(value);
  if (type.getShape() == shape)
    return value;
  return createValue("view", value, named("size", builder.getDenseI64ArrayAttr(shape)), type.clone(shape));
}

Value Emitter::permute(Value value, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> composed(dims);
  if (auto inner = value.getDefiningOp<aten::PermuteOp>()) {
    for (int64_t &dim : composed)
      dim = inner.getDims()[dim];
    value = inner.getSelf();
  }
  if (llvm::equal(composed, llvm::seq<int64_t>(0, composed.size())))
    return value;
  RankedTensorType type = typeOf(value);
  SmallVector<int64_t> shape;
  for (int64_t dim : composed)
    shape.push_back(type.getDimSize(dim));
  return createValue("permute", value, named("dims", builder.getDenseI64ArrayAttr(composed)), type.clone(shape));
}

Value Emitter::expand(Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(value);
  if (type.getShape() == shape)
    return value;
  return createValue("expand", value, named("size", builder.getDenseI64ArrayAttr(shape)), type.clone(shape));
}

Value Emitter::cast(Value value, Type elementType) {
  RankedTensorType type = typeOf(value);
  if (type.getElementType() == elementType)
    return value;
  return createValue("_to_copy", value, named("dtype", TypeAttr::get(elementType)), type.clone(elementType));
}

Value Emitter::full(RankedTensorType type, Attribute scalar) {
  return createValue("full", {},
                     {named("fill_value", scalar), named("size", builder.getDenseI64ArrayAttr(type.getShape()))}, type);
}
