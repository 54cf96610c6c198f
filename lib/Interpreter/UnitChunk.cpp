//===- UnitChunk.cpp - a rank's part of a shard unit's flat buffer --------===//

#include "UnitChunk.h"

using namespace mlir;

namespace spmd::interp {

Tensor UnitChunk::expand(const Tensor &table, DType type) const {
  Tensor result(type, {size});
  for (const SegmentRun &run : runs)
    for (int64_t i = run.begin; i < run.end; ++i)
      result.set(i, table.at(run.segment));
  return result;
}

FailureOr<int64_t> positionOnAxes(Operation *op, FlatSymbolRefAttr mesh, ArrayAttr axes,
                                  ArrayRef<int64_t> coordinates) {
  auto meshOp = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, mesh);
  if (!meshOp)
    return op->emitError() << "there is no mesh " << mesh;
  int64_t position = 0;
  for (Attribute axis : axes) {
    int64_t index = meshOp.getAxisIndex(cast<StringAttr>(axis).getValue());
    if (index < 0)
      return op->emitError() << "mesh " << mesh << " has no axis " << axis;
    position = position * meshOp.getAxisSizes()[index] + coordinates[index];
  }
  return position;
}

FailureOr<ShardUnitOp> lookupUnit(Operation *op, FlatSymbolRefAttr unit) {
  auto unitOp = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(op, unit);
  if (!unitOp)
    return op->emitError() << "there is no shard unit " << unit;
  return unitOp;
}

FailureOr<UnitChunk> getUnitChunk(ShardUnitOp unit, ArrayRef<int64_t> coordinates, bool isWhole) {
  UnitChunk chunk;
  chunk.size = isWhole ? unit.getLayout().getPadded() : unit.getChunk();
  int64_t begin = 0;
  if (unit.isSharded() && !isWhole) {
    FailureOr<int64_t> position = positionOnAxes(unit, unit.getMeshAttr(), unit.getAxes(), coordinates);
    if (failed(position))
      return failure();
    begin = *position * chunk.size;
  }
  for (SegmentAttr segment : unit.getLayout().getSegments()) {
    int64_t from = std::max<int64_t>(segment.getOffset() - begin, 0);
    int64_t to = std::min(segment.getOffset() + segment.getNumel() - begin, chunk.size);
    if (from < to)
      chunk.runs.push_back({chunk.numSegments, from, to, begin + from - segment.getOffset()});
    ++chunk.numSegments;
  }
  return chunk;
}

} // namespace spmd::interp
