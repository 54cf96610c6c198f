//===- IntegerRange.cpp - Between which bounds integers lie ---------------===//

#include "dialects/Aten/IntegerRange.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/RuleBuilder.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace spmd::aten {

static bool isSigned(Type type) { return !type.isInteger(1) && !type.isUnsignedInteger(); }

KnownRange getKnownRange(const IntegerValueRange &range, Type type) {
  if (!isa<IntegerType>(type) || range.isUninitialized())
    return std::nullopt;
  const ConstantIntRanges &bounds = range.getValue();
  if (isSigned(type)) {
    if (bounds.smin().isMinSignedValue() && bounds.smax().isMaxSignedValue())
      return std::nullopt;
    return IntegerRange{bounds.smin().getSExtValue(), bounds.smax().getSExtValue()};
  }
  if (!type.isInteger(1) && bounds.umin().isZero() && bounds.umax().isMaxValue())
    return std::nullopt;
  return rangeFrom(static_cast<int64_t>(bounds.umin().getZExtValue()),
                   static_cast<int64_t>(bounds.umax().getZExtValue()));
}

IntegerValueRange getValueRange(KnownRange range, Type type) {
  if (!isa<IntegerType>(type))
    return IntegerValueRange();
  unsigned width = type.getIntOrFloatBitWidth();
  bool fits = range && range->low <= range->high;
  if (isSigned(type)) {
    if (!fits || !llvm::isIntN(width, range->low) || !llvm::isIntN(width, range->high))
      return ConstantIntRanges::maxRange(width);
    return ConstantIntRanges::fromSigned(APInt(width, range->low, true), APInt(width, range->high, true));
  }
  if (!fits || range->low < 0 || !llvm::isUIntN(width, range->high))
    return ConstantIntRanges::maxRange(width);
  return ConstantIntRanges::fromUnsigned(APInt(width, range->low), APInt(width, range->high));
}

bool movesIntegers(Operation *op) {
  auto iface = dyn_cast<ShardingOpInterface>(op);
  auto isInteger = [](Type type) { return getElementTypeOrSelf(type).isInteger(); };
  return iface && iface.movesElements() && llvm::all_of(op->getOperandTypes(), isInteger) &&
         llvm::all_of(op->getResultTypes(), isInteger);
}

void inferIntegerRanges(Operation *op, ArrayRef<IntegerValueRange> operands, SetIntLatticeFn setRange,
                        InferRangesFn infer) {
  SmallVector<KnownRange> ranges;
  for (auto [value, range] : llvm::zip_equal(op->getOperands(), operands))
    ranges.push_back(getKnownRange(range, typeOf(value).getElementType()));
  SmallVector<KnownRange> results = infer ? infer(ranges) : SmallVector<KnownRange>{rangeOfElements(op, ranges)};
  for (auto [index, value] : llvm::enumerate(op->getResults()))
    setRange(value, getValueRange(results[results.size() == 1 ? 0 : index], typeOf(value).getElementType()));
}

//===----------------------------------------------------------------------===//
// Elements: numbers, moved ones, bodies
//===----------------------------------------------------------------------===//

static std::optional<int64_t> getInteger(Attribute attr) {
  if (auto boolean = dyn_cast_or_null<BoolAttr>(attr))
    return boolean.getValue();
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attr))
    return integer.getInt();
  if (auto real = dyn_cast_or_null<FloatAttr>(attr))
    if (double value = real.getValueAsDouble(); std::trunc(value) == value && std::abs(value) <= 0x1p53)
      return static_cast<int64_t>(value);
  return std::nullopt;
}

KnownRange rangeFrom(int64_t low, int64_t high) { return IntegerRange{low, high}; }

KnownRange rangeOfNumber(Attribute number) {
  std::optional<int64_t> integer = getInteger(number);
  return integer ? rangeFrom(*integer, *integer) : std::nullopt;
}

KnownRange unite(KnownRange a, KnownRange b) {
  if (!a || !b)
    return std::nullopt;
  return rangeFrom(std::min(a->low, b->low), std::max(a->high, b->high));
}

/// MLIR says nothing of math.absi: max(x, -x, 0), but for the smallest integer, which stays what it is.
static ConstantIntRanges rangeOfMagnitude(const ConstantIntRanges &x) {
  unsigned width = x.smin().getBitWidth();
  if (x.smin().isMinSignedValue())
    return ConstantIntRanges::maxRange(width);
  auto zero = ConstantIntRanges::constant(APInt::getZero(width));
  ConstantIntRanges negated = intrange::inferSub({zero, x});
  return intrange::inferMaxS({intrange::inferMaxS({x, negated}), zero});
}

/// What MLIR infers of the scalar body.
static KnownRange rangeOfBody(ScalarBodyOpInterface op, ArrayRef<KnownRange> ranges) {
  Block body;
  llvm::DenseMap<Value, IntegerValueRange> known;
  for (auto [type, range] : llvm::zip_equal(op->getOperandTypes(), ranges)) {
    Type valueType = getValueType(getElementTypeOrSelf(type));
    known[body.addArgument(valueType, op.getLoc())] = getValueRange(range, valueType);
  }
  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  builder.setInsertionPointToEnd(&body);
  Value result = op.buildScalarBody(builder, body.getArguments());
  for (Operation &scalar : body) {
    for (Value value : scalar.getResults())
      known[value] = IntegerValueRange::getMaxRange(value);
    if (auto magnitude = dyn_cast<math::AbsIOp>(scalar)) {
      known[magnitude] = rangeOfMagnitude(known[magnitude.getOperand()].getValue());
    } else if (auto infers = dyn_cast<InferIntRangeInterface>(scalar)) {
      SmallVector<IntegerValueRange> operands =
          llvm::map_to_vector(scalar.getOperands(), [&](Value operand) { return known.lookup(operand); });
      infers.inferResultRangesFromOptional(operands,
                                           [&](Value value, const IntegerValueRange &range) { known[value] = range; });
    }
  }
  return getKnownRange(known.lookup(result), result.getType());
}

KnownRange rangeOfElements(Operation *op, ArrayRef<KnownRange> ranges) {
  if (auto fills = dyn_cast<AtenOpInterface>(op))
    if (Attribute number = fills.getFillNumber())
      return rangeOfNumber(number);
  if (auto moves = dyn_cast<ShardingOpInterface>(op); moves && moves.movesElements() && !ranges.empty()) {
    KnownRange all = ranges.front();
    for (KnownRange range : ranges.drop_front())
      all = unite(all, range);
    return all;
  }
  auto body = dyn_cast<ScalarBodyOpInterface>(op);
  return body && body.hasScalarBody() ? rangeOfBody(body, ranges) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// What some ops say of theirs
//===----------------------------------------------------------------------===//

KnownRange rangeOfProgression(Attribute start, Attribute step, int64_t count) {
  std::optional<int64_t> first = getInteger(start), by = getInteger(step);
  int64_t distance = 0, last = 0;
  if (!first || !by || llvm::MulOverflow(*by, count - 1, distance) || llvm::AddOverflow(*first, distance, last))
    return std::nullopt;
  return rangeFrom(std::min(*first, last), std::max(*first, last));
}

KnownRange rangeOfConstant(Attribute value) {
  auto elements = dyn_cast<DenseIntElementsAttr>(value);
  if (!elements || elements.empty())
    return std::nullopt;
  auto read = [extends = isSigned(elements.getElementType())](const APInt &entry) {
    return extends ? entry.getSExtValue() : static_cast<int64_t>(entry.getZExtValue());
  };
  int64_t first = read(*elements.begin());
  KnownRange all = rangeFrom(first, first);
  for (const APInt &entry : elements)
    all = unite(all, rangeFrom(read(entry), read(entry)));
  return all;
}

KnownRange rangeOfRemainder(Operation *op, ArrayRef<KnownRange> ranges, KnownRange divisor) {
  if (divisor && divisor->low > 0)
    return rangeFrom(0, divisor->high - 1);
  return rangeOfElements(op, ranges);
}

KnownRange rangeOfSums(KnownRange element, int64_t count) {
  int64_t low = 0, high = 0;
  if (!element || llvm::MulOverflow(std::min<int64_t>(element->low, 0), count, low) ||
      llvm::MulOverflow(std::max<int64_t>(element->high, 0), count, high))
    return std::nullopt;
  return rangeFrom(low, high);
}

int64_t countAlong(Operation *op, int64_t dim) {
  RankedTensorType type = typeOf(op->getOperand(0));
  return dim >= 0 && dim < type.getRank() ? type.getDimSize(dim) : type.getNumElements();
}

int64_t countReduced(Operation *op) {
  int64_t results = typeOf(op->getResult(0)).getNumElements();
  return results ? typeOf(op->getOperand(0)).getNumElements() / results : 0;
}

KnownRange rangeOfPlaces(Operation *op, int64_t dim) { return rangeFrom(0, countAlong(op, dim) - 1); }

} // namespace spmd::aten
