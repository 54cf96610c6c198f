//===- Sharding.cpp - what a rank's coordinate decides --------------------===//
//
// The spmd ops that do not communicate: rows of a replicated value, padding
// masks, and a unit's flat buffer taken apart and put together.
//===----------------------------------------------------------------------===//

#include "../UnitChunk.h"
#include "dialects/Spmd/FlatLayout.h"
#include "spmd/Interpreter/RankRows.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace spmd::interp {
namespace {

LogicalResult evaluateSlice(OpCall &call) {
  auto op = cast<SliceOp>(call.op);
  FailureOr<int64_t> position = positionOnAxes(op, op.getMeshAttr(), op.getAxesAttr(), call.context.coordinates);
  if (failed(position))
    return failure();
  call.result(takeRows(call.operands()[0], op.getDim(), op.getPre(), op.getChunk(), *position));
  return success();
}

/// The fill of a mask as a value of an integer type: infinities are its ends.
int64_t integerFill(DType type, double fill) {
  if (!std::isinf(fill))
    return static_cast<int64_t>(fill);
  switch (type) {
  case DType::i1:
    return fill > 0;
  case DType::u8:
    return fill > 0 ? 255 : 0;
  case DType::i8:
    return fill > 0 ? 127 : -128;
  case DType::i16:
    return fill > 0 ? 32767 : -32768;
  case DType::i32:
    return fill > 0 ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min();
  default:
    return fill > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  }
}

LogicalResult evaluateMask(OpCall &call) {
  auto op = cast<MaskOp>(call.op);
  FailureOr<int64_t> position = positionOnAxes(op, op.getMeshAttr(), op.getAxesAttr(), call.context.coordinates);
  if (failed(position))
    return failure();
  const Tensor &input = call.operands()[0];
  double fill = op.getFill().convertToDouble();
  Tensor result = gatherStrided(input, input.shape(), contiguousStrides(input.shape()));
  int64_t inner = contiguousStrides(input.shape())[op.getDim()], chunk = op.getChunk();
  int64_t present = static_cast<int64_t>(op.getTotal()) - *position * chunk;
  for (int64_t i = 0, e = input.numel(); i < e; ++i) {
    if (i / inner % chunk < present)
      continue;
    if (result.isFloating())
      result.realData()[i] = fill;
    else
      result.integerData()[i] = integerFill(result.dtype(), fill);
  }
  call.result(std::move(result));
  return success();
}

/// Calls visit(index into names, segment) for the named segments of a unit.
template <typename F>
LogicalResult forEachNamed(OpCall &call, FlatSymbolRefAttr unitName, ArrayAttr names, F visit) {
  FailureOr<ShardUnitOp> unit = lookupUnit(call.op, unitName);
  if (failed(unit))
    return failure();
  for (size_t i = 0; i < names.size(); ++i) {
    llvm::StringRef name = cast<StringAttr>(names[i]).getValue();
    SegmentAttr segment = findSegment(unit->getLayout(), name);
    if (!segment)
      return call.error() << "unit " << unitName << " has no segment " << name;
    visit(i, segment);
  }
  return success();
}

LogicalResult evaluateUnpack(OpCall &call) {
  auto op = cast<UnpackOp>(call.op);
  const Tensor &flat = call.operands()[0];
  return forEachNamed(call, op.getUnitAttr(), op.getNames(), [&](size_t, SegmentAttr segment) {
    call.result(gatherStrided(flat, segment.getShape(), contiguousStrides(segment.getShape()), segment.getOffset()));
  });
}

LogicalResult evaluatePack(OpCall &call) {
  auto op = cast<PackOp>(call.op);
  auto type = cast<RankedTensorType>(op.getFlat().getType());
  Tensor flat(call.resultType(), type.getShape());
  LogicalResult status = forEachNamed(call, op.getUnitAttr(), op.getNames(), [&](size_t i, SegmentAttr segment) {
    const Tensor &value = call.operands()[i];
    scatterStrided(flat, value.reshaped({value.numel()}), {1}, segment.getOffset());
  });
  call.result(std::move(flat));
  return status;
}

FailureOr<UnitChunk> chunkOf(OpCall &call, FlatSymbolRefAttr unitName) {
  FailureOr<ShardUnitOp> unit = lookupUnit(call.op, unitName);
  if (failed(unit))
    return failure();
  return getUnitChunk(*unit, call.context.coordinates);
}

LogicalResult evaluateSegmentBroadcast(OpCall &call) {
  auto op = cast<SegmentBroadcastOp>(call.op);
  FailureOr<UnitChunk> chunk = chunkOf(call, op.getUnitAttr());
  if (failed(chunk))
    return failure();
  call.result(chunk->expand(call.operands()[0], call.resultType()));
  return success();
}

LogicalResult evaluateSegmentNorm(OpCall &call) {
  auto op = cast<SegmentNormOp>(call.op);
  FailureOr<UnitChunk> chunk = chunkOf(call, op.getUnitAttr());
  if (failed(chunk))
    return failure();
  const Tensor &input = call.operands()[0];
  Tensor table(call.resultType(), {chunk->numSegments});
  for (const SegmentRun &run : chunk->runs) {
    long double squares = 0;
    double largest = 0;
    for (int64_t i = run.begin; i < run.end; ++i) {
      double value = std::fabs(input.at(i));
      squares += static_cast<long double>(value) * value;
      largest = std::isnan(value) ? value : std::max(largest, value);
    }
    table.set(run.segment, op.getKind() == ReduceKind::norm2 ? static_cast<double>(std::sqrt(squares)) : largest);
  }
  call.result(std::move(table));
  return success();
}

} // namespace

void registerSharding(EvaluatorRegistry &r) {
  r.add("spmd.slice", evaluateSlice);
  r.add("spmd.mask", evaluateMask);
  r.add("spmd.unpack", evaluateUnpack);
  r.add("spmd.pack", evaluatePack);
  r.add("spmd.segment_broadcast", evaluateSegmentBroadcast);
  r.add("spmd.segment_norm", evaluateSegmentNorm);
}

} // namespace spmd::interp
