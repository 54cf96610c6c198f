//===- Parameters.cpp - parameters and their views, whole -----------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"

using namespace mlir;

namespace spmd::partition {

bool Partitioner::isParameter(Value value) const {
  auto arg = dyn_cast<BlockArgument>(value);
  return arg && arg.getOwner()->getParentOp() == step.func && getArgRole<ParamAttr>(step.func, arg.getArgNumber());
}

/// The parameter, or a chain of views of it, on every rank: gathered and viewed
/// again for this use.
Value Partitioner::getParameterView(Value value) {
  if (isParameter(value)) {
    const Carrier &carrier = carriers.find(value)->second;
    return unpack(carrier.value, carrier.place, typeOf(value));
  }
  if (Value known = viewLocals.lookup({value, segment}))
    return known;
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(getParameterView(operand));
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(getLocalType(typeOf(result), AxisState::replicated()));
  Operation *clone = cloneOnto(op, operands, types);
  tag(clone);
  for (auto [old, result] : llvm::zip(op->getResults(), clone->getResults()))
    viewLocals[{old, segment}] = result;
  return viewLocals.lookup({value, segment});
}

/// One segment of a chunk, whole.
Value Partitioner::unpack(Value chunk, Place place, RankedTensorType type) {
  Unit &unit = step.units[place.unit];
  auto name = FlatSymbolRefAttr::get(unit.op.getSymNameAttr());
  Value flat = wholeOf.lookup(chunk);
  if (!flat)
    flat = unit.sharded ? gather(place.unit, chunk) : chunk;
  StringRef segmentName = unit.layout.getSegments()[place.segment].getName();
  auto op = create<UnpackOp>(TypeRange{getLocalType(type, AxisState::replicated())}, flat, name,
                             builder.getStrArrayAttr({segmentName}));
  return op->getResult(0);
}

/// The whole flat buffer of a unit, from the ranks' chunks.
Value Partitioner::gather(int64_t number, Value chunk) {
  RankedTensorType type = getFlatType(number, typeOf(chunk).getElementType());
  return create<AllGatherOp>(type, chunk, step.meshRef(), step.shardAxes,
                             FlatSymbolRefAttr::get(step.units[number].op.getSymNameAttr()),
                             builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(1),
                             builder.getI64IntegerAttr(type.getDimSize(0)));
}

/// One entry of a table, in the shape of one element that it has in the captured step.
Value Partitioner::getEntry(Value value, const Carrier &carrier) {
  AxisState state = *partition::getState(carrier.value.getType());
  auto type = typeOf(value);
  auto number = RankedTensorType::get({}, type.getElementType());
  Value entry = create<aten::SelectIntOp>(getLocalType(number, state), carrier.value, builder.getI64IntegerAttr(0),
                                          builder.getI64IntegerAttr(carrier.place.segment));
  return type.getRank() == 0 ? entry : view(entry, type, state);
}

/// The same elements in the shape of `type`.
Value Partitioner::view(Value local, RankedTensorType type, AxisState state) {
  return create<aten::ViewOp>(getLocalType(type, state), local, builder.getDenseI64ArrayAttr(type.getShape()));
}

} // namespace spmd::partition
