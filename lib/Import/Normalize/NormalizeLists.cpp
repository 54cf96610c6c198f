//===- NormalizeLists.cpp - List ops of optimizers ------------------------===//

#include "Normalize.h"

#include "dialects/Aten/TypePromotion.h"

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

static LogicalResult emitListCopy(Emitter &emitter, Call &call, Results &results) {
  BoundArg *sources = call.find("src");
  if (!sources || sources->values.size() != call.resultTypes.size())
    return emitter.error("'_foreach_copy' needs lists of one length");
  for (auto [value, type] : llvm::zip_equal(sources->values, call.resultTypes))
    results.push_back(emitter.expand(emitter.cast(value, type.getElementType()), type.getShape()));
  return success();
}

static LogicalResult emitListZero(Emitter &emitter, Call &call, Results &results) {
  for (RankedTensorType type : call.resultTypes)
    results.push_back(emitter.full(type, emitter.builder.getF64FloatAttr(0.0)));
  return success();
}

static LogicalResult emitListClamp(Emitter &emitter, Call &call, Results &results) {
  call.op = call.op == "_foreach_clamp_min.Scalar" ? "_foreach_maximum.Scalar" : "_foreach_minimum.Scalar";
  return emitSameOp(emitter, call, results);
}

/// A Scalar that was computed in the step is a 0-dimensional tensor: the
/// .Tensor overload.
static LogicalResult emitListBinary(Emitter &emitter, Call &call, Results &results) {
  BoundArg *scalar = call.find("scalar");
  if (scalar && scalar->isValue()) {
    scalar->literal.name = "other";
    if (call.op == "_foreach_sub.Scalar") {
      call.op = "_foreach_add.Tensor";
      setInteger(call, "alpha", -1);
    } else {
      call.op = StringRef(call.op).split('.').first.str() + ".Tensor";
    }
    return emitSameOp(emitter, call, results);
  }
  BoundArg *alpha = call.find("alpha"), *other = call.find("other");
  if (alpha && alpha->isValue() && other && other->literal.kind == Kind::values) {
    SmallVector<Type> types;
    for (Value value : other->values)
      types.push_back(value.getType());
    SmallVector<Value> operands(other->values);
    operands.push_back(alpha->values[0]);
    Operation *scaled = emitter.create("_foreach_mul.Tensor", operands, {}, types);
    other->values.assign(scaled->result_begin(), scaled->result_end());
    alpha->setInteger(1);
  }
  return emitSameOp(emitter, call, results);
}

/// A fused optimizer of one param group: every hyper-parameter becomes a list
/// with one entry per group.
static LogicalResult emitFused(Emitter &emitter, Call &call, Results &results) {
  OpBuilder &builder = emitter.builder;
  std::string op = StringRef(call.op).split('.').first.str();
  bool sgd = op == "_fused_sgd";
  for (StringRef name : {"grad_scale", "found_inf"})
    if (BoundArg *arg = call.find(name); arg && !arg->isNone())
      return emitter.error("'") << op << "' with " << name << " is not supported (gradient scaling for float16)";

  SmallVector<StringRef> lists =
      sgd ? SmallVector<StringRef>{"self", "grads", "momentum_buffer_list"}
          : SmallVector<StringRef>{"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps"};
  SmallVector<Value> operands;
  SmallVector<int32_t> segments;
  for (StringRef name : lists) {
    // The first step makes the momentum: what memory it is written to does not matter.
    bool isMade = name == "momentum_buffer_list" && call.boolean("is_first_step") && call.find(name) &&
                  !call.find(name)->values.empty();
    BoundArg *list = call.find(isMade ? StringRef("grads") : name);
    size_t size = list ? list->values.size() : 0;
    if (size)
      operands.append(list->values.begin(), list->values.end());
    segments.push_back(size);
  }
  SmallVector<NamedAttribute> attrs;
  BoundArg *lr = call.find("lr");
  if (lr && lr->isValue()) {
    operands.push_back(lr->values[0]);
    segments.push_back(1);
  } else {
    segments.push_back(0);
  }
  auto addNumber = [&](StringRef name, StringRef attr) -> LogicalResult {
    BoundArg *arg = call.find(name);
    if (!arg || (arg->literal.kind != Kind::real && arg->literal.kind != Kind::integer))
      return emitter.error("argument '") << name << "' of '" << op << "' must be float";
    attrs.push_back(emitter.named(attr, builder.getDenseF64ArrayAttr({arg->number()})));
    return success();
  };
  if (segments.back() == 0 && failed(addNumber("lr", "lr_values")))
    return failure();
  SmallVector<StringRef> numbers = sgd ? SmallVector<StringRef>{"weight_decay", "momentum", "dampening"}
                                       : SmallVector<StringRef>{"beta1", "beta2", "weight_decay", "eps"};
  for (StringRef name : numbers)
    if (failed(addNumber(name, name)))
      return failure();
  SmallVector<StringRef> flags = sgd ? SmallVector<StringRef>{"nesterov", "maximize", "is_first_step"}
                                     : SmallVector<StringRef>{"amsgrad", "maximize"};
  for (StringRef name : flags)
    attrs.push_back(emitter.named(name, builder.getBoolAttr(call.boolean(name))));
  SmallVector<int64_t> groups(segments[0], 0);
  attrs.push_back(emitter.named("groups", builder.getDenseI64ArrayAttr(groups)));

  // Results: the written lists, which are all but the gradients and steps.
  SmallVector<Type> types;
  SmallVector<int32_t> resultSegments;
  for (StringRef name : lists) {
    if (name == "grads" || name == "state_steps")
      continue;
    BoundArg *list = call.find(name);
    resultSegments.push_back(list ? list->values.size() : 0);
    if (list)
      for (Value value : list->values)
        types.push_back(value.getType());
  }
  attrs.push_back(emitter.named("operandSegmentSizes", builder.getDenseI32ArrayAttr(segments)));
  attrs.push_back(emitter.named("resultSegmentSizes", builder.getDenseI32ArrayAttr(resultSegments)));
  Operation *fused = emitter.create(op, operands, attrs, types);
  results.append(fused->result_begin(), fused->result_end());
  return success();
}

void spmd::normalizeLists(NormalizerTable &table) {
  table["_foreach_copy"] = &emitListCopy;
  table["_foreach_zero"] = &emitListZero;
  for (StringRef op : {"_foreach_clamp_min.Scalar", "_foreach_clamp_max.Scalar"})
    table[op] = &emitListClamp;
  for (StringRef op : {"_foreach_add.Scalar", "_foreach_sub.Scalar", "_foreach_mul.Scalar", "_foreach_div.Scalar",
                       "_foreach_add.List", "_foreach_sub.List"})
    table[op] = &emitListBinary;
  for (StringRef op : {"_fused_adam", "_fused_adam.tensor_lr", "_fused_adamw", "_fused_adamw.tensor_lr", "_fused_sgd",
                       "_fused_sgd.tensor_lr"})
    table[op] = &emitFused;
}
