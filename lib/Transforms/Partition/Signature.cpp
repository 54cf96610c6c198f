//===- Signature.cpp - arguments and results of the new @step -------------===//

#include "Partitioner.h"

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

void Partitioner::createFunction() {
  builder.setInsertionPointAfter(step.func);
  newFunc = func::FuncOp::create(builder, step.func.getLoc(), "step.partitioned", builder.getFunctionType({}, {}));
  Block *body = newFunc.addEntryBlock();
  addUnitArguments();
  addOtherArguments();
  builder.setInsertionPointToEnd(body);
}

/// Appends an argument with these attributes.
BlockArgument Partitioner::addArgument(Type type, DictionaryAttr attrs, Location at) {
  unsigned index = newFunc.getNumArguments();
  (void)newFunc.insertArgument(index, type, attrs, at);
  return newFunc.getArgument(index);
}

/// This rank's chunk of parameters that it has whole, for the optimizer.
Value Partitioner::takeChunk(int64_t number, Value whole) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&newFunc.getBody().front());
  Operation *last = step.func.getBody().front().getTerminator()->getPrevNode();
  segment = last ? last->getAttr(kSegmentAttr) : Attribute();
  RankedTensorType type = getChunkType(number, typeOf(whole).getElementType());
  Value chunk = create<SliceOp>(type, whole, step.meshRef(), step.shardAxes, builder.getI64IntegerAttr(0),
                                builder.getI64IntegerAttr(1), builder.getI64IntegerAttr(type.getDimSize(0)));
  wholeOf[chunk] = whole;
  return chunk;
}

void Partitioner::addUnitArguments() {
  MLIRContext *ctx = builder.getContext();
  for (auto [number, unit] : llvm::enumerate(step.units)) {
    auto name = FlatSymbolRefAttr::get(unit.op.getSymNameAttr());
    for (const UnitArgument &argument : unit.arguments) {
      bool isWhole = unit.hasWholeParameters && argument.state == "param";
      RankedTensorType type = argument.isTable ? getTableType(number, argument.dtype, AxisState::replicated())
                              : isWhole        ? getFlatType(number, argument.dtype)
                                               : getChunkType(number, argument.dtype);
      Attribute role = argument.isTable ? Attribute(TableAttr::get(ctx, name, argument.state, argument.init))
                                        : ShardAttr::get(ctx, name, argument.state, argument.init);
      NamedAttribute attr(builder.getStringAttr(kArgAttr), role);
      Value arg = addArgument(type, builder.getDictionaryAttr(attr), unit.op.getLoc());
      if (isWhole)
        arg = takeChunk(number, arg);
      for (auto [index, member] : llvm::enumerate(argument.members))
        if (member) {
          carriers[member] = {arg, Place{static_cast<int64_t>(number), static_cast<int64_t>(index)}, argument.isTable};
          states[member] = *partition::getState(arg.getType());
        }
    }
  }
}

/// Batch inputs are cut; with view=local they are each rank's own, and so is a buffer that the step updates.
AxisState Partitioner::getArgumentState(BlockArgument argument) const {
  auto type = typeOf(argument);
  unsigned number = argument.getArgNumber();
  auto batch = getArgRole<BatchAttr>(step.func, number);
  if (step.summands.contains(argument))
    return getSummandState();
  bool isCut = batch && batch.getDim() >= 0 && batch.getDim() < type.getRank();
  if (step.isLocalView) {
    bool isUpdated = getArgRole<BufferAttr>(step.func, number) && findUpdate(step.func, number);
    return isCut || isUpdated ? AxisState::varying() : AxisState::replicated();
  }
  if (!isCut || step.ranks == 1)
    return AxisState::replicated();
  return AxisState::shard(batch.getDim(), 1, getChunk(type.getDimSize(batch.getDim()), step.ranks));
}

void Partitioner::addOtherArguments() {
  for (BlockArgument old : step.func.getArguments()) {
    if (step.places.count(old))
      continue;
    auto type = typeOf(old);
    AxisState state = getArgumentState(old);
    BlockArgument arg =
        addArgument(getLocalType(type, state), step.func.getArgAttrDict(old.getArgNumber()), old.getLoc());
    setLocal(old, state, arg);
    if (step.isLocalView && step.summands.contains(old))
      locals[old].front().first = AxisState::partial(ReduceKind::sum); // not a gradient of the rank's own yet
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

LogicalResult Partitioner::emitReturn() {
  Operation *terminator = step.func.getBody().front().getTerminator();
  loc = terminator->getLoc();
  // What is gathered for the caller belongs to the last segment.
  Operation *last = terminator->getPrevNode();
  segment = last ? last->getAttr(kSegmentAttr) : Attribute();
  SmallVector<Value> values;
  SmallVector<Attribute> roles;
  llvm::DenseMap<Value, Value> updates;
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    Attribute role = getResultRole(step.func, index);
    if (auto update = dyn_cast_or_null<UpdateAttr>(role)) {
      std::optional<unsigned> arg = findArg(step.func, update.getArg());
      if (!arg)
        return step.func.emitError() << "result " << index << " updates " << update.getArg()
                                     << ", which no argument is";
      if (step.places.count(step.func.getArgument(*arg))) {
        updates[step.func.getArgument(*arg)] = value;
        continue;
      }
      if (step.summands.contains(step.func.getArgument(*arg))) {
        values.push_back(getSummand(value));
        roles.push_back(role);
        continue;
      }
    }
    takeReduced(value);
    // Whole on every rank; what varies (view=local) stays each rank's own.
    values.push_back(get(value, getState(value).isVarying() ? AxisState::varying() : AxisState::replicated()));
    roles.push_back(role);
  }
  // One result per flat argument that any parameter of the unit updates.
  unsigned number = 0;
  for (auto [unitNumber, unit] : llvm::enumerate(step.units))
    for (const UnitArgument &argument : unit.arguments) {
      SmallVector<Member> members;
      bool updated = false;
      for (auto [index, member] : llvm::enumerate(argument.members)) {
        if (!member)
          continue;
        updated |= updates.count(member);
        Value now = updates.lookup(member);
        members.push_back({static_cast<int64_t>(index), now ? now : Value(member)});
      }
      unsigned arg = number++;
      if (!updated)
        continue;
      FailureOr<Value> flat =
          argument.isTable ? assembleTable(unitNumber, members) : assembleChunk(unitNumber, members);
      if (failed(flat))
        return failure();
      bool isWhole = unit.hasWholeParameters && argument.state == "param";
      values.push_back(isWhole ? gather(unitNumber, *flat) : *flat);
      roles.push_back(UpdateAttr::get(builder.getContext(), getArgRole(newFunc, arg)));
    }

  func::ReturnOp::create(builder, loc, values);
  newFunc.setFunctionType(builder.getFunctionType(newFunc.getArgumentTypes(), ValueRange(values).getTypes()));
  for (auto [index, role] : llvm::enumerate(roles))
    if (role)
      newFunc.setResultAttr(index, kResultAttr, role);
  return success();
}

} // namespace spmd::partition
