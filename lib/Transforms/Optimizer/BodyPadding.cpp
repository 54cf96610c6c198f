//===- BodyPadding.cpp - What a pointwise op makes of padding -------------===//
//
// [Note: abstract bodies]
// A scalar body is evaluated on what is known of its operands: whether they are zero,
// their sign, whether they are finite. So each op answers by what it computes, an op of
// another project too. Zero has either sign. Numbers that a body names are followed as
// far as no operation rounds: what comes of two roundings need not be what comes of one.
//
//===----------------------------------------------------------------------===//

#include "BodyPadding.h"

#include "dialects/Aten/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <functional>

using namespace mlir;
using namespace spmd;
using llvm::APFloat;

namespace {
/// A scalar of a body. Truth values are zero or the number 1.
struct Scalar {
  Padding padding = Padding::unknown;
  std::optional<double> number; ///< the value, where it is one; of zeros 0

  static Scalar of(Padding padding) { return {padding, padding == Padding::zero ? std::optional(0.0) : std::nullopt}; }
  static Scalar ofNumber(double value) {
    if (!std::isfinite(value))
      return {Padding::unknown, value};
    return {value == 0 ? Padding::zero : value < 0 ? Padding::negative : Padding::positive, value};
  }
  static Scalar ofTruth(std::optional<bool> truth) { return truth ? ofNumber(*truth) : of(Padding::finite); }
  /// A result that was rounded: its sign is known, the number is not.
  static Scalar ofRounded(double value) { return of(value == 0 ? Padding::finite : ofNumber(value).padding); }

  bool is(Padding other) const { return padding == other; }
  bool isFinite() const { return padding != Padding::unknown; }
  bool isNonzero() const { return is(Padding::positive) || is(Padding::negative) || is(Padding::nonzero); }
  bool isNumber() const { return number && std::isfinite(*number); }
};
} // namespace

static Scalar either(Scalar a, Scalar b) {
  if (a.is(b.padding))
    return a.number == b.number ? a : Scalar::of(a.padding);
  if (!a.isFinite() || !b.isFinite())
    return {};
  return Scalar::of(a.isNonzero() && b.isNonzero() ? Padding::nonzero : Padding::finite);
}

/// `value`, a double, as a number of a float type.
static APFloat inType(double value, Type type) {
  APFloat number(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number;
}

static Scalar ofConstant(double value, Type type) {
  if (isa<FloatType>(type))
    return Scalar::ofNumber(inType(value, type).convertToDouble());
  return std::abs(value) <= 0x1p53 ? Scalar::ofNumber(std::trunc(value)) : Scalar::of(Padding::finite);
}

Padding spmd::getPaddingOfNumber(double value, Type type) { return ofConstant(value, type).padding; }

//===----------------------------------------------------------------------===//
// Arithmetic of floats
//===----------------------------------------------------------------------===//

/// Of two numbers; nothing for others.
static std::optional<Scalar> ofNumbers(Scalar a, Scalar b, Type type,
                                       APFloat::opStatus (APFloat::*compute)(const APFloat &, APFloat::roundingMode)) {
  if (!a.isNumber() || !b.isNumber())
    return std::nullopt;
  APFloat result = inType(*a.number, type);
  APFloat::opStatus status = (result.*compute)(inType(*b.number, type), APFloat::rmNearestTiesToEven);
  double value = result.convertToDouble();
  return status == APFloat::opOK ? Scalar::ofNumber(value) : Scalar::ofRounded(value);
}

static Scalar negated(Scalar a) {
  Padding padding = a.is(Padding::positive)   ? Padding::negative
                    : a.is(Padding::negative) ? Padding::positive
                                              : a.padding;
  return {padding, a.number ? std::optional(-*a.number) : std::nullopt};
}

static Scalar sum(Scalar a, Scalar b, Type type) {
  if (a.is(Padding::zero) || b.is(Padding::zero))
    return a.is(Padding::zero) ? b : a;
  if (std::optional<Scalar> number = ofNumbers(a, b, type, &APFloat::add))
    return *number;
  if (!a.isFinite() || !b.isFinite())
    return {};
  bool hasSign = a.is(Padding::positive) || a.is(Padding::negative); // else they may cancel
  return Scalar::of(hasSign && a.is(b.padding) ? a.padding : Padding::finite);
}

/// The signs of a product or a quotient of finite values, of which the second is not zero in a quotient.
static Scalar product(Scalar a, Scalar b) {
  if (!a.isFinite() || !b.isFinite())
    return {}; // 0 times infinity
  if (a.is(Padding::zero) || b.is(Padding::zero))
    return Scalar::of(Padding::zero);
  if (!a.isNonzero() || !b.isNonzero())
    return Scalar::of(Padding::finite);
  if (a.is(Padding::nonzero) || b.is(Padding::nonzero))
    return Scalar::of(Padding::nonzero);
  return Scalar::of(a.is(b.padding) ? Padding::positive : Padding::negative);
}

static Scalar quotient(Scalar a, Scalar b, Type type) {
  if (!b.isNonzero())
    return {};
  std::optional<Scalar> number = ofNumbers(a, b, type, &APFloat::divide);
  return number ? *number : product(a, b);
}

/// The larger one; the smaller one is that of the negated values.
static Scalar larger(Scalar a, Scalar b) {
  if (!a.isFinite() || !b.isFinite())
    return {};
  if (a.isNumber() && b.isNumber())
    return *a.number < *b.number ? b : a;
  auto isPositive = [](Scalar x) { return x.is(Padding::positive); };
  auto isNotPositive = [](Scalar x) { return x.is(Padding::zero) || x.is(Padding::negative); };
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if ((isPositive(x) && isNotPositive(y)) || (x.is(Padding::zero) && y.is(Padding::negative)))
      return x;
  return isPositive(a) || isPositive(b) ? Scalar::of(Padding::positive) : either(a, b);
}

static Scalar magnitude(Scalar a) {
  if (a.number)
    return {a.is(Padding::negative) ? Padding::positive : a.padding, std::abs(*a.number)};
  return a.isNonzero() ? Scalar::of(Padding::positive) : a;
}

static Scalar copySign(Scalar a, Scalar sign) {
  if (sign.is(Padding::positive))
    return magnitude(a);
  if (sign.is(Padding::negative))
    return negated(magnitude(a));
  return Scalar::of(a.isNonzero() ? Padding::nonzero : a.padding); // zero has either sign
}

/// To an integer, as a float.
static Scalar rounded(Scalar a, double (*round)(double)) {
  if (a.isNumber())
    return Scalar::ofNumber(round(*a.number));
  return Scalar::of(a.isFinite() ? Padding::finite : Padding::unknown);
}

static Scalar power(Scalar base, Scalar exponent) {
  if (base.is(Padding::zero) && exponent.is(Padding::positive))
    return base;
  bool isNumber = exponent.isNumber() || (base.isNumber() && *base.number == 1);
  return base.is(Padding::positive) && isNumber ? Scalar::of(Padding::positive) : Scalar();
}

//===----------------------------------------------------------------------===//
// Comparisons, integers, functions
//===----------------------------------------------------------------------===//

/// What a comparison says of the ways in which two values may be ordered; `holds` of numbers that are so ordered.
static Scalar compare(Scalar a, Scalar b, llvm::function_ref<bool(double, double)> holds) {
  if (a.number && b.number)
    return Scalar::ofTruth(holds(*a.number, *b.number));
  auto isBelow = [](Scalar x, Scalar y) {
    if (x.isFinite() && y.number && *y.number == INFINITY)
      return true;
    if (y.isFinite() && x.number && *x.number == -INFINITY)
      return true;
    return (x.is(Padding::negative) && (y.is(Padding::zero) || y.is(Padding::positive))) ||
           (x.is(Padding::zero) && y.is(Padding::positive));
  };
  if (isBelow(a, b))
    return Scalar::ofTruth(holds(0, 1));
  if (isBelow(b, a))
    return Scalar::ofTruth(holds(1, 0));
  bool differ = (a.isNonzero() && b.is(Padding::zero)) || (b.isNonzero() && a.is(Padding::zero));
  SmallVector<bool> answers{holds(0, 1), holds(1, 0)};
  if (!differ)
    answers.push_back(holds(0, 0));
  if (!a.isFinite() || !b.isFinite())
    answers.push_back(holds(NAN, 0));
  return Scalar::ofTruth(llvm::all_equal(answers) ? std::optional(answers.front()) : std::nullopt);
}

static Scalar compare(arith::CmpFPredicate predicate, Scalar a, Scalar b) {
  return compare(a, b, [&](double x, double y) { return arith::applyCmpPredicate(predicate, APFloat(x), APFloat(y)); });
}

static Scalar compare(arith::CmpIPredicate predicate, Scalar a, Scalar b) {
  auto integer = [](double x) { return APInt(64, static_cast<int64_t>(x), /*isSigned=*/true); };
  auto holds = [&](double x, double y) { return arith::applyCmpPredicate(predicate, integer(x), integer(y)); };
  return compare(a, b, holds);
}

/// Of integers: a sum or a product wraps.
static Scalar ofInteger(Scalar a, Scalar b, Type type, llvm::function_ref<double(double, double)> compute) {
  if (!a.number || !b.number)
    return Scalar::of(Padding::finite);
  double value = compute(*a.number, *b.number),
         limit = std::ldexp(1.0, static_cast<int>(type.getIntOrFloatBitWidth()) - 1);
  return std::abs(value) < std::min(limit, 0x1p53) ? Scalar::ofNumber(value) : Scalar::of(Padding::finite);
}

/// A truth value, or the bits of an integer.
static Scalar both(Scalar a, Scalar b) {
  if (a.is(Padding::zero) || b.is(Padding::zero))
    return Scalar::of(Padding::zero);
  return a.number == b.number ? a : Scalar::of(Padding::finite);
}
static Scalar any(Scalar a, Scalar b) {
  if (a.is(Padding::zero) || b.is(Padding::zero))
    return a.is(Padding::zero) ? b : a;
  if (a.number && a.number == b.number)
    return a;
  return Scalar::of(a.isNonzero() || b.isNonzero() ? Padding::nonzero : Padding::finite);
}
static Scalar different(Scalar a, Scalar b) {
  if (a.is(Padding::zero) || b.is(Padding::zero))
    return a.is(Padding::zero) ? b : a;
  return Scalar::of(a.number && a.number == b.number ? Padding::zero : Padding::finite);
}

/// A function of one operand at zero, of which the sign makes no difference. A number but zero is not relied on:
/// targets round it as they do. What has two operands may depend on the signs, as an angle does.
static Scalar atZero(Operation *op) {
  auto type = dyn_cast<FloatType>(op->getOperand(0).getType());
  SmallVector<OpFoldResult> folded;
  if (op->getNumOperands() != 1 || !type || failed(op->fold({FloatAttr::get(type, 0.0)}, folded)) || folded.size() != 1)
    return {};
  auto value = dyn_cast_or_null<FloatAttr>(dyn_cast<Attribute>(folded.front()));
  return value ? Scalar::of(Scalar::ofNumber(value.getValueAsDouble()).padding) : Scalar();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

namespace {
class BodyEvaluator {
public:
  BodyEvaluator(Block &body, ArrayRef<Padding> operands, bool isConversion, bool decides)
      : isConversion(isConversion), decides(decides) {
    for (auto [argument, padding] : llvm::zip_equal(body.getArguments(), operands))
      known[argument] =
          Scalar::of(argument.getType().isInteger() && padding == Padding::unknown ? Padding::finite : padding);
    for (Operation &op : body)
      for (Value result : op.getResults())
        known[result] = op.getNumResults() == 1 ? evaluate(&op) : Scalar();
  }

  Padding get(Value value) const { return known.lookup(value).padding; }

private:
  Scalar evaluate(Operation *op);
  Scalar evaluateInteger(Operation *op, Scalar a, Scalar b);
  Scalar evaluateMath(Operation *op, Scalar a, Scalar b);
  /// As a float of fewer values. What is computed is taken to be one of them still, what is only converted is not:
  /// 1e-10 is 0 in f16.
  Scalar toType(Scalar value, Type type) const {
    if (value.isNumber())
      return ofConstant(*value.number, type);
    return isConversion ? Scalar() : value;
  }

  Scalar larger(Scalar a, Scalar b) const { return decides ? ::larger(a, b) : either(a, b); }
  Scalar smaller(Scalar a, Scalar b) const { return negated(larger(negated(a), negated(b))); }
  template <typename Predicate>
  Scalar compare(Predicate predicate, Scalar a, Scalar b) const {
    return decides ? ::compare(predicate, a, b) : Scalar::of(Padding::finite);
  }

  llvm::DenseMap<Value, Scalar> known;
  bool isConversion, decides;
};
} // namespace

Scalar BodyEvaluator::evaluateInteger(Operation *op, Scalar a, Scalar b) {
  Type type = op->getResult(0).getType();
  return TypeSwitch<Operation *, Scalar>(op)
      .Case([&](arith::AddIOp) {
        return a.is(Padding::zero) ? b : b.is(Padding::zero) ? a : ofInteger(a, b, type, std::plus<double>());
      })
      .Case([&](arith::SubIOp) { return b.is(Padding::zero) ? a : ofInteger(a, b, type, std::minus<double>()); })
      .Case([&](arith::MulIOp) {
        return a.is(Padding::zero) || b.is(Padding::zero) ? Scalar::of(Padding::zero)
                                                          : ofInteger(a, b, type, std::multiplies<double>());
      })
      .Case<arith::DivSIOp, arith::RemSIOp, arith::ShRSIOp, arith::ShLIOp>(
          [&](auto) { return Scalar::of(a.is(Padding::zero) ? Padding::zero : Padding::finite); })
      .Case([&](arith::MaxSIOp) { return larger(a, b); })
      .Case([&](arith::MinSIOp) { return smaller(a, b); })
      .Case([&](arith::AndIOp) { return both(a, b); })
      .Case([&](arith::OrIOp) { return any(a, b); })
      .Case([&](arith::XOrIOp) { return different(a, b); })
      .Case([&](arith::CmpIOp compared) { return compare(compared.getPredicate(), a, b); })
      .Case([&](math::AbsIOp) {
        return a.isNumber() ? magnitude(a) : a.isNonzero() ? Scalar::of(Padding::nonzero) : a;
      })
      .Default(Scalar::of(Padding::finite));
}

Scalar BodyEvaluator::evaluateMath(Operation *op, Scalar a, Scalar b) {
  bool isZero = a.is(Padding::zero);
  return TypeSwitch<Operation *, Scalar>(op)
      .Case([&](math::AbsFOp) { return magnitude(a); })
      .Case([&](math::CopySignOp) { return copySign(a, b); })
      .Case([&](math::SqrtOp) {
        return a.is(Padding::zero) || a.is(Padding::positive) ? Scalar::of(a.padding) : Scalar();
      })
      .Case([&](math::FloorOp) { return rounded(a, std::floor); })
      .Case([&](math::CeilOp) { return rounded(a, std::ceil); })
      .Case([&](math::TruncOp) { return rounded(a, std::trunc); })
      .Case([&](math::RoundEvenOp) { return rounded(a, std::nearbyint); })
      .Case([&](math::PowFOp) { return power(a, b); })
      // Below 1 of what is negative; else they may be infinite.
      .Case<math::ExpOp, math::Exp2Op>([&](auto) {
        return isZero ? atZero(op) : a.is(Padding::negative) ? Scalar::of(Padding::positive) : Scalar();
      })
      .Case<math::LogOp, math::Log2Op, math::Log10Op, math::Log1pOp>([&](auto) {
        return isZero ? atZero(op) : a.is(Padding::positive) ? Scalar::of(Padding::finite) : Scalar();
      })
      .Case<math::SinOp, math::CosOp, math::TanhOp, math::AtanOp, math::AsinhOp, math::ErfOp, math::ErfcOp>(
          [&](auto) { return isZero ? atZero(op) : Scalar::of(a.isFinite() ? Padding::finite : Padding::unknown); })
      .Default([&](Operation *) { return isZero ? atZero(op) : Scalar(); });
}

Scalar BodyEvaluator::evaluate(Operation *op) {
  Type type = op->getResult(0).getType();
  auto at = [&](unsigned index) {
    return index < op->getNumOperands() ? known.lookup(op->getOperand(index)) : Scalar();
  };
  Scalar a = at(0), b = at(1);
  return TypeSwitch<Operation *, Scalar>(op)
      .Case([&](arith::ConstantOp constant) {
        if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
          return Scalar::ofNumber(real.getValueAsDouble());
        auto integer = cast<IntegerAttr>(constant.getValue());
        return ofConstant(type.isInteger(1) ? !integer.getValue().isZero() : static_cast<double>(integer.getInt()),
                          type);
      })
      .Case([&](arith::SelectOp) { return a.is(Padding::zero) ? at(2)
                                          : a.isNonzero()     ? b
                                                              : either(b, at(2)); })
      .Case([&](arith::CmpFOp compared) { return compare(compared.getPredicate(), a, b); })
      .Case([&](arith::AddFOp) { return sum(a, b, type); })
      .Case([&](arith::SubFOp) { return sum(a, negated(b), type); })
      .Case([&](arith::MulFOp mul) {
        if (std::optional<Scalar> number = ofNumbers(a, b, type, &APFloat::multiply))
          return *number;
        return mul.getLhs() == mul.getRhs() ? product(magnitude(a), magnitude(a)) : product(a, b);
      })
      .Case([&](arith::DivFOp) { return quotient(a, b, type); })
      .Case([&](arith::RemFOp) {
        if (!b.isNonzero() || !a.isFinite())
          return Scalar();
        return Scalar::of(a.is(Padding::zero) ? Padding::zero : Padding::finite);
      })
      .Case([&](arith::NegFOp) { return negated(a); })
      .Case([&](arith::MaximumFOp) { return larger(a, b); })
      .Case([&](arith::MinimumFOp) { return smaller(a, b); })
      .Case<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>([&](auto) { return a; })
      .Case<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>([&](auto) { return toType(a, type); })
      .Case<arith::FPToSIOp, arith::TruncIOp>([&](auto) {
        return a.isNumber() ? ofInteger(a, a, type, [](double x, double) { return std::trunc(x); })
                            : Scalar::of(Padding::finite);
      })
      .Default([&](Operation *) { return isa<FloatType>(type) ? evaluateMath(op, a, b) : evaluateInteger(op, a, b); });
}

/// The op's scalar body in `body`: its result.
static Value buildBody(aten::ScalarBodyOpInterface op, Block &body) {
  for (Type type : op->getOperandTypes())
    body.addArgument(aten::getValueType(cast<RankedTensorType>(type).getElementType()), op.getLoc());
  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  builder.setInsertionPointToEnd(&body);
  return op.buildScalarBody(builder, body.getArguments());
}

/// What `value` is converted from.
static Value getConverted(Value value) {
  while (auto cast = value.getDefiningOp<CastOpInterface>())
    value = cast->getOperand(0);
  return value;
}

bool spmd::isSumByBody(aten::ScalarBodyOpInterface op) {
  Block body;
  Operation *last = getConverted(buildBody(op, body)).getDefiningOp();
  if (auto difference = dyn_cast_or_null<arith::SubIOp>(last)) // 0 - x is what negates integers
    return !matchPattern(difference.getLhs(), m_Zero());
  return isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::AddIOp>(last);
}

Padding spmd::getPaddingOfBody(aten::ScalarBodyOpInterface op, ArrayRef<Padding> operands, bool decides) {
  Block body;
  Value result = buildBody(op, body);
  bool isConversion = isa<BlockArgument>(getConverted(result));

  // What is not zero is positive or negative.
  SmallVector<unsigned> split;
  for (auto [index, padding] : llvm::enumerate(operands))
    if (padding == Padding::nonzero)
      split.push_back(index);
  std::optional<Scalar> all;
  for (unsigned signs = 0; signs < 1u << split.size(); ++signs) {
    SmallVector<Padding> signedOperands(operands);
    for (auto [bit, index] : llvm::enumerate(split))
      signedOperands[index] = signs >> bit & 1 ? Padding::negative : Padding::positive;
    Scalar one = Scalar::of(BodyEvaluator(body, signedOperands, isConversion, decides).get(result));
    all = all ? either(*all, one) : one;
  }
  return all->padding;
}
