//===- TensorPartitioner.cpp - one rank of the tensor axis ----------------===//

#include "TensorPartitioner.h"
#include "TensorSplits.h"

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;
using spmd::aten::ListOpInterface;

namespace spmd::partition {

RankedTensorType TensorPartitioner::getPartType(RankedTensorType global, const AxisState &state) {
  return RankedTensorType::get(getLocalShape(global.getShape(), state), global.getElementType());
}

TensorPartitioner::TensorPartitioner(func::FuncOp step, MeshOp mesh, const llvm::DenseMap<Value, AxisState> &arguments)
    : step(step), mesh(mesh), ranks(mesh.getNumRanks(mesh.getTensorAxes())), arguments(arguments),
      builder(step.getContext()) {}

LogicalResult TensorPartitioner::run(func::FuncOp step, MeshOp mesh,
                                     const llvm::DenseMap<Value, AxisState> &arguments) {
  TensorPartitioner partitioner(step, mesh, arguments);
  partitioner.createFunction();
  auto emitAll = [&]() -> LogicalResult {
    // Taking an op apart puts others in its place.
    Block &body = step.getBody().front();
    for (Operation *op = &body.front(); op != body.getTerminator();) {
      Operation *before = op->getPrevNode();
      if (splitForParts(op, [&](Value value) { return partitioner.getState(value); }))
        op = before ? before->getNextNode() : &body.front();
      if (failed(partitioner.emit(op)))
        return failure();
      op = op->getNextNode();
    }
    return partitioner.emitReturn();
  };
  if (failed(emitAll())) {
    partitioner.made.erase();
    return failure();
  }
  StringAttr name = step.getSymNameAttr();
  step.erase();
  partitioner.made.setSymNameAttr(name);
  return success();
}

void TensorPartitioner::createFunction() {
  made = cast<func::FuncOp>(step->cloneWithoutRegions());
  made.setName("step.tensor");
  builder.setInsertionPoint(step);
  builder.insert(made);
  Block *body = builder.createBlock(&made.getBody());
  for (BlockArgument argument : step.getArguments()) {
    AxisState state = arguments.lookup(argument);
    RankedTensorType type = typeOf(argument);
    setLocal(argument, state, body->addArgument(getPartType(type, state), argument.getLoc()));
    if (state.isShard())
      made.setArgAttr(argument.getArgNumber(), kTensorCutAttr,
                      ShardingAttr::get(step.getContext(), type.getShape(), {state}));
  }
  builder.setInsertionPointToEnd(body);
}

void TensorPartitioner::setLocal(Value value, AxisState state, Value local) {
  states[value] = state;
  locals[value].push_back({state, local});
}

void TensorPartitioner::tag(Operation *op) {
  if (Attribute segment = current->getAttr(kSegmentAttr))
    op->setAttr(kSegmentAttr, segment);
}

//===----------------------------------------------------------------------===//
// A value in a wanted state
//===----------------------------------------------------------------------===//

Value TensorPartitioner::slice(Value local, RankedTensorType global, AxisState to) {
  auto op = SliceOp::create(builder, current->getLoc(), getPartType(global, to), local,
                            FlatSymbolRefAttr::get(mesh.getSymNameAttr()), mesh.getTensorAxes(),
                            builder.getI64IntegerAttr(to.dim), builder.getI64IntegerAttr(to.pre),
                            builder.getI64IntegerAttr(to.chunk));
  tag(op);
  return op;
}

FailureOr<Value> TensorPartitioner::get(Value value, AxisState want, unsigned operand) {
  auto find = [&](AxisState state) -> Value {
    for (auto &[have, local] : locals[value])
      if (have == state)
        return local;
    return {};
  };
  if (Value known = find(want))
    return known;
  AxisState from = getState(value);
  Value whole = find(AxisState::replicated());
  if (!whole && from.isPartial() && !want.isPartial()) {
    auto op =
        AllReduceOp::create(builder, current->getLoc(), TypeRange{typeOf(value)}, ValueRange{find(from)},
                            FlatSymbolRefAttr::get(mesh.getSymNameAttr()), mesh.getTensorAxes(), FlatSymbolRefAttr(),
                            builder.getArrayAttr(ReduceKindAttr::get(builder.getContext(), from.kind)));
    tag(op);
    whole = op->getResult(0);
    locals[value].push_back({AxisState::replicated(), whole});
  }
  if (whole && want.isReplicated())
    return whole;
  if (!whole || !want.isShard())
    return failWhole(value, operand, want);
  Value part = slice(whole, typeOf(value), want);
  locals[value].push_back({want, part});
  return part;
}

LogicalResult TensorPartitioner::failWhole(Value value, unsigned operand, AxisState want) {
  AxisState have = getState(value);
  InFlightDiagnostic diag = current->emitError() << "'" << current->getName() << "' needs ";
  if (have.isShard() && want.isReplicated())
    diag << "dimension " << have.dim << " of operand " << operand << " whole";
  else
    diag << "operand " << operand << " as " << want.str() << " on the tensor axis";
  diag << ", and it is " << have.str() << " over the " << ranks << " ranks of the tensor axis ("
       << describeSource(current->getLoc()) << ")";
  if (Operation *source = value.getDefiningOp())
    diag.attachNote(source->getLoc()) << "it is computed here (" << describeSource(source->getLoc()) << ")";
  diag.attachNote() << "nothing that is cut over the tensor axis is gathered: a weight that is cut in its outputs is "
                       "followed by one that is cut in its inputs before anything needs all of them; place these "
                       "parameters so, or whole (--override-placements), or take fewer ranks where heads do not divide";
  return failure();
}

LogicalResult TensorPartitioner::failParameter(StringRef name, AxisState own, Value value) {
  AxisState have = getState(value);
  Operation *source = value.getDefiningOp();
  Location loc = source ? source->getLoc() : current->getLoc();
  InFlightDiagnostic diag = emitError(loc) << "the gradient or new value of parameter '" << name << "' is "
                                           << have.str() << " on the tensor axis, and the parameter is " << own.str()
                                           << " (" << describeSource(loc) << ")";
  diag.attachNote() << "place the parameter alike: --override-placements=" << name << "=shard(" << have.dim
                    << (have.pre == 1 ? "" : "," + std::to_string(have.pre)) << ")";
  return failure();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult TensorPartitioner::emit(Operation *op) {
  current = op;
  if (!isa<aten::AtenOpInterface>(op))
    return op->emitError() << "'" << op->getName() << "' cannot be partitioned: it is no aten op ("
                           << describeSource(op->getLoc()) << ")";
  if (auto list = dyn_cast<ListOpInterface>(op))
    return emitList(list);
  if (std::optional<LogicalResult> done = emitLookup(op))
    return *done;
  return emitGeneric(op);
}

LogicalResult TensorPartitioner::emitGeneric(Operation *op) {
  SmallVector<AxisState> operandStates;
  for (Value operand : op->getOperands())
    operandStates.push_back(getState(operand));
  FailureOr<OpStates> chosen = propagate(op, operandStates, /*staysPartial=*/false, ranks);
  if (failed(chosen))
    return failure();
  SmallVector<Value> operands;
  for (auto [index, want] : llvm::enumerate(chosen->operands)) {
    FailureOr<Value> local = get(op->getOperand(index), want, index);
    if (failed(local))
      return failure();
    operands.push_back(*local);
  }
  SmallVector<Type> types;
  for (auto [result, state] : llvm::zip_equal(op->getResults(), chosen->results))
    types.push_back(getPartType(typeOf(result), state));
  Operation *clone = builder.insert(op->cloneWithoutRegions());
  clone->setOperands(operands);
  if (llvm::any_of(chosen->operands, [](AxisState state) { return state.isShard(); }) &&
      failed(cast<aten::ShardingOpInterface>(clone).localize(types)))
    return op->emitError() << "'" << op->getName() << "' cannot compute the part of its result that a rank of the "
                           << "tensor axis has (" << describeSource(op->getLoc()) << ")";
  for (auto [old, state, result, type] :
       llvm::zip_equal(op->getResults(), chosen->results, clone->getResults(), types)) {
    result.setType(type);
    setLocal(old, state, result);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Lists of the optimizer
//===----------------------------------------------------------------------===//

FailureOr<AxisState> TensorPartitioner::chooseAt(ListOpInterface list, size_t position) {
  std::optional<AxisState> chosen;
  for (OperandRange operands : list.getOperandLists()) {
    if (operands.empty() || !getState(operands[position]).isShard())
      continue;
    AxisState state = getState(operands[position]);
    if (chosen && *chosen != state)
      return failWhole(operands[position], operands.getBeginOperandIndex() + position, *chosen);
    chosen = state;
  }
  if (!chosen)
    return AxisState::replicated();
  // What is cut meets a parameter that is not, or its state.
  for (OperandRange operands : list.getOperandLists()) {
    auto argument = operands.empty() ? BlockArgument() : dyn_cast<BlockArgument>(operands[position]);
    if (!argument || getState(argument).isShard() || typeOf(argument).getRank() == 0)
      continue;
    if (auto param = getArgRole<ParamAttr>(step, argument.getArgNumber()))
      for (OperandRange others : list.getOperandLists())
        if (!others.empty() && getState(others[position]).isShard())
          return failParameter(param.getName(), getState(argument), others[position]);
  }
  return *chosen;
}

/// Norms of parts are norms of the whole once they are combined: of all positions in one message.
void TensorPartitioner::reduceNorms(ListOpInterface list) {
  SmallVector<Value> partial, globals;
  SmallVector<Attribute> kinds;
  SmallVector<Type> types;
  for (Value result : list.getResultLists().front())
    if (AxisState state = getState(result); state.isPartial()) {
      globals.push_back(result);
      partial.push_back(locals[result].front().second);
      types.push_back(result.getType());
      kinds.push_back(ReduceKindAttr::get(builder.getContext(), state.kind));
    }
  if (partial.empty())
    return;
  auto op = AllReduceOp::create(builder, list.getLoc(), types, partial, FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                                mesh.getTensorAxes(), FlatSymbolRefAttr(), builder.getArrayAttr(kinds));
  tag(op);
  for (auto [value, whole] : llvm::zip_equal(globals, op->getResults()))
    locals[value].push_back({AxisState::replicated(), whole});
}

LogicalResult TensorPartitioner::emitList(ListOpInterface list) {
  SmallVector<Value> operands(list->getNumOperands());
  SmallVector<AxisState> results(list->getNumResults());
  std::optional<ReduceKind> norm = list.isNorm() ? getNormKind(list) : std::nullopt;
  size_t listed = 0;
  for (ResultRange range : list.getResultLists())
    listed += range.size();
  for (OpOperand &operand : list->getOpOperands()) // of a result for all positions no rule says what it is of parts
    if (getState(operand.get()).isShard() && listed != list->getNumResults())
      return failWhole(operand.get(), operand.getOperandNumber(), AxisState::replicated());
  for (size_t position = 0, e = list.getLength(); position < e; ++position) {
    FailureOr<AxisState> chosen = chooseAt(list, position);
    if (failed(chosen))
      return failure();
    if (list.isNorm() && chosen->isShard() && !norm)
      return failWhole(list.getOperandLists().front()[position], position, AxisState::replicated());
    ArrayRef<int64_t> shape;
    for (OperandRange range : list.getOperandLists())
      if (!range.empty() && getState(range[position]).isShard())
        shape = typeOf(range[position]).getShape();
    auto stateOf = [&](Value value) { return typeOf(value).getShape() == shape ? *chosen : AxisState::replicated(); };
    for (OperandRange range : list.getOperandLists()) {
      if (range.empty())
        continue;
      unsigned index = range.getBeginOperandIndex() + position;
      FailureOr<Value> local = get(range[position], stateOf(range[position]), index);
      if (failed(local))
        return failure();
      operands[index] = *local;
    }
    for (ResultRange range : list.getResultLists())
      if (!range.empty())
        results[cast<OpResult>(range[position]).getResultNumber()] =
            list.isNorm() && chosen->isShard() ? AxisState::partial(*norm) : stateOf(range[position]);
  }
  for (OpOperand &operand : list->getOpOperands())
    if (Value &local = operands[operand.getOperandNumber()]; !local) {
      FailureOr<Value> whole = get(operand.get(), AxisState::replicated(), operand.getOperandNumber());
      if (failed(whole))
        return failure();
      local = *whole;
    }
  Operation *clone = builder.insert(list->cloneWithoutRegions());
  clone->setOperands(operands);
  for (auto [old, state, result] : llvm::zip_equal(list->getResults(), results, clone->getResults())) {
    result.setType(getPartType(typeOf(old), state));
    setLocal(old, state, result);
  }
  if (list.isNorm())
    reduceNorms(list);
  return success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

LogicalResult TensorPartitioner::emitReturn() {
  Block &body = step.getBody().front();
  Operation *terminator = body.getTerminator();
  // What is brought home belongs to the last segment.
  current = terminator->getPrevNode() ? terminator->getPrevNode() : terminator;
  SmallVector<Value> values;
  SmallVector<Type> types;
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    AxisState want;
    if (auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(step, index))) {
      std::optional<unsigned> arg = findArg(step, update.getArg());
      want = arg ? getState(step.getArgument(*arg)) : want;
      auto param = dyn_cast<ParamAttr>(update.getArg());
      if (param && getState(value).isShard() && getState(value) != want)
        return failParameter(param.getName(), want, value);
    }
    if (getState(value).isShard() && getState(value) != want)
      return emitError(value.getLoc()) << "result " << index << " of @step, " << getResultRole(step, index) << ", is "
                                       << getState(value).str() << " over the tensor axis and is returned whole ("
                                       << describeSource(value.getLoc())
                                       << "); return what follows from a product that adds it up, or place the "
                                          "parameters that it comes from whole (--override-placements)";
    FailureOr<Value> local = get(value, want, index);
    if (failed(local))
      return failure();
    values.push_back(*local);
    types.push_back(local->getType());
  }
  func::ReturnOp::create(builder, terminator->getLoc(), values);
  made.setFunctionType(builder.getFunctionType(TypeRange(made.getBody().front().getArgumentTypes()), types));
  return success();
}

} // namespace spmd::partition
