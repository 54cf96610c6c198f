//===- NormalizeOptimizer.cpp - List ops that have no list form -----------===//
//
// The dialect's list ops give every position the type of its first operand. What
// does not fit (another function, a number times a tensor), and _fused_adagrad,
// become pointwise ops per position; spmd-merge-optimizer-lists makes lists of them.
//
//===----------------------------------------------------------------------===//

#include "Normalize.h"

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

bool spmd::needsUnrolling(const Call &call, bool known, MLIRContext *context) {
  StringRef name = call.op;
  if (!name.starts_with("_foreach_") || name.starts_with("_foreach_norm"))
    return false;
  if (!RegisteredOperationName::lookup("aten." + call.op, context))
    return !known;
  for (const BoundArg &arg : call.args) {
    if (arg.literal.kind != Kind::values || arg.values.size() != call.resultTypes.size())
      continue;
    bool isSelf = arg.name() == "self";
    for (auto [value, result] : llvm::zip_equal(arg.values, call.resultTypes))
      if (value && (isSelf ? value.getType() != result
                           : typeOf(value).getRank() != 0 && typeOf(value).getShape() != result.getShape()))
        return true;
  }
  return false;
}

/// What `_foreach_<base>.<overload>` is at one position, and which of its arguments
/// the pointwise op calls otherwise.
struct PositionOp {
  std::string op;
  StringRef from, to;
};

static PositionOp getPositionOp(StringRef name) {
  name.consume_front("_foreach_");
  auto [base, overload] = name.split('.');
  if (overload.empty() || base == "maximum" || base == "minimum") {
    if (overload == "Scalar" || overload == "ScalarList")
      return {base == "maximum" ? "clamp_min" : "clamp_max", "scalar", base == "maximum" ? "min" : "max"};
    return {base.str(), "", ""};
  }
  if (base == "addcmul" || base == "addcdiv")
    return {base.str(), "scalars", "value"};
  if (base == "lerp")
    return {overload == "List" ? "lerp.Tensor" : "lerp.Scalar", "weights", "weight"};
  if (base == "pow" && overload != "List")
    return {overload == "ScalarAndTensor" ? "pow.Scalar" : "pow.Tensor_Scalar", "", ""};
  if (base == "pow")
    return {"pow.Tensor_Tensor", "", ""};
  bool scalar = overload == "Scalar" || overload == "ScalarList";
  return {(base + (scalar ? ".Scalar" : ".Tensor")).str(), overload == "Scalar" ? "scalar" : "scalars", "other"};
}

/// The argument at position `index`.
static BoundArg getPosition(const BoundArg &arg, unsigned index) {
  BoundArg at = arg;
  switch (arg.literal.kind) {
  case Kind::values:
    at.literal.kind = Kind::value;
    at.values = {arg.values[index]};
    break;
  case Kind::integers:
    at.literal.kind = Kind::integer;
    at.literal.integer = arg.literal.integers[index];
    break;
  case Kind::reals:
    at.literal.kind = Kind::real;
    at.literal.real = arg.literal.reals[index];
    break;
  default:
    break;
  }
  return at;
}

LogicalResult spmd::emitUnrolled(Emitter &emitter, Call &call, Results &results) {
  PositionOp position = getPositionOp(call.op);
  for (auto [index, type] : llvm::enumerate(call.resultTypes)) {
    Call at;
    at.op = position.op;
    at.resultTypes.push_back(type);
    for (const BoundArg &arg : call.args) {
      size_t entries = arg.literal.kind == Kind::values     ? arg.values.size()
                       : arg.literal.kind == Kind::integers ? arg.literal.integers.size()
                       : arg.literal.kind == Kind::reals    ? arg.literal.reals.size()
                                                            : call.resultTypes.size();
      if (entries != call.resultTypes.size() || llvm::is_contained(arg.values, Value()))
        return emitter.error("'") << call.op << "' has " << entries << " entries in '" << arg.name() << "' and "
                                  << call.resultTypes.size() << " positions";
      at.args.push_back(getPosition(arg, index));
      std::string &name = at.args.back().literal.name;
      if (name == position.from)
        name = position.to.str();
      else if (name == "tensors1")
        name = "end";
    }
    SmallVector<Value> made;
    if (failed(emitCall(emitter, at, made)))
      return failure();
    results.append(made);
  }
  return success();
}

/// One position of _fused_adagrad as PyTorch's CPU kernel computes it: the rate in f64, everything else in the
/// parameter's type, of f16 and bf16 in f32, where the sum is rounded for later steps only: its square root is taken
/// before. Gives parameter and sum.
static std::pair<Value, Value> emitAdagradPosition(Emitter &emitter, Call &call, Value param, Value grad, Value sum,
                                                   Value step) {
  OpBuilder &builder = emitter.builder;
  RankedTensorType stored = typeOf(param), storedSum = typeOf(sum), type = stored;
  if (type.getElementTypeBitWidth() < 32)
    type = type.clone(builder.getF32Type());
  param = emitter.cast(param, type.getElementType());
  grad = emitter.cast(grad, type.getElementType());
  sum = emitter.cast(sum, type.getElementType());
  auto scalarOp = [&](StringRef op, Value value, double other) {
    return emitter.createValue(op, value, emitter.named("other", builder.getF64FloatAttr(other)), typeOf(value));
  };
  // lr / (1 + (step - 1) * lr_decay)
  Value decay = scalarOp("sub.Scalar", emitter.cast(step, builder.getF64Type()), 1);
  decay = scalarOp("add.Scalar", scalarOp("mul.Scalar", decay, call.number("lr_decay", 0)), 1);
  Value lr = emitter.cast(call.value("lr"), builder.getF64Type());
  Value rate = emitter.createValue("div.Tensor", {lr, decay}, {}, typeOf(decay));
  rate = emitter.cast(rate, type.getElementType());

  if (call.boolean("maximize"))
    grad = emitter.createValue("neg", grad, {}, type);
  if (double weightDecay = call.number("weight_decay", 0); weightDecay != 0)
    grad = emitter.createValue("add.Tensor", {grad, param},
                               emitter.named("alpha", builder.getF64FloatAttr(weightDecay)), type);
  sum = emitter.createValue("addcmul", {sum, grad, grad}, {}, type);
  Value deviation = scalarOp("add.Scalar", emitter.createValue("sqrt", sum, {}, type), call.number("eps", 0));
  Value update = emitter.createValue("mul.Tensor", {grad, rate}, {}, type);
  update = emitter.createValue("div.Tensor", {update, deviation}, {}, type);
  param = emitter.createValue("sub.Tensor", {param, update}, {}, type);
  return {emitter.cast(param, stored.getElementType()), emitter.cast(sum, storedSum.getElementType())};
}

static LogicalResult emitFusedAdagrad(Emitter &emitter, Call &call, Results &results) {
  for (StringRef name : {"grad_scale", "found_inf"})
    if (BoundArg *arg = call.find(name); arg && !arg->isNone())
      return emitter.error("'_fused_adagrad' with ") << name << " is not supported (gradient scaling for float16)";
  SmallVector<BoundArg *> lists;
  for (StringRef name : {"self", "grads", "state_sums", "state_steps"})
    if (BoundArg *list = call.find(name);
        list && 2 * list->values.size() == call.resultTypes.size() && !llvm::is_contained(list->values, Value()))
      lists.push_back(list);
    else
      return emitter.error("'_fused_adagrad' needs a tensor per parameter in list '") << name << "'";
  if (!call.value("lr"))
    return emitter.error("argument 'lr' of '_fused_adagrad' must be a tensor");
  SmallVector<Value> sums;
  for (unsigned i = 0; i < lists[0]->values.size(); ++i) {
    auto [param, sum] = emitAdagradPosition(emitter, call, lists[0]->values[i], lists[1]->values[i],
                                            lists[2]->values[i], lists[3]->values[i]);
    results.push_back(param);
    sums.push_back(sum);
  }
  results.append(sums);
  return success();
}

void spmd::normalizeOptimizer(NormalizerTable &table) { table["_fused_adagrad.tensor_lr"] = &emitFusedAdagrad; }
