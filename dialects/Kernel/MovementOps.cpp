//===- MovementOps.cpp - gather_rows, scatter_add_rows, copy --------------===//

#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;
using namespace spmd::kernel;

static LogicalResult verifyIds(Operation *op, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isInteger(64) && !element.isInteger(32))
    return op->emitOpError("ids must be i32 or i64, got ") << type;
  return success();
}

//===----------------------------------------------------------------------===//
// gather_rows
//===----------------------------------------------------------------------===//

int64_t GatherRowsOp::getRows() { return cast<RankedTensorType>(getTable().getType()).getDimSize(0); }
int64_t GatherRowsOp::getRowSize() { return getNumElements(getTable().getType()) / getRows(); }

LogicalResult GatherRowsOp::verify() {
  if (failed(verifyIds(*this, getIds().getType())))
    return failure();
  auto table = cast<RankedTensorType>(getTable().getType());
  if (table.getRank() == 0 || table.getNumElements() == 0)
    return emitOpError("table ") << table << " has no rows";
  auto result = cast<RankedTensorType>(getResult().getType());
  if (result.getElementType() != table.getElementType())
    return emitOpError("result ") << result << " must have the element type of " << table;
  int64_t count = getNumElements(getIds().getType()) * getRowSize();
  if (result.getNumElements() != count)
    return emitOpError("result ") << result << " must have " << count << " elements";
  return success();
}

int64_t GatherRowsOp::getParallelTrips() { return getNumElements(getIds().getType()); }
int64_t GatherRowsOp::getGrain() { return getGrainFor(getParallelTrips(), getRowSize()); }
double GatherRowsOp::getFlops() { return 0; }
int64_t GatherRowsOp::getBytesMoved() {
  Type result = getResult().getType(), ids = getIds().getType();
  return 2 * getNumElements(result) * getElementBytes(result) + getNumElements(ids) * getElementBytes(ids);
}
bool GatherRowsOp::canAlias(unsigned, unsigned) { return false; }

//===----------------------------------------------------------------------===//
// scatter_add_rows
//===----------------------------------------------------------------------===//

int64_t ScatterAddRowsOp::getRowSize() { return getNumElements(getResult().getType()) / getRows(); }

LogicalResult ScatterAddRowsOp::verify() {
  if (failed(verifyIds(*this, getIds().getType())))
    return failure();
  if (static_cast<int64_t>(getRows()) <= 0)
    return emitOpError("rows must be positive, got ") << getRows();
  auto result = cast<RankedTensorType>(getResult().getType());
  auto grad = cast<RankedTensorType>(getGrad().getType());
  if (!isa<FloatType>(result.getElementType()) || result.getElementType() != grad.getElementType())
    return emitOpError("adds ") << grad << " into " << result << "; both must have one float type";
  int64_t ids = getNumElements(getIds().getType());
  if (result.getNumElements() % getRows() != 0 || grad.getNumElements() != ids * getRowSize())
    return emitOpError("grad ") << grad << " must be " << ids << " rows of a result " << result << " of " << getRows()
                                << " rows";
  if (getInto() && (getNumElements(getInto().getType()) != result.getNumElements() ||
                    getElementTypeOrSelf(getInto().getType()) != result.getElementType()))
    return emitOpError("into ") << getInto().getType() << " must be like " << result;
  return success();
}

/// Destination rows in one trip: all ids are scanned once per trip, so few
/// enough trips to make that cheap, enough for threads to share.
static constexpr int64_t kScatterTrips = 64;

int64_t ScatterAddRowsOp::getParallelTrips() { return std::min<int64_t>(kScatterTrips, getRows()); }
int64_t ScatterAddRowsOp::getGrain() {
  double work = getFlops() + getNumElements(getIds().getType()) + getNumElements(getResult().getType()) / 4.0;
  return getGrainFor(getParallelTrips(), work / getParallelTrips());
}
double ScatterAddRowsOp::getFlops() { return static_cast<double>(getNumElements(getGrad().getType())); }
int64_t ScatterAddRowsOp::getBytesMoved() { return getTensorBytes(*this); }
bool ScatterAddRowsOp::canAlias(unsigned operand, unsigned) {
  return getInto() && operand == 2 && getInto() != getGrad();
}

//===----------------------------------------------------------------------===//
// copy
//===----------------------------------------------------------------------===//

static int64_t getPieceSize(PieceAttr piece) {
  int64_t size = 1;
  for (int64_t dim : piece.getDims())
    size *= dim;
  return size;
}

LogicalResult CopyOp::verify() {
  Type result = getResult().getType();
  for (Type type : getSources().getTypes())
    if (getElementTypeOrSelf(type) != getElementTypeOrSelf(result))
      return emitOpError("source ") << type << " must have the element type of " << result;
  int64_t total = 0;
  for (unsigned i = 0; i < getPieces().size(); ++i) {
    auto piece = cast<PieceAttr>(getPieces()[i]);
    int64_t source = piece.getSource();
    if (source < -1 || source >= static_cast<int64_t>(getSources().size()))
      return emitOpError("piece ") << i << " names source " << source << " of " << getSources().size();
    for (int64_t dim : piece.getDims())
      if (dim <= 0)
        return emitOpError("piece ") << i << " has a dim of size " << dim;
    auto checkMap = [&](AffineMap map, StringRef what, Type type) -> LogicalResult {
      if (map.getNumDims() != piece.getDims().size() || map.getNumResults() != 1)
        return emitOpError("piece ") << i << ": map " << what << " has " << map.getNumDims() << " dims and "
                                     << map.getNumResults() << " results, expected " << piece.getDims().size()
                                     << " and 1";
      auto range = AccessMap::get(map).getRange(piece.getDims());
      if (range && (range->first < 0 || range->second >= getNumElements(type)))
        return emitOpError("piece ") << i << ": map " << what << " gives indices " << range->first << " to "
                                     << range->second << ", outside of " << type;
      return success();
    };
    if ((source >= 0 && failed(checkMap(piece.getFrom(), "from", getSources()[source].getType()))) ||
        failed(checkMap(piece.getTo(), "to", result)))
      return failure();
    total += getPieceSize(piece);
  }
  if (total != getNumElements(result))
    return emitOpError("pieces have ") << total << " elements for a result " << result;
  return success();
}

/// Each piece is cut along its first dim; the trips of all pieces are laid one
/// after the other.
int64_t CopyOp::getParallelTrips() {
  int64_t trips = 0;
  for (auto piece : getPieces().getAsRange<PieceAttr>())
    trips += piece.getDims().empty() ? 1 : piece.getDims().front();
  return trips;
}
int64_t CopyOp::getGrain() {
  double elements = getNumElements(getResult().getType());
  return getGrainFor(getParallelTrips(), elements / getParallelTrips());
}
double CopyOp::getFlops() { return 0; }
int64_t CopyOp::getBytesMoved() {
  Type result = getResult().getType();
  return 2 * getNumElements(result) * getElementBytes(result);
}
bool CopyOp::canAlias(unsigned, unsigned) { return false; }
