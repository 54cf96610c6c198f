//===- OwnerOps.cpp - ops on chunks ---------------------------------------===//

#include "Partitioner.h"

#include "dialects/Spmd/Source.h"

using namespace mlir;
using spmd::aten::AtenOpInterface;

namespace spmd::partition {

//===----------------------------------------------------------------------===//
// Pointwise ops
//===----------------------------------------------------------------------===//

/// The value is a segment of a chunk already.
bool Partitioner::isOnChunk(Value value) const {
  auto carrier = carriers.find(value);
  return carrier != carriers.end() && !carrier->second.isTable;
}

/// An op on chunks reads the value as one number for all elements of `shape`.
bool Partitioner::isNumber(Value value, ArrayRef<int64_t> shape) const {
  if (cast<RankedTensorType>(value.getType()).getShape() != shape)
    return true;
  return shape.empty() && !isOnChunk(value) && !domain.getWanted(value);
}

/// A pointwise op runs on chunks when its result is at home, unless it can run on
/// gradients that are not reduced yet, so that one reduction serves more of them;
/// or when an operand is on a chunk already.
bool Partitioner::runsAtHome(Operation *op, Place &place) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  if (!runsOnChunks(op) || llvm::all_of(op->getOperands(), [&](Value operand) { return isNumber(operand, shape); }))
    return false;
  std::optional<Place> home = domain.getHome(op->getResult(0));
  if (!home) {
    Value first = op->getOperand(0);
    if (std::optional<Place> own = domain.getHome(first);
        own && OwnerDomain::isNeutral(op) && !isParameter(first) && first.getType() == op->getResult(0).getType()) {
      place = *own;
      return true;
    }
    for (Value operand : op->getOperands())
      if (isOnChunk(operand) && !isParameter(operand) && operand.getType() == op->getResult(0).getType()) {
        place = carriers.find(operand)->second.place;
        return true;
      }
    return false;
  }
  place = *home;
  if (llvm::any_of(op->getOperands(), [&](Value operand) { return isOnChunk(operand); }))
    return true;
  FailureOr<aten::ShardingRule> rule = cast<AtenOpInterface>(op).getShardingRule();
  if (failed(rule))
    return true;
  auto isSummand = [&](Value operand) { return getState(operand).isPartial() || getState(operand).isVarying(); };
  unsigned partials = llvm::count_if(op->getOperands(), isSummand);
  if (rule->linearity == aten::Linearity::additive)
    return partials != 0 && partials != op->getNumOperands();
  // gradient × number
  bool scales = rule->linearity == aten::Linearity::multilinear && llvm::is_contained(rule->multilinearOperands, 0u) &&
                !domain.isNormed(op->getOperand(0)) && (partials == 0 || isSummand(op->getOperand(0)));
  return !scales || partials > 1;
}

LogicalResult Partitioner::emitAtHome(Operation *op, Place place) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (isNumber(operand, shape)) {
      // A chunk has one dimension: [1, 1] would give it two.
      auto type = cast<RankedTensorType>(operand.getType());
      Value whole = get(operand, AxisState::replicated());
      auto one = RankedTensorType::get({1}, type.getElementType());
      operands.push_back(type.getRank() > 1 ? view(whole, one, AxisState::replicated()) : whole);
      continue;
    }
    FailureOr<Value> chunk = assembleChunk(place.unit, {Member(place.segment, operand)});
    if (failed(chunk))
      return failure();
    operands.push_back(*chunk);
  }
  Value result = op->getResult(0);
  Type dtype = cast<RankedTensorType>(result.getType()).getElementType();
  RankedTensorType type = getChunkType(place.unit, dtype);
  Operation *clone = cloneOnto(op, operands, type);
  carriers[result] = {clone->getResult(0), place, false};
  states[result] = *partition::getState(type);
  return success();
}

//===----------------------------------------------------------------------===//
// List ops
//===----------------------------------------------------------------------===//

/// What a position computes is at the place: a value of the parameter's shape, or a number that the unit keeps in a
/// table.
bool Partitioner::fits(const ListOp &list, int64_t position, Place place) const {
  ArrayRef<int64_t> shape = step.units[place.unit].layout.getSegments()[place.segment].getShape();
  auto rankOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
  bool isTable = llvm::all_of(list.operandLists, [&](OperandRange operands) {
    return operands.empty() || rankOf(operands[position]) == 0;
  });
  return list.isNorm || llvm::all_of(list.resultLists, [&](ResultRange results) {
    return results.empty() || cast<RankedTensorType>(results[position].getType()).getShape() == shape ||
           (isTable && rankOf(results[position]) == 0);
  });
}

/// Where a position runs: where its result is wanted, or else where an operand is; nowhere when it has no form on a
/// chunk, or nothing is gained by it.
std::optional<Place> Partitioner::getPlace(const ListOp &list, int64_t position) const {
  if (list.isNorm && !getNormKind(list.op))
    return std::nullopt;
  SmallVector<std::optional<Place>> candidates;
  for (ResultRange results : list.resultLists)
    if (!results.empty())
      candidates.push_back(domain.getHome(results[position]));
  for (OperandRange operands : list.operandLists) {
    if (operands.empty())
      continue;
    Value operand = operands[position];
    if (auto carrier = carriers.find(operand); carrier != carriers.end() && (list.isNorm || !isParameter(operand)))
      candidates.push_back(carrier->second.place);
    else if (list.isNorm || !isParameter(operand))
      candidates.push_back(list.isNorm ? domain.getWanted(operand) : domain.getHome(operand));
  }
  for (std::optional<Place> place : candidates)
    if (place && fits(list, position, *place))
      return place;
  return std::nullopt;
}

LogicalResult Partitioner::emitList(Operation *op) {
  ListOp list = ListOp::get(op);
  // One op per unit and element types. A list may name a parameter several times (gradients and parameters in one
  // list): its k-th values are in the unit's k-th op.
  using Key = std::tuple<int64_t, int64_t, Attribute>;
  llvm::MapVector<Key, SmallVector<std::pair<int64_t, int64_t>>> byUnit;
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> timesNamed;
  SmallVector<int64_t> rest;
  for (int64_t i = 0; i < list.length; ++i) {
    SmallVector<Attribute> types;
    auto add = [&](ValueRange values) {
      if (!values.empty())
        types.push_back(TypeAttr::get(cast<RankedTensorType>(values[i].getType()).getElementType()));
    };
    for (OperandRange operands : list.operandLists)
      add(operands);
    for (ResultRange results : list.resultLists)
      add(results);
    std::optional<Place> place = getPlace(list, i);
    if (!place) {
      rest.push_back(i);
      continue;
    }
    int64_t times = timesNamed[{place->unit, place->segment}]++;
    byUnit[{place->unit, times, builder.getArrayAttr(types)}].push_back({i, place->segment});
  }
  for (auto &[key, positions] : byUnit) {
    int64_t unit = std::get<0>(key);
    if (list.isNorm) {
      SmallVector<std::pair<Member, Value>> parts;
      for (auto [i, index] : positions)
        parts.push_back({Member(index, list.operandLists.front()[i]), list.resultLists.front()[i]});
      if (failed(emitNorm(op, unit, parts)))
        return failure();
    } else if (failed(emitUnitList(list, unit, positions))) {
      return failure();
    }
  }
  return rest.empty() ? success() : emitRest(list, rest);
}

/// One op on the chunk or the tables of a unit, of positions and their segments.
LogicalResult Partitioner::emitUnitList(const ListOp &list, int64_t number,
                                        ArrayRef<std::pair<int64_t, int64_t>> positions) {
  Unit &unit = step.units[number];
  // Position of each segment in the list; a segment without one takes any.
  int64_t any = positions.front().first;
  SmallVector<int64_t> entries(unit.numSegments(), any);
  for (auto [i, index] : positions)
    entries[index] = i;

  SmallVector<SmallVector<Value>> lists;
  bool onChunk = false;
  for (OperandRange operands : list.operandLists) {
    lists.emplace_back();
    if (operands.empty())
      continue;
    SmallVector<Member> members;
    for (auto [i, index] : positions)
      members.push_back({index, operands[i]});
    bool isNumbers = isTable(number, members);
    FailureOr<Value> flat =
        isNumbers ? FailureOr<Value>(assembleTable(number, members)) : assembleChunk(number, members);
    if (failed(flat))
      return failure();
    onChunk |= !isNumbers;
    lists.back().push_back(*flat);
  }
  SmallVector<Type> types;
  for (ResultRange results : list.resultLists) {
    if (results.empty())
      continue;
    Type dtype = cast<RankedTensorType>(results[any].getType()).getElementType();
    types.push_back(onChunk ? getChunkType(number, dtype) : getTableType(number, dtype, AxisState::replicated()));
  }
  Operation *made = createListOp(list, lists, types, entries, FlatSymbolRefAttr::get(unit.op.getSymNameAttr()));
  unsigned next = 0;
  for (ResultRange results : list.resultLists) {
    if (results.empty())
      continue;
    Value flat = made->getResult(next++);
    for (auto [i, index] : positions) {
      carriers[results[i]] = {flat, Place{number, index}, !onChunk};
      states[results[i]] = *partition::getState(flat.getType());
    }
  }
  return success();
}

/// Positions that belong to no parameter stay a list op on whole values.
LogicalResult Partitioner::emitRest(const ListOp &list, ArrayRef<int64_t> positions) {
  SmallVector<SmallVector<Value>> lists;
  for (OperandRange operands : list.operandLists) {
    lists.emplace_back();
    if (!operands.empty())
      for (int64_t i : positions)
        lists.back().push_back(get(operands[i], AxisState::replicated()));
  }
  SmallVector<Type> types;
  for (ResultRange results : list.resultLists)
    if (!results.empty())
      for (int64_t i : positions)
        types.push_back(getLocalType(cast<RankedTensorType>(results[i].getType()), AxisState::replicated()));
  Operation *made = createListOp(list, lists, types, positions, {});
  unsigned next = 0;
  for (ResultRange results : list.resultLists)
    if (!results.empty())
      for (int64_t i : positions)
        setLocal(results[i], AxisState::replicated(), made->getResult(next++));
  return success();
}

/// A list op with other lists. `entries[k]` is the captured position whose
/// attributes entry k of the new lists, or segment k of the unit, gets.
Operation *Partitioner::createListOp(const ListOp &list, ArrayRef<SmallVector<Value>> lists, TypeRange results,
                                     ArrayRef<int64_t> entries, FlatSymbolRefAttr unit) {
  SmallVector<Value> shared;
  for (Value value : list.shared)
    shared.push_back(get(value, AxisState::replicated()));
  SmallVector<Value> operands;
  SmallVector<int32_t> sizes, resultSizes;
  for (auto [number, values] : llvm::enumerate(lists)) {
    if (static_cast<int64_t>(number) == list.listsBeforeShared) {
      operands.append(shared);
      sizes.push_back(shared.size());
    }
    operands.append(values);
    sizes.push_back(values.size());
  }
  if (list.listsBeforeShared == static_cast<int64_t>(lists.size())) {
    operands.append(shared);
    sizes.push_back(shared.size());
  }
  int32_t perList = unit ? 1 : entries.size();
  for (ResultRange range : list.resultLists)
    resultSizes.push_back(range.empty() ? 0 : perList);

  NamedAttrList attrs;
  for (NamedAttribute attr : list.op->getAttrs()) {
    Attribute value = attr.getValue();
    if (attr.getName() == "operandSegmentSizes")
      value = builder.getDenseI32ArrayAttr(sizes);
    else if (attr.getName() == "resultSegmentSizes")
      value = builder.getDenseI32ArrayAttr(resultSizes);
    else if (attr.getName() == "groups") {
      ArrayRef<int64_t> groups = cast<DenseI64ArrayAttr>(value).asArrayRef();
      value = builder.getDenseI64ArrayAttr(
          llvm::map_to_vector(entries, [&](int64_t position) { return groups[position]; }));
    } else if (auto array = dyn_cast<ArrayAttr>(value); array && static_cast<int64_t>(array.size()) == list.length) {
      // ScalarList overloads: a number per position.
      value = builder.getArrayAttr(llvm::map_to_vector(entries, [&](int64_t position) { return array[position]; }));
    }
    attrs.set(attr.getName(), value);
  }
  if (unit)
    attrs.set("unit", unit);
  OperationState state(loc, list.op->getName());
  state.addOperands(operands);
  state.addTypes(results);
  state.addAttributes(attrs);
  return builder.create(state);
}

} // namespace spmd::partition
