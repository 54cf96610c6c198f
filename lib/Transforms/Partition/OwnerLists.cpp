//===- OwnerLists.cpp - list ops on chunks and tables ---------------------===//

#include "Partitioner.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;
using spmd::aten::ListOpInterface;

namespace spmd::partition {

/// What a position computes is at the place: a value of the parameter's shape, or a number that the unit keeps in a
/// table; in the dtype that the op on the chunk gives.
bool Partitioner::fits(ListOpInterface list, int64_t position, Place place) const {
  if (list.isNorm())
    return true;
  ArrayRef<int64_t> shape = step.units[place.unit].layout.getSegments()[place.segment].getShape();
  SmallVector<Value> operands, results;
  for (OperandRange range : list.getOperandLists())
    if (!range.empty())
      operands.push_back(range[position]);
  for (ResultRange range : list.getResultLists())
    if (!range.empty())
      results.push_back(range[position]);
  bool isTable = llvm::all_of(operands, [](Value operand) { return typeOf(operand).getRank() == 0; });
  return llvm::all_of(results, [&](Value result) {
    bool isNumber = isTable && typeOf(result).getRank() == 0;
    bool isPlaced = typeOf(result).getShape() == shape;
    bool keepsDtype = !shape.empty() || typeOf(result).getElementType() == typeOf(operands.front()).getElementType() ||
                      operands.size() + list.getShared().size() == 1;
    return (isPlaced && keepsDtype) || (isNumber && !shape.empty());
  });
}

/// Where a position runs: where its result is wanted, or else where an operand is; nowhere when it has no form on a
/// chunk, or nothing is gained by it.
std::optional<Place> Partitioner::getPlace(ListOpInterface list, int64_t position) const {
  if (list.isNorm() && !getNormKind(list))
    return std::nullopt;
  SmallVector<std::optional<Place>> candidates;
  for (ResultRange results : list.getResultLists())
    if (!results.empty())
      candidates.push_back(domain.getHome(results[position]));
  for (OperandRange operands : list.getOperandLists()) {
    if (operands.empty())
      continue;
    Value operand = operands[position];
    if (auto carrier = carriers.find(operand); carrier != carriers.end() && (list.isNorm() || !isParameter(operand)))
      candidates.push_back(carrier->second.place);
    else if (list.isNorm() || !isParameter(operand))
      candidates.push_back(list.isNorm() ? domain.getWanted(operand) : domain.getHome(operand));
  }
  for (std::optional<Place> place : candidates)
    if (place && fits(list, position, *place))
      return place;
  return std::nullopt;
}

LogicalResult Partitioner::emitList(ListOpInterface list) {
  // One op per unit and element types. A list may name a parameter several times (gradients and parameters in one
  // list): its k-th values are in the unit's k-th op.
  using Key = std::tuple<int64_t, int64_t, Attribute>;
  llvm::MapVector<Key, SmallVector<std::pair<int64_t, int64_t>>> byUnit;
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> timesNamed;
  SmallVector<int64_t> rest;
  int64_t length = list.getLength();
  for (int64_t i = 0; i < length; ++i) {
    SmallVector<Attribute> types;
    auto add = [&](ValueRange values) {
      if (!values.empty())
        types.push_back(TypeAttr::get(typeOf(values[i]).getElementType()));
    };
    for (OperandRange operands : list.getOperandLists())
      add(operands);
    for (ResultRange results : list.getResultLists())
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
    if (list.isNorm()) {
      SmallVector<std::pair<Member, Value>> parts;
      for (auto [i, index] : positions)
        parts.push_back({Member(index, list.getOperandLists().front()[i]), list.getResultLists().front()[i]});
      if (failed(emitNorm(list, unit, parts)))
        return failure();
    } else if (failed(emitUnitList(list, unit, positions))) {
      return failure();
    }
  }
  return rest.empty() ? success() : emitRest(list, rest);
}

/// One op on the chunk or the tables of a unit, of positions and their segments.
LogicalResult Partitioner::emitUnitList(ListOpInterface list, int64_t number,
                                        ArrayRef<std::pair<int64_t, int64_t>> positions) {
  Unit &unit = step.units[number];
  // Position of each segment in the list; a segment without one takes any.
  int64_t any = positions.front().first;
  SmallVector<int64_t> entries(unit.numSegments(), any);
  for (auto [i, index] : positions)
    entries[index] = i;

  SmallVector<SmallVector<Value>> lists;
  bool onChunk = false;
  for (OperandRange operands : list.getOperandLists()) {
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
  for (ResultRange results : list.getResultLists()) {
    if (results.empty())
      continue;
    Type dtype = typeOf(results[any]).getElementType();
    types.push_back(onChunk ? getChunkType(number, dtype) : getTableType(number, dtype, AxisState::replicated()));
  }
  Operation *made = createListOp(list, lists, types, entries, FlatSymbolRefAttr::get(unit.op.getSymNameAttr()));
  if (!made)
    return failure();
  unsigned next = 0;
  for (ResultRange results : list.getResultLists()) {
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
LogicalResult Partitioner::emitRest(ListOpInterface list, ArrayRef<int64_t> positions) {
  SmallVector<SmallVector<Value>> lists;
  for (OperandRange operands : list.getOperandLists()) {
    lists.emplace_back();
    if (!operands.empty())
      for (int64_t i : positions)
        lists.back().push_back(get(operands[i], AxisState::replicated()));
  }
  SmallVector<Type> types;
  for (ResultRange results : list.getResultLists())
    if (!results.empty())
      for (int64_t i : positions)
        types.push_back(getLocalType(typeOf(results[i]), AxisState::replicated()));
  Operation *made = createListOp(list, lists, types, positions, {});
  if (!made)
    return failure();
  unsigned next = 0;
  for (ResultRange results : list.getResultLists())
    if (!results.empty())
      for (int64_t i : positions)
        setLocal(results[i], AxisState::replicated(), made->getResult(next++));
  return success();
}

/// A list op with other lists. `entries[k]` is the captured position whose
/// attributes entry k of the new lists, or segment k of the unit, gets. Null after an error.
Operation *Partitioner::createListOp(ListOpInterface list, ArrayRef<SmallVector<Value>> lists, TypeRange results,
                                     ArrayRef<int64_t> entries, FlatSymbolRefAttr unit) {
  SmallVector<Value> shared;
  bool keepsPositions =
      entries.size() == list.getLength() && llvm::equal(entries, llvm::seq<int64_t>(0, entries.size()));
  for (Value value : list.getShared()) {
    // A tensor with a number for each position (the overload .Tensor of addcmul and addcdiv).
    if (typeOf(value).getRank() == 1 && !keepsPositions && !list->hasAttr("groups")) {
      list->emitError() << "'" << list->getName() << "' takes a tensor with a number for each of its "
                        << list.getLength() << " tensors, which are not one unit's in this order ("
                        << describeSource(loc) << "); give the numbers as a list, or multiply by them first";
      return nullptr;
    }
    shared.push_back(get(value, AxisState::replicated()));
  }
  SmallVector<Value> operands;
  SmallVector<int32_t> sizes, resultSizes;
  for (const SmallVector<Value> &values : lists) {
    operands.append(values);
    sizes.push_back(values.size());
  }
  operands.append(shared);
  sizes.push_back(shared.size());
  int32_t perList = unit ? 1 : entries.size();
  for (ResultRange range : list.getResultLists())
    resultSizes.push_back(range.empty() ? 0 : perList);

  NamedAttrList attrs;
  for (NamedAttribute attr : list->getAttrs()) {
    Attribute value = attr.getValue();
    if (attr.getName() == "operandSegmentSizes")
      value = builder.getDenseI32ArrayAttr(sizes);
    else if (attr.getName() == "resultSegmentSizes")
      value = builder.getDenseI32ArrayAttr(resultSizes);
    else if (attr.getName() == "groups") {
      ArrayRef<int64_t> groups = cast<DenseI64ArrayAttr>(value).asArrayRef();
      value = builder.getDenseI64ArrayAttr(
          llvm::map_to_vector(entries, [&](int64_t position) { return groups[position]; }));
    } else if (auto array = dyn_cast<ArrayAttr>(value); array && array.size() == list.getLength()) {
      // ScalarList overloads: a number per position.
      value = builder.getArrayAttr(llvm::map_to_vector(entries, [&](int64_t position) { return array[position]; }));
    }
    attrs.set(attr.getName(), value);
  }
  if (unit)
    attrs.set("unit", unit);
  OperationState state(loc, list->getName());
  state.addOperands(operands);
  state.addTypes(results);
  state.addAttributes(attrs);
  return builder.create(state);
}

} // namespace spmd::partition
