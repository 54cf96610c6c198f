//===- IntegerRange.cpp - Between which bounds integers lie ---------------===//

#include "IntegerRange.h"
#include "../Emitter.h"

#include "dialects/Aten/Aten.h"
#include "mlir/IR/TypeUtilities.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace spmd;

/// Numbers beyond this are nobody's rows; below it sums and products of two
/// cannot overflow.
static constexpr int64_t kLargest = int64_t(1) << 30;

static std::optional<IntegerRange> limited(int64_t low, int64_t high) {
  if (low < -kLargest || high > kLargest || low > high)
    return std::nullopt;
  return IntegerRange{low, high};
}

static std::optional<int64_t> getInteger(Attribute attr) {
  if (auto boolean = dyn_cast_or_null<BoolAttr>(attr))
    return boolean.getValue();
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attr))
    return integer.getInt();
  if (auto real = dyn_cast_or_null<FloatAttr>(attr);
      real && std::trunc(real.getValueAsDouble()) == real.getValueAsDouble() &&
      std::abs(real.getValueAsDouble()) <= kLargest)
    return static_cast<int64_t>(real.getValueAsDouble());
  return std::nullopt;
}

static IntegerRange unite(IntegerRange a, IntegerRange b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

static std::optional<IntegerRange> multiply(IntegerRange a, IntegerRange b) {
  auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return limited(low, high);
}

bool spmd::keepsElements(Operation *op) {
  if (auto cast = dyn_cast<aten::ToCopyOp>(op)) // between widths of integers: row numbers fit in all of them
    return getElementTypeOrSelf(cast.getSelf().getType()).isInteger() &&
           getElementTypeOrSelf(cast->getResult(0).getType()).isInteger();
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  return iface && iface.movesElements();
}

/// The operand number `index` and a number attribute, for binary ops.
static std::optional<IntegerRange> getAlpha(Operation *op) {
  Attribute alpha = op->getAttr("alpha");
  if (!alpha)
    return IntegerRange{1, 1};
  std::optional<int64_t> number = getInteger(alpha);
  return number ? limited(*number, *number) : std::nullopt;
}

std::optional<IntegerRange> IntegerRanges::compute(Value value) {
  Operation *op = value.getDefiningOp();
  Type element = typeOf(value).getElementType();
  if (!isa<IntegerType>(element) || typeOf(value).getNumElements() == 0)
    return std::nullopt;
  if (auto equal = dyn_cast_or_null<aten::EqScalarOp>(op)) {
    auto range = get(equal.getSelf());
    auto number = getInteger(equal.getOther());
    if (range && number && (*number < range->low || *number > range->high))
      return IntegerRange{0, 0};
  }
  if (auto less = dyn_cast_or_null<aten::LtScalarOp>(op)) {
    auto range = get(less.getSelf());
    auto number = getInteger(less.getOther());
    if (range && number && range->low >= *number)
      return IntegerRange{0, 0};
  }
  if (element.isInteger(1))
    return IntegerRange{0, 1};
  if (!op)
    return std::nullopt;
  auto operand = [&](unsigned i) { return get(op->getOperand(i)); };
  auto number = [&](StringRef attr) -> std::optional<IntegerRange> {
    std::optional<int64_t> n = getInteger(op->getAttr(attr));
    return n ? limited(*n, *n) : std::nullopt;
  };
  // The second operand of "x.Tensor", or the number of "x.Scalar".
  auto other = [&]() { return op->getNumOperands() > 1 ? operand(1) : number("other"); };

  if (keepsElements(op)) {
    std::optional<IntegerRange> all;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      std::optional<IntegerRange> one = operand(i);
      if (!one)
        return std::nullopt;
      all = all ? unite(*all, *one) : *one;
    }
    return all;
  }
  if (auto check = dyn_cast<aten::CheckIndexOp>(op)) {
    if (check.getIgnoreIndex())
      return operand(0);
    return limited(check.getLow(), static_cast<int64_t>(check.getHigh()) - 1);
  }
  if (auto arange = dyn_cast<aten::ArangeStartStepOp>(op)) {
    auto start = getInteger(arange.getStart()), step = getInteger(arange.getStep());
    if (!start || !step || std::abs(*start) > kLargest || std::abs(*step) > kLargest)
      return std::nullopt;
    int64_t last = *start + *step * (typeOf(value).getNumElements() - 1);
    return limited(std::min(*start, last), std::max(*start, last));
  }
  if (isa<aten::FullOp>(op))
    return number("fill_value");
  if (isa<aten::ScalarTensorOp>(op))
    return number("s");
  if (auto constant = dyn_cast<aten::ConstantOp>(op)) {
    auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!elements)
      return std::nullopt;
    int64_t low = kLargest, high = -kLargest;
    for (const APInt &entry : elements) {
      low = std::min(low, entry.getSExtValue());
      high = std::max(high, entry.getSExtValue());
    }
    return limited(low, high);
  }
  if (isa<aten::WhereSelfOp>(op)) {
    auto chooses = operand(0), a = operand(1), b = operand(2);
    if (chooses && chooses->high == 0)
      return b;
    return a && b ? std::optional(unite(*a, *b)) : std::nullopt;
  }
  if (isa<aten::MaskedFillScalarOp>(op)) {
    auto a = operand(0), b = number("value");
    return a && b ? std::optional(unite(*a, *b)) : std::nullopt;
  }
  if (isa<aten::ClampOp>(op)) {
    auto a = operand(0), low = number("min"), high = number("max");
    if (!a && !(low && high))
      return std::nullopt;
    IntegerRange range = a.value_or(IntegerRange{-kLargest, kLargest});
    if (low)
      range = {std::max(range.low, low->low), std::max(range.high, low->low)};
    if (high)
      range = {std::min(range.low, high->high), std::min(range.high, high->high)};
    return limited(range.low, range.high);
  }
  if (isa<aten::MinimumOp, aten::MaximumOp>(op)) {
    auto a = operand(0), b = operand(1);
    if (!a || !b)
      return std::nullopt;
    return isa<aten::MinimumOp>(op) ? IntegerRange{std::min(a->low, b->low), std::min(a->high, b->high)}
                                    : IntegerRange{std::max(a->low, b->low), std::max(a->high, b->high)};
  }
  if (isa<aten::AddTensorOp, aten::AddScalarOp, aten::SubTensorOp, aten::SubScalarOp, aten::RsubScalarOp>(op)) {
    auto a = operand(0), b = other(), alpha = getAlpha(op);
    if (!a || !b || !alpha)
      return std::nullopt;
    if (isa<aten::RsubScalarOp>(op))
      std::swap(a, b);
    auto scaled = multiply(*b, *alpha);
    if (!scaled)
      return std::nullopt;
    if (isa<aten::AddTensorOp, aten::AddScalarOp>(op))
      return limited(a->low + scaled->low, a->high + scaled->high);
    return limited(a->low - scaled->high, a->high - scaled->low);
  }
  if (isa<aten::MulTensorOp, aten::MulScalarOp>(op)) {
    auto a = operand(0), b = other();
    return a && b ? multiply(*a, *b) : std::nullopt;
  }
  if (isa<aten::RemainderTensorOp, aten::RemainderScalarOp>(op)) {
    auto b = other();
    return b && b->low > 0 ? std::optional(IntegerRange{0, b->high - 1}) : std::nullopt;
  }
  if (isa<aten::FloorDivideOp, aten::DivScalarModeOp>(op)) {
    auto a = operand(0), b = other();
    if (!a || !b || a->low < 0 || b->low <= 0)
      return std::nullopt;
    return IntegerRange{a->low / b->high, a->high / b->low};
  }
  if (isa<aten::NegOp>(op)) {
    auto a = operand(0);
    return a ? limited(-a->high, -a->low) : std::nullopt;
  }
  if (isa<aten::AbsOp>(op)) {
    auto a = operand(0);
    if (!a)
      return std::nullopt;
    int64_t high = std::max(std::abs(a->low), std::abs(a->high));
    return limited(a->low <= 0 && a->high >= 0 ? 0 : std::min(std::abs(a->low), std::abs(a->high)), high);
  }
  if (auto scatter = dyn_cast<aten::ScatterRowsOp>(op)) {
    auto before = scatter.getSelf() ? get(scatter.getSelf()) : IntegerRange{0, 0}, written = get(scatter.getSrc());
    return scatter.getReduce() == "set" && before && written ? std::optional(unite(*before, *written)) : std::nullopt;
  }
  // Where something is along a dimension.
  auto rowsOf = [&](Value source) {
    auto dim = op->getAttrOfType<IntegerAttr>("dim");
    int64_t rank = typeOf(source).getRank();
    int64_t at = dim ? (dim.getInt() < 0 ? dim.getInt() + rank : dim.getInt()) : -1;
    return at >= 0 && at < rank ? typeOf(source).getDimSize(at) : typeOf(source).getNumElements();
  };
  bool isPosition = isa<aten::SortStableOp, aten::MaxDimOp, aten::MinDimOp, aten::CummaxOp, aten::CumminOp>(op) &&
                    value == op->getResult(1);
  if (isPosition)
    return limited(0, rowsOf(op->getOperand(0)) - 1);
  if (isa<aten::GatherRowsOp, aten::AmaxOp, aten::AminOp>(op) ||
      (isa<aten::SortStableOp>(op) && value == op->getResult(0)))
    return operand(0);
  bool isSum = isa<aten::SumDimIntListOp>(op), isPrefixSum = isa<aten::CumsumOp>(op);
  if (isSum || isPrefixSum) {
    std::optional<IntegerRange> a;
    if (isa<IntegerType>(typeOf(op->getOperand(0)).getElementType()))
      a = operand(0);
    int64_t count = isPrefixSum ? rowsOf(op->getOperand(0))
                                : typeOf(op->getOperand(0)).getNumElements() / typeOf(value).getNumElements();
    if (!a || count > kLargest)
      return std::nullopt;
    return multiply({std::min<int64_t>(a->low, 0), std::max<int64_t>(a->high, 0)}, {0, count});
  }
  return std::nullopt;
}

std::optional<IntegerRange> IntegerRanges::get(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  std::optional<IntegerRange> range = compute(value);
  known[value] = range;
  return range;
}
