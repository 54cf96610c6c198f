//===- Normalize.cpp - Captured calls as the normalised op set ------------===//

#include "Normalize.h"

#include "dialects/Aten/AtenInterfaces.h"

using namespace mlir;
using namespace spmd;

int64_t spmd::wrapDim(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

static step::Arg &literal(Call &call, StringRef name) {
  if (BoundArg *arg = call.find(name)) {
    arg->values.clear();
    return arg->literal;
  }
  call.args.push_back({});
  call.args.back().literal.name = name.str();
  return call.args.back().literal;
}

void spmd::setInteger(Call &call, StringRef name, int64_t value) {
  // Something else than a number stays, and is found when the op is made.
  if (BoundArg *arg = call.find(name); arg && !arg->isNone() && !arg->isNumber())
    return;
  step::Arg &arg = literal(call, name);
  arg.kind = step::Arg::Kind::integer;
  arg.integer = value;
}

void spmd::setBoolean(Call &call, StringRef name, bool value) {
  step::Arg &arg = literal(call, name);
  arg.kind = step::Arg::Kind::boolean;
  arg.boolean = value;
}

void spmd::setIntegers(Call &call, StringRef name, ArrayRef<int64_t> values) {
  step::Arg &arg = literal(call, name);
  arg.kind = step::Arg::Kind::integers;
  arg.integers.assign(values.begin(), values.end());
}

SmallVector<int64_t> spmd::getIntegers(Call &call, StringRef name) {
  BoundArg *arg = call.find(name);
  if (!arg)
    return {};
  if (arg->literal.kind == step::Arg::Kind::integer)
    return {arg->literal.integer};
  return SmallVector<int64_t>(arg->literal.integers.begin(), arg->literal.integers.end());
}

LogicalResult spmd::refuseDim(Emitter &emitter, Call &call, int64_t dim, int64_t rank) {
  return emitter.error("'") << call.op << "' of dimension " << dim << " of a tensor of rank " << rank;
}

/// An op that computes whole numbers as floating ones does so in the default type. The dialect's rule says f32: for
/// another one the operands are of it.
static void castToDefault(Emitter &emitter, Operation *op) {
  Type type = cast<aten::ScalarBodyOpInterface>(op).getPointwiseType();
  auto scalar = op->getAttrOfType<FloatAttr>("other"); // which comparisons are made with, whatever they give
  bool isWhole =
      llvm::none_of(op->getOperands(), [](Value value) { return isa<FloatType>(typeOf(value).getElementType()); });
  if (!type || !isWhole || !(isa<FloatType>(type) || scalar))
    return;
  emitter.builder.setInsertionPoint(op);
  for (OpOperand &operand : op->getOpOperands())
    operand.set(emitter.cast(operand.get(), emitter.defaultFloat));
  emitter.builder.setInsertionPointAfter(op);
}

LogicalResult spmd::emitSameOp(Emitter &emitter, Call &call, Results &results) {
  Operation *op = emitter.createFromSchema(call);
  if (!op)
    return failure();
  if (!emitter.defaultFloat.isF32())
    castToDefault(emitter, op);
  // A pointwise op computes in the type that its operands promote to; an in-place op keeps the type of what it writes.
  if (Type type = cast<aten::ScalarBodyOpInterface>(op).getPointwiseType();
      type && op->getNumResults() == 1 && call.resultTypes.size() == 1 && call.resultTypes[0]) {
    RankedTensorType wanted = call.resultTypes[0];
    op->getResult(0).setType(wanted.clone(type));
    results.push_back(emitter.cast(op->getResult(0), wanted.getElementType()));
    return success();
  }
  auto next = op->result_begin();
  for (RankedTensorType type : call.resultTypes)
    results.push_back(type ? *next++ : Value());
  return success();
}

static const NormalizerTable &getTable() {
  static const NormalizerTable table = [] {
    NormalizerTable entries;
#define SPMD_NORMALIZERS(FAMILY) normalize##FAMILY(entries);
#include "lib/Import/Normalizers.inc"
    return entries;
  }();
  return table;
}

LogicalResult spmd::emitCall(Emitter &emitter, Call &call, Results &results) {
  if (const step::Operator *entry = emitter.operators.lookup(call.op))
    return emitCustomCall(emitter, call, *entry, results);
  // What wrote its result into a given tensor is the op without it.
  if (StringRef(call.op).ends_with(".out")) {
    call.op = StringRef(call.op).drop_back(4).str();
    llvm::erase_if(call.args, [](const BoundArg &arg) { return arg.name() == "out"; });
  }
  auto found = getTable().find(call.op);
  bool isNormalized = found != getTable().end();
  Normalization normalization = isNormalized ? found->second : Normalization(&emitSameOp);
  if (needsUnrolling(call, isNormalized, emitter.builder.getContext()))
    normalization = Normalization(&emitUnrolled);
  for (StringRef name : normalization.tensors) {
    if (BoundArg *arg = call.find(name); arg && arg->isNumber())
      emitter.wrapNumber(call, *arg);
    if (!call.value(name))
      return emitter.error("argument '") << name << "' of '" << call.op << "' must be a tensor";
  }
  bool isList = StringRef(call.op).starts_with("_foreach") || StringRef(call.op).starts_with("_fused");
  bool hasResults =
      call.resultTypes.size() >= normalization.results &&
      (normalization.masksResults || llvm::all_of(ArrayRef(call.resultTypes).take_front(normalization.results),
                                                  [](RankedTensorType type) { return static_cast<bool>(type); }));
  if (isNormalized && !isList && !hasResults)
    return emitter.error("'") << call.op << "' has no result";
  if (failed(normalization.run(emitter, call, results)))
    return failure();
  if (results.size() != call.resultTypes.size())
    return emitter.error("'") << call.op << "' has " << results.size() << " results, expected from the capture "
                              << call.resultTypes.size();
  for (auto [value, type] : llvm::zip_equal(results, call.resultTypes)) {
    if (value && value.getType() != type)
      return emitter.error("'") << call.op << "' returns " << value.getType() << ", expected from the capture " << type;
  }
  return success();
}
