//===- SegmentedValues.cpp - values of a kernel.segmented -----------------===//

#include "SegmentedValues.h"
#include "ElementEmitter.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace spmd::kernel {

SegmentedValues::SegmentedValues(CodeBuilder &b, SegmentedOp op, llvm::function_ref<Value(DenseElementsAttr)> table)
    : b(b), op(op), body(*op.getBodyBlock()) {
  for (unsigned i = 0; i < op.getElements().size(); ++i)
    perElement.insert(body.getArgument(i));
  for (Operation &inner : body)
    if (!isa<ReduceOp>(inner) &&
        (isa<IndexOp>(inner) || llvm::any_of(inner.getOperands(), [&](Value v) { return isElement(v); })))
      perElement.insert(inner.getResults().begin(), inner.getResults().end());
  auto integers = [&](ArrayRef<int64_t> values) {
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, b.getI64Type());
    return table(DenseElementsAttr::get(type, values));
  };
  starts = integers(op.getStarts());
  ends = integers(op.getEnds());
  for (auto constant : body.getOps<SegmentConstantOp>())
    constants[constant] = table(cast<DenseElementsAttr>(constant.getValues()));
  position = b.affine(op.getPosition().getResult(0), {});
}

void SegmentedValues::emitSegmentValues(Value segment) {
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

void SegmentedValues::emitReductions(llvm::function_ref<Value(ReduceOp)> reduceSegment) {
  for (Operation &inner : body) {
    if (isa<YieldOp>(inner))
      break;
    if (auto reduce = dyn_cast<ReduceOp>(inner)) {
      fixed[reduce] = reduceSegment(reduce);
    } else if (Value result = inner.getResult(0); !isElement(result) && !fixed.contains(result)) {
      Scope scope;
      fixed[result] = getValue(result, Value(), 1, scope);
    }
  }
}

Value SegmentedValues::getValue(Value value, Value i, int64_t width, Scope &scope) {
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

int64_t SegmentedValues::countBytesReadAgain() const {
  int64_t bytes = 0;
  llvm::SmallPtrSet<Value, 8> read;
  for (auto reduce : body.getOps<ReduceOp>()) {
    llvm::SetVector<Value> needed;
    needed.insert(reduce.getValue());
    for (size_t i = 0; i < needed.size(); ++i) {
      if (auto argument = dyn_cast<BlockArgument>(needed[i])) {
        if (!read.insert(argument).second)
          bytes += op.getChunk() * getStoredBytes(argument.getType());
      } else {
        for (Value operand : needed[i].getDefiningOp()->getOperands())
          if (isElement(operand))
            needed.insert(operand);
      }
    }
  }
  return bytes;
}

SegmentedValues::Range SegmentedValues::getPiece(Value iteration) {
  int64_t pieces = op.getPieces();
  Value segment = b.floorDiv(iteration, pieces), piece = b.mod(iteration, pieces);
  Value start = b.max(b.sub(getStart(segment), position), b.i64(0));
  Value end = b.min(b.sub(getEnd(segment), position), b.i64(op.getChunk()));
  Value length = b.max(b.sub(end, start), b.i64(0));
  Value low = b.add(start, b.floorDiv(b.mul(length, piece), pieces));
  Value high = b.add(start, b.floorDiv(b.mul(length, b.add(piece, 1)), pieces));
  return {segment, low, high};
}

} // namespace spmd::kernel
