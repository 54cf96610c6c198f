//===- UnitOps.cpp - verifiers of ops on flat buffers ---------------------===//
//
// Constraint C1 of every op here: the unit exists.
//
//===----------------------------------------------------------------------===//

#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/GroupSize.h"
#include "dialects/Spmd/Spmd.h"

using namespace mlir;
using namespace spmd;

/// C2: the flat buffer is a unit's: [padded] elements, of any dtype (a mask of a parameter's elements is one, too).
static LogicalResult verifyFlat(Operation *op, ShardUnitOp unit, Type type) {
  auto flat = cast<RankedTensorType>(type);
  if (flat.getShape() != unit.getFlatType().getShape())
    return op->emitOpError() << "has flat buffer " << flat << ", unit @" << unit.getSymName() << " has "
                             << unit.getFlatType();
  return success();
}

/// C2: the chunk is a unit's: [chunk] elements of any dtype.
static LogicalResult verifyChunk(Operation *op, ShardUnitOp unit, Type type) {
  auto chunk = cast<RankedTensorType>(type);
  if (chunk.getShape() != unit.getChunkType().getShape())
    return op->emitOpError() << "has chunk " << chunk << ", unit @" << unit.getSymName() << " has "
                             << unit.getChunkType();
  return success();
}

/// C3: a table has one entry per segment.
static LogicalResult verifyTable(Operation *op, ShardUnitOp unit, Type type) {
  auto table = cast<RankedTensorType>(type);
  int64_t segments = unit.getLayout().getSegments().size();
  if (table.getRank() != 1 || table.getDimSize(0) != segments)
    return op->emitOpError() << "has table " << table << ", unit @" << unit.getSymName() << " has " << segments
                             << " segments";
  return success();
}

/// C3: each value has the shape of the segment it is named after, and the flat buffer's dtype.
static LogicalResult verifySegments(Operation *op, ShardUnitOp unit, Type flat, ArrayAttr names, TypeRange values) {
  Type dtype = cast<RankedTensorType>(flat).getElementType();
  if (names.size() != values.size())
    return op->emitOpError() << "has " << names.size() << " names and " << values.size() << " values";
  for (auto [attr, type] : llvm::zip(names.getAsRange<StringAttr>(), values)) {
    SegmentAttr segment = findSegment(unit.getLayout(), attr.getValue());
    if (!segment)
      return op->emitOpError() << "names segment " << attr << ", which unit @" << unit.getSymName() << " does not have";
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getShape() != segment.getShape() || tensor.getElementType() != dtype)
      return op->emitOpError() << "has " << tensor << " for segment " << attr << ", expected "
                               << RankedTensorType::get(segment.getShape(), dtype);
  }
  return success();
}

LogicalResult UnpackOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<ShardUnitOp> unit = spmd::getUnit(tables, *this, getUnitAttr());
  return success(succeeded(unit) && succeeded(verifyFlat(*this, *unit, getFlat().getType())) &&
                 succeeded(verifySegments(*this, *unit, getFlat().getType(), getNames(), getResultTypes())));
}

LogicalResult PackOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<ShardUnitOp> unit = spmd::getUnit(tables, *this, getUnitAttr());
  return success(succeeded(unit) && succeeded(verifyFlat(*this, *unit, getFlat().getType())) &&
                 succeeded(verifySegments(*this, *unit, getFlat().getType(), getNames(), getValues().getTypes())));
}

LogicalResult SegmentBroadcastOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<ShardUnitOp> unit = spmd::getUnit(tables, *this, getUnitAttr());
  return success(succeeded(unit) && succeeded(verifyChunk(*this, *unit, getResult().getType())) &&
                 succeeded(verifyTable(*this, *unit, getTable().getType())));
}

LogicalResult SegmentNormOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<ShardUnitOp> unit = spmd::getUnit(tables, *this, getUnitAttr());
  if (failed(unit) || failed(verifyChunk(*this, *unit, getChunk().getType())) ||
      failed(verifyTable(*this, *unit, getTable().getType())))
    return failure();
  // C4
  if (getKind() != ReduceKind::norm2 && getKind() != ReduceKind::max)
    return emitOpError() << "has kind " << stringifyReduceKind(getKind()) << ", expected norm2 or max";
  return success();
}
