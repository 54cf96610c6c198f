//===- Evaluator.cpp - argument access and the table of evaluators --------===//

#include "spmd/Interpreter/Evaluator.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/Schema.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace spmd::interp {

/// Operands of an aten op are the tensors of its schema, under the same names;
/// learning rates of fused optimizers are floats in the schema and tensors here.
OperandGroups getOperandGroups(Operation *op) {
  OperandGroups groups;
  auto aten = dyn_cast<aten::AtenOpInterface>(op);
  if (!aten)
    return groups;
  for (const aten::SchemaArg &arg : aten::parseSchemaArgs(aten.getSchema())) {
    bool isRate = arg.type == "float" && arg.name == "lr";
    if (arg.isTensor() || isRate)
      groups.groups.push_back({arg.name.str(), isRate || arg.isList() || arg.isOptional()});
  }
  return groups;
}

OpCall::OpCall(Operation *op, const OperandGroups &groups, ArrayRef<Tensor> operands, const RankContext &context)
    : op(op), context(context), groups(groups), values(operands) {}

[[noreturn]] static void unknownArgument(Operation *op, llvm::StringRef name) {
  llvm::report_fatal_error("the evaluator of " + op->getName().getStringRef() + " reads the argument '" + name +
                           "', which the op does not have");
}

std::pair<unsigned, unsigned> OpCall::group(llvm::StringRef name) const {
  const auto *it = llvm::find_if(groups.groups, [&](const OperandGroup &group) { return group.name == name; });
  if (it == groups.groups.end())
    unknownArgument(op, name);
  unsigned index = it - groups.groups.begin(), begin = 0;
  if (auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes")) {
    for (unsigned i = 0; i < index; ++i)
      begin += sizes[i];
    return {begin, static_cast<unsigned>(sizes[index])};
  }
  // Without segment sizes all groups that are not single operands have one size.
  unsigned variable = llvm::count_if(groups.groups, [](const OperandGroup &group) { return group.isVariable; });
  unsigned single = groups.groups.size() - variable;
  unsigned size = variable ? (values.size() - single) / variable : 1;
  for (unsigned i = 0; i < index; ++i)
    begin += groups.groups[i].isVariable ? size : 1;
  return {begin, it->isVariable ? size : 1};
}

const Tensor &OpCall::tensor(llvm::StringRef name) const {
  static const Tensor absent;
  auto [begin, size] = group(name);
  return size == 0 ? absent : values[begin];
}

ArrayRef<Tensor> OpCall::tensors(llvm::StringRef name) const {
  auto [begin, size] = group(name);
  return values.slice(begin, size);
}

bool OpCall::has(llvm::StringRef name) const { return static_cast<bool>(op->getAttr(name)); }

static double asNumber(Operation *op, llvm::StringRef name, Attribute attr) {
  if (!isa_and_nonnull<IntegerAttr, FloatAttr>(attr))
    unknownArgument(op, name);
  return aten::getScalarValue(attr);
}

int64_t OpCall::integer(llvm::StringRef name) const {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  if (!attr)
    unknownArgument(op, name);
  return attr.getValue().getSExtValue();
}

double OpCall::number(llvm::StringRef name) const { return asNumber(op, name, op->getAttr(name)); }

double OpCall::number(llvm::StringRef name, double otherwise) const { return has(name) ? number(name) : otherwise; }

bool OpCall::flag(llvm::StringRef name) const {
  auto attr = op->getAttrOfType<BoolAttr>(name);
  return attr && attr.getValue();
}

llvm::StringRef OpCall::string(llvm::StringRef name) const {
  auto attr = op->getAttrOfType<StringAttr>(name);
  return attr ? attr.getValue() : llvm::StringRef();
}

ArrayRef<int64_t> OpCall::integers(llvm::StringRef name) const {
  auto attr = op->getAttrOfType<DenseI64ArrayAttr>(name);
  if (!attr)
    unknownArgument(op, name);
  return attr.asArrayRef();
}

llvm::SmallVector<double> OpCall::numbers(llvm::StringRef name) const {
  llvm::SmallVector<double> result;
  Attribute attr = op->getAttr(name);
  if (auto reals = dyn_cast_or_null<DenseF64ArrayAttr>(attr))
    result.assign(reals.asArrayRef().begin(), reals.asArrayRef().end());
  else if (auto list = dyn_cast_or_null<ArrayAttr>(attr))
    for (Attribute element : list)
      result.push_back(asNumber(op, name, element));
  else
    unknownArgument(op, name);
  return result;
}

llvm::SmallVector<bool> OpCall::flags(llvm::StringRef name) const {
  auto attr = op->getAttrOfType<DenseBoolArrayAttr>(name);
  if (!attr)
    unknownArgument(op, name);
  // Not to_vector: for bools it takes begin and end as two elements.
  ArrayRef<bool> list = attr.asArrayRef();
  return llvm::SmallVector<bool>(list.begin(), list.end());
}

Tensor emptyResult(OpCall &call, unsigned i) {
  auto type = cast<RankedTensorType>(call.op->getResult(i).getType());
  return Tensor(*getDType(type.getElementType()), type.getShape());
}

void fillUnwritten(Tensor &result) {
  for (int64_t i = 0, e = result.numel(); i < e; ++i)
    result.set(i, result.isFloating() ? std::numeric_limits<double>::quiet_NaN() : -1);
}

DType OpCall::resultType(unsigned i) const {
  return *getDType(cast<RankedTensorType>(op->getResult(i).getType()).getElementType());
}

InFlightDiagnostic OpCall::error() const { return op->emitError() << "cannot be evaluated: "; }

void EvaluatorRegistry::add(llvm::StringRef name, Evaluator evaluator) {
  bool inserted = evaluators.try_emplace(name, evaluator).second;
  if (!inserted)
    llvm::report_fatal_error("two evaluators of " + name);
}

Evaluator EvaluatorRegistry::lookup(llvm::StringRef name) const { return evaluators.lookup(name); }

Evaluator findEvaluator(Operation *op) {
  auto body = dyn_cast<aten::ScalarBodyOpInterface>(op);
  if (body && body.hasScalarBody())
    return &evaluateScalarBody;
  return EvaluatorRegistry::get().lookup(op->getName().getStringRef());
}

/// Registers a family, in the file of its name.
#define SPMD_EVALUATORS(FAMILY) void register##FAMILY(EvaluatorRegistry &registry);
#include "lib/Interpreter/Evaluators.inc"

const EvaluatorRegistry &EvaluatorRegistry::get() {
  static const EvaluatorRegistry registry = [] {
    EvaluatorRegistry r;
#define SPMD_EVALUATORS(FAMILY) register##FAMILY(r);
#include "lib/Interpreter/Evaluators.inc"
    return r;
  }();
  return registry;
}

} // namespace spmd::interp
