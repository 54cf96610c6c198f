//===- MovementOps.cpp - gather_rows, scatter_rows, sort, copy ------------===//

#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"
#include <cmath>

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

int64_t GatherRowsOp::getNumRows() {
  return getRows() ? static_cast<int64_t>(*getRows()) : cast<RankedTensorType>(getTable().getType()).getDimSize(0);
}
int64_t GatherRowsOp::getRowSize() {
  return getNumElements(getTable().getType()) / (static_cast<int64_t>(getBatch()) * getNumRows());
}

LogicalResult GatherRowsOp::verify() {
  if (failed(verifyIds(*this, getIds().getType())))
    return failure();
  auto table = cast<RankedTensorType>(getTable().getType());
  if ((table.getRank() == 0 && !getRows()) || table.getNumElements() == 0)
    return emitOpError("table ") << table << " has no rows";
  int64_t batch = getBatch();
  if (batch <= 0 || getNumRows() <= 0 || table.getNumElements() % (batch * getNumRows()) != 0)
    return emitOpError("table ") << table << " is not " << batch << " times " << getNumRows() << " rows";
  int64_t ids = getNumElements(getIds().getType());
  if (ids % batch != 0)
    return emitOpError("ids ") << getIds().getType() << " do not divide into " << batch << " batches";
  auto result = cast<RankedTensorType>(getResult().getType());
  if (result.getElementType() != table.getElementType())
    return emitOpError("result ") << result << " must have the element type of " << table;
  if (result.getNumElements() != ids * getRowSize())
    return emitOpError("result ") << result << " must have " << ids * getRowSize() << " elements";
  return success();
}

int64_t GatherRowsOp::getParallelIterations() { return getNumElements(getIds().getType()); }
int64_t GatherRowsOp::getGrain() { return getGrainFor(getParallelIterations(), getRowSize()); }
double GatherRowsOp::getFlops() { return 0; }
int64_t GatherRowsOp::getBytesMoved() {
  Type result = getResult().getType(), ids = getIds().getType();
  return 2 * getNumElements(result) * getElementBytes(result) + getNumElements(ids) * getElementBytes(ids);
}
bool GatherRowsOp::canAlias(unsigned, unsigned) { return false; }

//===----------------------------------------------------------------------===//
// scatter_rows
//===----------------------------------------------------------------------===//

int64_t ScatterRowsOp::getRowSize() {
  return getNumElements(getResult().getType()) / static_cast<int64_t>(getBatch() * getRows());
}

LogicalResult ScatterRowsOp::verify() {
  if (failed(verifyIds(*this, getIds().getType())))
    return failure();
  int64_t rows = getRows(), batch = getBatch();
  if (rows <= 0)
    return emitOpError("rows must be positive, got ") << rows;
  if (batch <= 0)
    return emitOpError("batch must be positive, got ") << batch;
  auto result = cast<RankedTensorType>(getResult().getType());
  auto src = cast<RankedTensorType>(getSrc().getType());
  if (result.getElementType() != src.getElementType())
    return emitOpError("scatters ") << src << " into " << result << "; both must have one element type";
  int64_t ids = getNumElements(getIds().getType());
  if (ids % batch != 0 || result.getNumElements() % (batch * rows) != 0 || src.getNumElements() != ids * getRowSize())
    return emitOpError("src ") << src << " must be " << ids << " rows of a result " << result << " of " << batch
                               << " times " << rows << " rows";
  if (getInto() && (getNumElements(getInto().getType()) != result.getNumElements() ||
                    getElementTypeOrSelf(getInto().getType()) != result.getElementType()))
    return emitOpError("into ") << getInto().getType() << " must be like " << result;
  return success();
}

/// Destination rows in one iteration: all ids of the table are scanned once per iteration, so few enough iterations to
/// make that cheap, enough for threads to share.
static constexpr int64_t kScatterIterations = 64;

int64_t ScatterRowsOp::getIterationsPerTable() {
  int64_t batch = getBatch(), wanted = (kScatterIterations + batch - 1) / batch;
  return std::min<int64_t>(wanted, getRows());
}
int64_t ScatterRowsOp::getParallelIterations() { return static_cast<int64_t>(getBatch()) * getIterationsPerTable(); }
int64_t ScatterRowsOp::getGrain() {
  double ids = static_cast<double>(getNumElements(getIds().getType())) / static_cast<double>(getBatch());
  double work = getNumElements(getSrc().getType()) + getNumElements(getResult().getType()) / 4.0;
  return getGrainFor(getParallelIterations(), work / getParallelIterations() + ids);
}
double ScatterRowsOp::getFlops() {
  return getKind() == ScatterKind::Set ? 0 : static_cast<double>(getNumElements(getSrc().getType()));
}
int64_t ScatterRowsOp::getBytesMoved() { return getTensorBytes(*this); }
bool ScatterRowsOp::canAlias(unsigned operand, unsigned) { return getInto() && operand == 2 && getInto() != getSrc(); }

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

LogicalResult SortOp::verify() {
  int64_t size = getSize(), elements = getNumElements(getSelf().getType());
  if (size <= 0 || elements % size != 0)
    return emitOpError("cannot cut ") << getSelf().getType() << " into rows of " << size;
  if (getNumElements(getValues().getType()) != elements || getNumElements(getIndices().getType()) != elements ||
      getElementTypeOrSelf(getValues().getType()) != getElementTypeOrSelf(getSelf().getType()) ||
      !getElementTypeOrSelf(getIndices().getType()).isInteger(64))
    return emitOpError("has values ") << getValues().getType() << " and indices " << getIndices().getType() << " of "
                                      << getSelf().getType();
  return success();
}

int64_t SortOp::getParallelIterations() {
  return getNumElements(getSelf().getType()) / static_cast<int64_t>(getSize());
}
int64_t SortOp::getGrain() { return getGrainFor(getParallelIterations(), getFlops() / getParallelIterations()); }
double SortOp::getFlops() {
  double size = getSize();
  return getNumElements(getSelf().getType()) * 4 * std::log2(std::max(size, 2.0));
}
int64_t SortOp::getBytesMoved() { return getTensorBytes(*this); }
bool SortOp::canAlias(unsigned operand, unsigned result) { return operand == 0 && result == 0; }

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

/// Each piece is cut along its first dim; the iterations of all pieces are laid one
/// after the other.
int64_t CopyOp::getParallelIterations() {
  int64_t iterations = 0;
  for (auto piece : getPieces().getAsRange<PieceAttr>())
    iterations += piece.getDims().empty() ? 1 : piece.getDims().front();
  return iterations;
}
int64_t CopyOp::getGrain() {
  double elements = getNumElements(getResult().getType());
  return getGrainFor(getParallelIterations(), elements / getParallelIterations());
}
double CopyOp::getFlops() { return 0; }
int64_t CopyOp::getBytesMoved() {
  Type result = getResult().getType();
  return 2 * getNumElements(result) * getElementBytes(result);
}
bool CopyOp::canAlias(unsigned, unsigned) { return false; }
