//===- Conversions.cpp - a value in a wanted state ------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace spmd::partition {

Value Partitioner::get(Value value, AxisState want) {
  if (isParameter(value) || parameterViews.contains(value)) {
    // Never kept: gathered again wherever it is used, see [Note: order].
    Value whole = getParameterView(value);
    return want.isReplicated() ? whole : slice(whole, typeOf(value), want);
  }
  auto find = [&](AxisState state) {
    return llvm::find_if(locals[value], [&](const auto &entry) { return entry.first == state; });
  };
  if (auto *known = find(want); known != locals[value].end())
    return known->second;
  auto *from = find(AxisState::replicated());
  if (auto carrier = carriers.find(value); carrier != carriers.end() && from == locals[value].end()) {
    // A segment of a chunk, which is not reduced again where it is a gradient, or an entry of a table.
    const Carrier &at = carrier->second;
    Value made = at.isTable ? getEntry(value, at) : unpack(at.value, at.place, typeOf(value));
    AxisState state = at.isTable ? *partition::getState(at.value.getType()) : AxisState::replicated();
    locals[value].insert(locals[value].begin(), {state, made});
    if (state == want)
      return made;
  }
  from = find(AxisState::replicated());
  if (from == locals[value].end())
    from = locals[value].begin();
  Value made = convert(value, from->first, want, from->second);
  locals[value].push_back({want, made});
  return made;
}

Value Partitioner::convert(Value value, AxisState from, AxisState to, Value local) {
  RankedTensorType type = typeOf(value);
  if (from.isReplicated() && to.isShard())
    return slice(local, type, to);
  if (from.isPartial() && to.isShard() && from.kind == ReduceKind::sum && from.outer == to.outer)
    return create<ReduceScatterOp>(getLocalType(type, to), local, step.meshRef(), step.axes(), FlatSymbolRefAttr(),
                                   ReduceKindAttr::get(builder.getContext(), from.kind),
                                   builder.getI64IntegerAttr(to.dim), builder.getI64IntegerAttr(to.pre),
                                   builder.getI64IntegerAttr(to.chunk));
  if (from.isPartial() && to.isReplicated())
    return allReduce(local, type, from, {});
  if (from.isShard() && to.isReplicated()) {
    std::string place = describeSource(loc);
    if (isFinal)
      emitWarning(loc) << "gathers an activation of type " << type << " (" << getTensorBytes(type) << " bytes, dimension "
                       << from.dim << " is sharded" << (place.empty() ? "" : "; ") << place
                       << "); an op here needs that dimension whole; "
                       << "to avoid it, compute on another dimension here, or choose another batch dimension "
                          "(--batch-dim=NAME=DIM)";
    return create<AllGatherOp>(getLocalType(type, to), local, step.meshRef(), step.axes(), FlatSymbolRefAttr(),
                               builder.getI64IntegerAttr(from.dim), builder.getI64IntegerAttr(from.pre),
                               builder.getI64IntegerAttr(type.getDimSize(from.dim) / from.pre));
  }
  // A summand of a gradient, of which the reduction takes a factor more.
  if (from.isPartial() && to.isVarying())
    return create<aten::MulScalarOp>(getLocalType(type, to), local, builder.getF64FloatAttr(step.gradientDivideFactor));
  if (from.isVarying()) {
    if (!cannotConvert)
      emitVaryingError(current ? current : step.func.getOperation());
    cannotConvert = true;
    return local;
  }
  if (to.isReplicated()) {
    if (!cannotConvert)
      emitError(loc) << "a value of type " << type << " is in pieces of a shard unit here, and is needed whole ("
                     << describeSource(loc) << "); an optimizer must update whole lists of parameters";
    cannotConvert = true;
    return local;
  }
  // Everything else goes over the whole value.
  Value whole = get(value, AxisState::replicated());
  return slice(whole, type, to);
}

/// 1 on the first rank and 0 on the others: a sum that is 1.
Value Partitioner::getOneOnFirst(Type dtype) {
  auto numbers = RankedTensorType::get({step.ranks}, builder.getI64Type());
  AxisState cut = step.isLocalView ? AxisState::varying() : AxisState::shard(0, 1, 1);
  RankedTensorType row = step.isLocalView ? numbers.clone({1}) : numbers;
  auto zero = builder.getI64IntegerAttr(0), one = builder.getI64IntegerAttr(1);
  Value all = create<aten::ArangeStartStepOp>(getLocalType(numbers, AxisState::replicated()), zero,
                                              builder.getI64IntegerAttr(step.ranks), one);
  Value own = create<SliceOp>(getLocalType(row, cut), all, step.meshRef(), step.axes(), zero, one, one);
  Value isFirst = create<aten::EqScalarOp>(getLocalType(row.clone(builder.getI1Type()), cut), own, zero);
  Value number = create<aten::ToCopyOp>(getLocalType(row.clone(dtype), cut), isFirst, TypeAttr::get(dtype));
  return create<aten::SumDimIntListOp>(getLocalType(RankedTensorType::get({}, dtype), getSummandState()), number,
                                       builder.getDenseI64ArrayAttr({0}), /*keepdim=*/false, TypeAttr());
}

AxisState Partitioner::getSummandState() const {
  return step.isLocalView ? AxisState::varying() : AxisState::partial(ReduceKind::sum);
}

Value Partitioner::getSummand(Value value) {
  AxisState want = getSummandState(), sum = AxisState::partial(ReduceKind::sum);
  RankedTensorType type = typeOf(value);
  auto isHere = [&](AxisState state) {
    return llvm::any_of(locals[value], [&](const auto &entry) { return entry.first == state; });
  };
  if (isHere(sum))
    return get(value, sum);
  if (isHere(want)) // in the local view, where what is added up is divided
    return create<aten::DivScalarOp>(getLocalType(type, want), get(value, want),
                                     builder.getF64FloatAttr(step.gradientDivideFactor));
  // What all ranks have is the first one's.
  return create<aten::MulTensorOp>(getLocalType(type, want), getWhole(value, type),
                                   getOneOnFirst(type.getElementType()));
}

Value Partitioner::allReduce(Value local, RankedTensorType global, const AxisState &state, FlatSymbolRefAttr unit) {
  Attribute kinds = ReduceKindAttr::get(builder.getContext(), state.kind);
  auto op = create<AllReduceOp>(TypeRange{getLocalType(global, AxisState::replicated())}, ValueRange{local},
                                step.meshRef(), step.axesOf(state), unit, builder.getArrayAttr(kinds));
  return op->getResult(0);
}

Value Partitioner::slice(Value local, RankedTensorType global, AxisState to) {
  return create<SliceOp>(getLocalType(global, to), local, step.meshRef(), step.axes(),
                         builder.getI64IntegerAttr(to.dim), builder.getI64IntegerAttr(to.pre),
                         builder.getI64IntegerAttr(to.chunk));
}

Value Partitioner::getMasked(Value value, AxisState want, double fill) {
  Value local = get(value, want);
  Value &made = masked[{value, local, llvm::bit_cast<uint64_t>(fill)}];
  if (!made)
    made = create<MaskOp>(local.getType(), local, step.meshRef(), step.axes(), builder.getI64IntegerAttr(want.dim),
                          builder.getI64IntegerAttr(want.pre), builder.getI64IntegerAttr(want.chunk),
                          builder.getI64IntegerAttr(typeOf(value).getDimSize(want.dim) / want.pre),
                          builder.getF64FloatAttr(fill));
  return made;
}

} // namespace spmd::partition
