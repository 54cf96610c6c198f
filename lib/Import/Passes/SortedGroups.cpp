//===- SortedGroups.cpp - Groups of sorted rows, by their ends ------------===//

#include "SortedGroups.h"
#include "../Emitter.h"

#include "dialects/Aten/Aten.h"

using namespace mlir;
using namespace spmd;

/// Types in which counts of rows are exact.
static bool holdsCounts(Type type) {
  return type.isF32() || type.isF64() || type.isInteger(32) || type.isInteger(64);
}

/// What has the same numbers in the same order: without views, and casts that keep them.
static Value strip(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto interface = dyn_cast<aten::ShardingOpInterface>(op);
    auto cast = dyn_cast<aten::ToCopyOp>(op);
    bool keeps = cast && holdsCounts(typeOf(value).getElementType()) &&
                 (holdsCounts(typeOf(cast.getSelf()).getElementType()) ||
                  typeOf(cast.getSelf()).getElementType().isInteger(1));
    if (!keeps && !(interface && interface.isViewLike()))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The comparison of two vectors, every element of one with every element of the other, of which `value` counts those
/// that hold: along dim `dim` of [first dim, second dim].
template <typename ComparisonOp>
static ComparisonOp findCount(Value value, int64_t &dim) {
  auto sum = strip(value).getDefiningOp<aten::SumDimIntListOp>();
  if (!sum || sum.getDim().size() != 1 || !holdsCounts(typeOf(sum.getResult()).getElementType()))
    return {};
  dim = sum.getDim().front();
  Value summed = sum.getSelf();
  if (typeOf(summed).getRank() != 2)
    return {};
  if (auto cast = summed.getDefiningOp<aten::ToCopyOp>())
    summed = cast.getSelf();
  return summed.getDefiningOp<ComparisonOp>();
}

/// Elements of an operand of a comparison that lie along dim `dim` alone; 0 if it has any in another.
static int64_t sizeAlong(Value value, int64_t dim, int64_t rank) {
  RankedTensorType type = typeOf(value);
  int64_t own = dim - (rank - type.getRank());
  int64_t size = own < 0 ? 1 : type.getDimSize(own);
  return size == type.getNumElements() ? size : 0;
}

aten::SortStableOp spmd::findSortOfGroups(Value groups, ArrayRef<aten::SortStableOp> sorts, KnownIntegers &known,
                                          IntegerRanges &ranges) {
  // Of each row: how many ends come before it or at it.
  int64_t dim = 0;
  auto isPast = findCount<aten::LeTensorOp>(groups, dim);
  if (!isPast || dim != 1)
    return {};
  Value ends = isPast.getSelf(), positions = isPast.getOther();
  int64_t rows = typeOf(isPast.getResult()).getDimSize(0), numGroups = typeOf(isPast.getResult()).getDimSize(1);
  if (sizeAlong(ends, 1, 2) != numGroups || sizeAlong(positions, 0, 2) != rows || !known.isCounting(positions))
    return {};
  auto sums = strip(ends).getDefiningOp<aten::CumsumOp>();
  if (!sums || typeOf(sums.getResult()).getNumElements() != numGroups || typeOf(sums.getResult()).getRank() != 1 ||
      !holdsCounts(typeOf(sums.getResult()).getElementType()))
    return {};
  // Of each group: how many numbers are its own.
  auto isOf = findCount<aten::EqTensorOp>(sums.getSelf(), dim);
  if (!isOf || typeOf(isOf.getResult()).getDimSize(1 - dim) != numGroups)
    return {};
  Value numbers;
  for (auto [a, b] : {std::pair(isOf.getSelf(), isOf.getOther()), std::pair(isOf.getOther(), isOf.getSelf())})
    if (sizeAlong(a, 1 - dim, 2) == numGroups && sizeAlong(b, dim, 2) == rows && known.isCounting(a))
      numbers = strip(b);
  if (!numbers)
    return {};
  for (aten::SortStableOp sort : sorts) {
    if (sort.getDescending() || (sort.getValues() != numbers && strip(sort.getSelf()) != numbers))
      continue;
    aten::KnownRange range = ranges.get(sort.getSelf());
    if (typeOf(sort.getValues()).getNumElements() == rows && range && range->low >= 0 && range->high < numGroups)
      return sort;
  }
  return {};
}
