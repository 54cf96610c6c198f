//===- EmitSegmented.cpp - loops of kernel.segmented ----------------------===//
//
// Elementwise, a range of the chunk is walked segment by segment: what a segment fixes (tables, scalars, constants and
// what follows from them) is made once, then the elements are a vector loop. A reduction has one trip per piece of a
// segment.
//
//===----------------------------------------------------------------------===//

#include "../ElementEmitter.h"
#include "Emitters.h"
#include "VectorLoop.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

using Scope = DenseMap<Value, Value>;

class SegmentedEmitter {
public:
  SegmentedEmitter(KernelBuilder &b, SegmentedOp op) : b(b), op(op), body(*op.getBodyBlock()) {}
  LogicalResult emit();

private:
  void emitElements();
  void emitPieces();
  void fillZero(Value low, Value high);
  void emitSegmentValues(Value segment);
  Value getValue(Value value, Value i, int64_t width, Scope &scope);
  bool isElement(Value value) const { return perElement.contains(value); }
  ValueRange getYielded() { return cast<YieldOp>(body.getTerminator()).getValues(); }

  KernelBuilder &b;
  SegmentedOp op;
  Block &body;
  /// Values that differ between elements of a segment.
  DenseSet<Value> perElement;
  /// What the current segment fixes, reductions that have ended included.
  Scope fixed;
  Value position, starts, ends;
  DenseMap<Operation *, Value> constants;
};

} // namespace

LogicalResult SegmentedEmitter::emit() {
  for (unsigned i = 0; i < op.getElements().size(); ++i)
    perElement.insert(body.getArgument(i));
  for (Operation &inner : body)
    if (!isa<ReduceOp>(inner) &&
        (isa<IndexOp>(inner) || llvm::any_of(inner.getOperands(), [&](Value v) { return isElement(v); })))
      perElement.insert(inner.getResults().begin(), inner.getResults().end());
  auto table = [&](ArrayRef<int64_t> values) {
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, b.getI64Type());
    return b.table(DenseElementsAttr::get(type, values));
  };
  starts = table(op.getStarts());
  ends = table(op.getEnds());
  for (auto constant : body.getOps<SegmentConstantOp>())
    constants[constant] = b.table(cast<DenseElementsAttr>(constant.getValues()));
  position = b.affine(op.getPosition().getResult(0), {});
  op.hasReduction() ? emitPieces() : emitElements();
  return success();
}

/// Values the segment fixes, in program order.
void SegmentedEmitter::emitSegmentValues(Value segment) {
  fixed.clear();
  unsigned elements = op.getElements().size(), tables = op.getTables().size();
  for (unsigned i = elements; i < body.getNumArguments(); ++i) {
    Value index = i < elements + tables ? segment : b.i64(0);
    fixed[body.getArgument(i)] = b.load(b.getPointer(i), body.getArgument(i).getType(), index);
  }
  for (Operation &inner : body) {
    if (isa<YieldOp, ReduceOp>(inner) || isElement(inner.getResult(0)))
      continue;
    // What comes from a reduction is emitted when that has ended.
    if (llvm::any_of(inner.getOperands(), [&](Value v) { return !fixed.contains(v); }))
      continue;
    Value value;
    if (isa<SegmentConstantOp>(inner)) {
      value = b.load(constants.lookup(&inner), inner.getResult(0).getType(), segment);
    } else if (auto coord = dyn_cast<CoordOp>(inner)) {
      value = b.getCoordinate(coord.getAxis());
    } else {
      SmallVector<Value> operands;
      for (Value operand : inner.getOperands())
        operands.push_back(fixed.lookup(operand));
      value = emitElementOp(b, inner, operands);
    }
    fixed[inner.getResult(0)] = value;
  }
}

Value SegmentedEmitter::getValue(Value value, Value i, int64_t width, Scope &scope) {
  if (Value known = fixed.lookup(value))
    return known;
  if (Value known = scope.lookup(value))
    return known;
  Value emitted;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    emitted = b.load(b.getPointer(argument.getArgNumber()), argument.getType(), i, width);
  } else if (value.getDefiningOp<IndexOp>()) {
    emitted = emitIota(b, i, width);
  } else {
    Operation *def = value.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : def->getOperands())
      operands.push_back(getValue(operand, i, width, scope));
    emitted = emitElementOp(b, *def, operands);
  }
  scope[value] = emitted;
  return emitted;
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
    Value start = b.load(starts, b.getI64Type(), segment), end = b.load(ends, b.getI64Type(), segment);
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
  int64_t pieces = op.getPieces();
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value trip) {
    Value segment = b.floorDiv(trip, pieces), piece = b.mod(trip, pieces);
    Value start = b.max(b.sub(b.load(starts, b.getI64Type(), segment), position), b.i64(0));
    Value end = b.min(b.sub(b.load(ends, b.getI64Type(), segment), position), b.i64(op.getChunk()));
    Value length = b.max(b.sub(end, start), b.i64(0));
    Value low = b.add(start, b.floorDiv(b.mul(length, piece), pieces));
    Value high = b.add(start, b.floorDiv(b.mul(length, b.add(piece, 1)), pieces));
    emitSegmentValues(segment);
    // In program order: a reduction may use one that has ended.
    for (Operation &inner : body) {
      if (isa<YieldOp>(inner))
        break;
      if (auto reduce = dyn_cast<ReduceOp>(inner)) {
        Reduction reduction = {reduce.getKind(), reduce.getType()};
        fixed[reduce] = emitVectorLoop(b, low, high, reduction, true, [&](Value i, int64_t width, ValueRange carried) {
          Scope scope;
          Value value = b.broadcast(getValue(reduce.getValue(), i, width, scope), width);
          return SmallVector<Value>{b.combine(reduce.getKind(), carried[0], value)};
        })[0];
      } else if (Value result = inner.getResult(0); !isElement(result) && !fixed.contains(result)) {
        Scope scope;
        fixed[result] = getValue(result, Value(), 1, scope);
      }
    }
    for (auto [r, value] : llvm::enumerate(getYielded()))
      b.store(fixed.lookup(value), b.getResultPointer(r), trip);
  });
}

LogicalResult emitSegmented(KernelBuilder &b, SegmentedOp op) { return SegmentedEmitter(b, op).emit(); }

} // namespace spmd::kernel
