//===- IntegerRange.cpp - Between which bounds integers lie ---------------===//

#include "IntegerRange.h"
#include "../Emitter.h"

using namespace mlir;
using namespace spmd;

/// Numbers beyond this are nobody's rows.
static constexpr int64_t kLargest = int64_t(1) << 30;

IntegerValueRange IntegerRanges::infer(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  known[value] = IntegerValueRange::getMaxRange(value);
  auto op = value.getDefiningOp<InferIntRangeInterface>();
  if (op && typeOf(value).getElementType().isInteger() && typeOf(value).getNumElements() != 0) {
    SmallVector<IntegerValueRange> operands;
    for (Value operand : op->getOperands())
      operands.push_back(infer(operand));
    op.inferResultRangesFromOptional(operands,
                                     [&](Value result, const IntegerValueRange &range) { known[result] = range; });
  }
  return known[value];
}

aten::KnownRange IntegerRanges::get(Value value) {
  aten::KnownRange range = aten::getKnownRange(infer(value), typeOf(value).getElementType());
  return range && range->low >= -kLargest && range->high <= kLargest ? range : std::nullopt;
}
