//===- AttentionMask.cpp - what the positions in a mask say ---------------===//

#include "dialects/Kernel/AttentionMask.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace spmd::kernel {

namespace {

enum Dim : int64_t { kQuery = 2, kKey = 3 };

/// query * t + key * s + constant.
struct Linear {
  int64_t query = 0, key = 0, constant = 0;

  Linear scaled(int64_t factor) const { return {query * factor, key * factor, constant * factor}; }
  Linear plus(const Linear &other) const {
    return {query + other.query, key + other.key, constant + other.constant};
  }
};

std::optional<int64_t> getInteger(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getBitWidth() == 1 ? constant.getZExtValue() : constant.getSExtValue();
}

bool isNumber(Value value, double number) {
  APFloat constant(0.0);
  return matchPattern(value, m_ConstantFloat(&constant)) && constant.convertToDouble() == number;
}

std::optional<Linear> getLinear(Value value) {
  if (std::optional<int64_t> constant = getInteger(value))
    return Linear{0, 0, *constant};
  Operation *op = value.getDefiningOp();
  if (auto index = dyn_cast_or_null<IndexOp>(op)) {
    if (index.getDim() == kQuery)
      return Linear{1, 0, 0};
    if (index.getDim() == kKey)
      return Linear{0, 1, 0};
    return std::nullopt;
  }
  if (isa_and_present<arith::IndexCastOp, arith::ExtSIOp>(op))
    return getLinear(op->getOperand(0));
  if (!isa_and_present<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Linear> left = getLinear(op->getOperand(0)), right = getLinear(op->getOperand(1));
  if (!left || !right)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return left->plus(*right);
  if (isa<arith::SubIOp>(op))
    return left->plus(right->scaled(-1));
  if (left->query == 0 && left->key == 0)
    return right->scaled(left->constant);
  if (right->query == 0 && right->key == 0)
    return left->scaled(right->constant);
  return std::nullopt;
}

/// Not known: everything may be seen, but need not.
KeyWindow unknown() { return {std::nullopt, std::nullopt, false}; }

KeyWindow intersect(KeyWindow a, KeyWindow b) {
  KeyWindow both{a.low, a.high, a.isExact && b.isExact};
  if (b.low)
    both.low = std::max(b.low, a.low);
  if (b.high)
    both.high = a.high ? std::min(*a.high, *b.high) : *b.high;
  return both;
}

bool isEverything(const KeyWindow &window) { return window.isExact && !window.low && !window.high; }

/// The smallest window around both.
KeyWindow unite(KeyWindow a, KeyWindow b) {
  if (isEverything(a) || isEverything(b))
    return {};
  KeyWindow either = unknown();
  if (a.low && b.low)
    either.low = std::min(*a.low, *b.low);
  if (a.high && b.high)
    either.high = std::max(*a.high, *b.high);
  return either;
}

class WindowFinder {
public:
  explicit WindowFinder(AttentionSizesAttr sizes) : sizes(sizes) {}

  /// Where `value`, an i1, may be `wanted`.
  KeyWindow whereIs(Value value, bool wanted) const;
  /// Where `value`, a float, may be above -inf. Exact if it is 0 there.
  KeyWindow whereFinite(Value value) const;

private:
  KeyWindow compare(arith::CmpIPredicate predicate, Linear difference) const;

  AttentionSizesAttr sizes;
};

} // namespace

/// Where `difference predicate 0`.
KeyWindow WindowFinder::compare(arith::CmpIPredicate predicate, Linear d) const {
  using Predicate = arith::CmpIPredicate;
  // Always so?
  int64_t lowest = d.constant, highest = d.constant;
  for (int64_t reach : {d.query * (sizes.getQLen() - 1), d.key * (sizes.getKvLen() - 1)})
    (reach < 0 ? lowest : highest) += reach;
  if ((predicate == Predicate::sge && lowest >= 0) || (predicate == Predicate::sgt && lowest > 0) ||
      (predicate == Predicate::sle && highest <= 0) || (predicate == Predicate::slt && highest < 0) ||
      (predicate == Predicate::ne && (lowest > 0 || highest < 0)) ||
      (predicate == Predicate::eq && lowest == 0 && highest == 0))
    return {};
  if (d.key == -1 && d.query == 1) {
    d = d.scaled(-1);
    if (predicate == Predicate::sge || predicate == Predicate::sle)
      predicate = predicate == Predicate::sge ? Predicate::sle : Predicate::sge;
    else if (predicate == Predicate::sgt || predicate == Predicate::slt)
      predicate = predicate == Predicate::sgt ? Predicate::slt : Predicate::sgt;
  }
  if (d.key != 1 || d.query != -1)
    return unknown();
  // key - query + constant predicate 0.
  int64_t edge = -d.constant;
  switch (predicate) {
  case Predicate::sle:
    return {std::nullopt, edge, true};
  case Predicate::slt:
    return {std::nullopt, edge - 1, true};
  case Predicate::sge:
    return {edge, std::nullopt, true};
  case Predicate::sgt:
    return {edge + 1, std::nullopt, true};
  case Predicate::eq:
    return {edge, edge, true};
  default:
    return unknown();
  }
}

KeyWindow WindowFinder::whereIs(Value value, bool wanted) const {
  if (std::optional<int64_t> constant = getInteger(value))
    return (*constant != 0) == wanted ? KeyWindow() : unknown();
  Operation *op = value.getDefiningOp();
  if (auto compareOp = dyn_cast_or_null<arith::CmpIOp>(op)) {
    arith::CmpIPredicate predicate = compareOp.getPredicate();
    // A bool that was made an integer and is made a bool again.
    Value left = compareOp.getLhs();
    auto extended = left.getDefiningOp<arith::ExtUIOp>();
    bool isTest = predicate == arith::CmpIPredicate::ne || predicate == arith::CmpIPredicate::eq;
    if (extended && extended.getIn().getType().isInteger(1) && isTest && getInteger(compareOp.getRhs()) == 0)
      return whereIs(extended.getIn(), wanted == (predicate == arith::CmpIPredicate::ne));
    std::optional<Linear> a = getLinear(left), b = getLinear(compareOp.getRhs());
    if (!a || !b)
      return unknown();
    return compare(wanted ? predicate : arith::invertPredicate(predicate), a->plus(b->scaled(-1)));
  }
  if (isa_and_present<arith::AndIOp, arith::OrIOp>(op)) {
    KeyWindow a = whereIs(op->getOperand(0), wanted), b = whereIs(op->getOperand(1), wanted);
    return isa<arith::AndIOp>(op) == wanted ? intersect(a, b) : unite(a, b);
  }
  if (isa_and_present<arith::XOrIOp>(op))
    for (auto [flag, other] : {std::pair(0, 1), std::pair(1, 0)})
      if (std::optional<int64_t> constant = getInteger(op->getOperand(flag)))
        return whereIs(op->getOperand(other), wanted != (*constant != 0));
  return unknown();
}

KeyWindow WindowFinder::whereFinite(Value value) const {
  if (isNumber(value, 0))
    return {};
  Operation *op = value.getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    double never = -std::numeric_limits<double>::infinity();
    if (isNumber(select.getFalseValue(), never))
      return intersect(whereIs(select.getCondition(), true), whereFinite(select.getTrueValue()));
    if (isNumber(select.getTrueValue(), never))
      return intersect(whereIs(select.getCondition(), false), whereFinite(select.getFalseValue()));
  }
  if (isa_and_present<arith::AddFOp>(op))
    return intersect(whereFinite(op->getOperand(0)), whereFinite(op->getOperand(1)));
  return unknown();
}

KeyWindow getKeyWindow(Region &mask, AttentionSizesAttr sizes) {
  if (mask.empty())
    return {};
  Value yielded = mask.front().getTerminator()->getOperand(0);
  WindowFinder finder(sizes);
  return yielded.getType().isInteger(1) ? finder.whereIs(yielded, true) : finder.whereFinite(yielded);
}

int64_t countPairs(KeyWindow window, AttentionSizesAttr sizes) {
  int64_t pairs = 0;
  for (int64_t query = 0; query < sizes.getQLen(); ++query) {
    int64_t first = window.low ? std::max<int64_t>(query + *window.low, 0) : 0;
    int64_t last = window.high ? std::min(query + *window.high, sizes.getKvLen() - 1) : sizes.getKvLen() - 1;
    pairs += std::max<int64_t>(last - first + 1, 0);
  }
  return pairs;
}

} // namespace spmd::kernel
