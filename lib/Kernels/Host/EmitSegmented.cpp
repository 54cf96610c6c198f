//===- EmitSegmented.cpp - loops of kernel.segmented ----------------------===//
//
// Elementwise, a range of the chunk is walked segment by segment: what a segment fixes is made once, then the elements
// are a vector loop. A reduction has one iteration per piece of a segment.
//
//===----------------------------------------------------------------------===//

#include "../SegmentedValues.h"
#include "Emitters.h"
#include "VectorLoop.h"
#include "dialects/Kernel/Body.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class SegmentedEmitter : SegmentedValues {
public:
  SegmentedEmitter(KernelBuilder &b, SegmentedOp op)
      : SegmentedValues(b, op, [&](DenseElementsAttr values) { return b.table(values); }), b(b) {}
  LogicalResult emit();

private:
  void emitElements();
  void emitPieces();
  void fillZero(Value low, Value high);
  void countMoved();

  KernelBuilder &b;
};

} // namespace

LogicalResult SegmentedEmitter::emit() {
  op.hasReduction() ? emitPieces() : emitElements();
  countMoved();
  return success();
}

void SegmentedEmitter::fillZero(Value low, Value high) {
  // Padding is short: a few elements between segments.
  b.loop(low, high, 1, [&](Value i) {
    for (auto [r, type] : llvm::enumerate(op.getResultTypes()))
      b.store(b.number(getElementTypeOrSelf(type), 0), b.getResultPointer(r), i);
  });
}

void SegmentedEmitter::emitElements() {
  int64_t segments = op.getStarts().size();
  // The part of [begin, end) between two positions of the flat buffer; empty when low is not below high.
  auto clip = [&](Value global, Value bound, bool isLow) {
    Value local = b.sub(global, position);
    return isLow ? b.max(local, bound) : b.min(local, bound);
  };
  SmallVector<Value> last = b.loop(b.i64(0), b.i64(segments), 1, {b.i64(0)}, [&](Value segment, ValueRange carried) {
    Value start = getStart(segment), end = getEnd(segment);
    Value low = clip(start, b.getBegin(), true), high = clip(end, b.getEnd(), false);
    fillZero(clip(carried[0], b.getBegin(), true), clip(start, b.getEnd(), false));
    emitSegmentValues(segment);
    emitVectorLoop(b, low, b.max(low, high), {}, /*vectorize=*/true, [&](Value i, int64_t width, ValueRange) {
      Scope scope;
      SmallVector<Value> values;
      for (Value value : getYielded())
        values.push_back(b.broadcast(getValue(value, i, width, scope), width));
      for (auto [r, value] : llvm::enumerate(values))
        b.store(value, b.getResultPointer(r), i);
      return SmallVector<Value>();
    });
    return SmallVector<Value>{end};
  });
  fillZero(clip(last[0], b.getBegin(), true), b.getEnd());
}

void SegmentedEmitter::emitPieces() {
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value iteration) {
    Range piece = getPiece(iteration);
    emitSegmentValues(piece.segment);
    emitReductions([&](ReduceOp reduce) {
      Reduction reduction = {reduce.getKind(), reduce.getType()};
      return emitVectorLoop(b, piece.low, piece.high, reduction, true,
                            [&](Value i, int64_t width, ValueRange carried) {
                              Scope scope;
                              Value value = b.broadcast(getValue(reduce.getValue(), i, width, scope), width);
                              return SmallVector<Value>{b.combine(reduce.getKind(), carried[0], value)};
                            })[0];
    });
    for (auto [r, value] : llvm::enumerate(getYielded()))
      b.store(fixed.lookup(value), b.getResultPointer(r), iteration);
  });
}

/// The second of several reductions over a piece that is longer than the cache, and those after it, read it again.
void SegmentedEmitter::countMoved() {
  int64_t longest = 0, bytesPerElement = 0, chunk = op.getChunk(), pieces = op.getPieces();
  for (auto [start, end] : llvm::zip_equal(op.getStarts(), op.getEnds()))
    longest = std::max(longest, std::min(end - start, chunk) / pieces);
  for (Type type : op.getElements().getTypes())
    bytesPerElement += getElementBytes(type);
  if (longest * bytesPerElement > b.getCacheBytes())
    b.addMovedBytes(countBytesReadAgain());
}

static LogicalResult emitSegmented(KernelBuilder &b, SegmentedOp op) { return SegmentedEmitter(b, op).emit(); }

void addSegmentedEmitters(HostEmitters &emitters) { emitters.add(emitSegmented); }

} // namespace spmd::kernel
