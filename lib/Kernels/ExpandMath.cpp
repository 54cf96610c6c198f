//===- ExpandMath.cpp - math ops without a library ------------------------===//
//
// exp, and everything in f64, is ours; what else f32 needs is MLIR's polynomial approximations. Multiply-adds are
// math.fma where written so, never where the compiler likes.
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

/// Arithmetic on values of one floating-point type (f32, f64 or a vector of them).
class Arithmetic {
public:
  Arithmetic(ImplicitLocOpBuilder &b, Type type)
      : b(b), type(type), bits(getElementTypeOrSelf(type).getIntOrFloatBitWidth()) {
    Type integer = b.getIntegerType(bits);
    auto vector = dyn_cast<VectorType>(type);
    intType = vector ? Type(VectorType::get(vector.getShape(), integer)) : integer;
  }

  bool isF64() const { return bits == 64; }
  Value c(double value) { return splat(type, b.getFloatAttr(getElementTypeOrSelf(type), value)); }
  Value ci(int64_t value) { return splat(intType, b.getIntegerAttr(getElementTypeOrSelf(intType), value)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, x); }
  Value copySign(Value x, Value sign) { return math::CopySignOp::create(b, x, sign); }
  Value less(Value x, Value y) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y); }
  Value equal(Value x, Value y) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value toBits(Value x) { return arith::BitcastOp::create(b, intType, x); }
  Value fromBits(Value x) { return arith::BitcastOp::create(b, type, x); }

  /// Coefficients from the highest power down.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = c(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, c(coefficient));
    return sum;
  }

  Value exp(Value x) { return power(x, /*isBase2=*/false); }
  Value exp2(Value x) { return power(x, /*isBase2=*/true); }
  Value log(Value x);
  Value expm1(Value x);
  Value log1p(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value pow(Value x, Value y);
  Value remainder(Value x, Value y);

private:
  Value power(Value x, bool isBase2);
  Value splat(Type to, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(to))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, Attribute(value)));
    return arith::ConstantOp::create(b, value);
  }

  ImplicitLocOpBuilder &b;
  Type type, intType;
  unsigned bits;
};

} // namespace

/// x = n ln 2 + r, |r| <= ln 2 / 2; exp(x) = 2^n exp(r). The scale is added to the exponent's bits, which is right
/// wherever the result is a normal number; below, it is 0. Infinity and NaN come from x itself. exp2(x) is the same
/// with x = n + r / ln 2.
Value Arithmetic::power(Value x, bool isBase2) {
  // Adding 1.5 * 2^mantissa rounds to an integer, which is then in the low bits.
  int64_t mantissa = isF64() ? 52 : 23;
  Value magic = c(isF64() ? 6755399441055744.0 : 12582912.0);
  Value shifted = isBase2 ? add(x, magic) : fma(x, c(1.4426950408889634), magic);
  Value n = sub(shifted, magic);
  Value r;
  if (isBase2) {
    r = mul(sub(x, n), c(0.6931471805599453));
  } else {
    r = fma(n, c(isF64() ? -6.93147180369123816490e-01 : -0.693359375), x);
    r = fma(n, c(isF64() ? -1.90821492927058770002e-10 : 2.12194440e-4), r);
  }
  SmallVector<double> coefficients;
  if (isF64()) {
    // Taylor; the first term left out is r^14 / 14! < 5e-18.
    double factorial = 1;
    for (int i = 0; i <= 13; ++i) {
      coefficients.insert(coefficients.begin(), 1 / factorial);
      factorial *= i + 1;
    }
  } else {
    // Cephes expf.
    coefficients = {
        1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0};
  }
  Value p = polynomial(r, coefficients);
  // The magic number's own bits are shifted out.
  Value scale = arith::ShLIOp::create(b, toBits(shifted), ci(mantissa));
  Value result = fromBits(arith::AddIOp::create(b, toBits(p), scale));
  double low = isF64() ? -708.39641853226408 : -87.33654, high = isF64() ? 709.78271289338397 : 88.72283;
  if (isBase2) {
    low = isF64() ? -1022 : -126;
    high = isF64() ? 1023.9999999999999 : 127.99999;
  }
  Value tooLow = less(x, c(low));
  // Also true for NaN.
  Value tooHigh = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, c(high));
  result = select(tooLow, c(0), result);
  return select(tooHigh, add(x, c(std::numeric_limits<double>::infinity())), result);
}

/// x = 2^n m, sqrt(1/2) <= m < sqrt(2); log(m) = 2 atanh(s) with s = (m - 1) / (m + 1). For f64.
Value Arithmetic::log(Value x) {
  // Subnormals are scaled to normal numbers.
  Value tiny = less(x, c(2.2250738585072014e-308));
  Value scaled = select(tiny, mul(x, c(18014398509481984.0)), x);
  Value raw = toBits(scaled);
  // Exponent relative to sqrt(1/2): bits of sqrt(1/2) are 0x3FE6A09E667F3BCD.
  Value offset = arith::SubIOp::create(b, raw, ci(0x3FE6A09E667F3BCD));
  Value exponent = arith::ShRSIOp::create(b, offset, ci(52));
  Value m = fromBits(arith::SubIOp::create(b, raw, arith::ShLIOp::create(b, exponent, ci(52))));
  Value n = arith::SIToFPOp::create(b, type, exponent);
  n = select(tiny, sub(n, c(54)), n);
  Value f = sub(m, c(1));
  Value s = div(f, add(f, c(2)));
  Value z = mul(s, s);
  // 2 atanh(s) = 2 s + s z (2/3 + 2/5 z + ...); |s| < 0.1716, the rest is below 1e-18.
  SmallVector<double> coefficients;
  for (int i = 23; i >= 3; i -= 2)
    coefficients.push_back(2.0 / i);
  Value tail = mul(mul(s, z), polynomial(z, coefficients));
  // 2 s = f - s f exactly enough: log(m) = f - (s f - tail).
  Value correction = sub(mul(s, f), tail);
  Value low = fma(n, c(1.90821492927058770002e-10), c(0));
  Value result = fma(n, c(6.93147180369123816490e-01), sub(f, sub(correction, low)));
  Value infinity = c(std::numeric_limits<double>::infinity());
  result = select(equal(x, infinity), infinity, result);
  result = select(equal(x, c(0)), c(-std::numeric_limits<double>::infinity()), result);
  Value invalid = arith::CmpFOp::create(b, arith::CmpFPredicate::ULT, x, c(0));
  return select(invalid, c(std::numeric_limits<double>::quiet_NaN()), result);
}

/// Kahan's: exact where exp rounds.
Value Arithmetic::expm1(Value x) {
  Value u = exp(x), shifted = sub(u, c(1));
  Value result = div(mul(shifted, x), log(u));
  result = select(equal(u, c(1)), x, result);
  result = select(equal(shifted, c(-1)), c(-1), result);
  return select(equal(u, c(std::numeric_limits<double>::infinity())), u, result);
}

Value Arithmetic::log1p(Value x) {
  Value u = add(x, c(1));
  Value logU = log(u);
  Value result = sub(logU, div(sub(sub(u, c(1)), x), u));
  result = select(equal(u, c(0)), logU, result);
  return select(equal(u, c(std::numeric_limits<double>::infinity())), u, result);
}

Value Arithmetic::tanh(Value x) {
  // Cephes: a rational near 0, exp elsewhere.
  Value z = mul(x, x);
  Value p = polynomial(z, {-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3});
  Value q = polynomial(z, {1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3});
  Value near = fma(mul(x, z), div(p, q), x);
  Value magnitude = abs(x);
  Value far = sub(c(1), div(c(2), add(exp(add(magnitude, magnitude)), c(1))));
  return select(less(magnitude, c(0.625)), near, copySign(far, x));
}

Value Arithmetic::erf(Value x) {
  // Cephes ndtr: a rational up to 1, exp(-x^2) times a rational above.
  Value z = mul(x, x);
  Value t = polynomial(z, {9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                           7.00332514112805075473e3, 5.55923013010394962768e4});
  Value u = polynomial(z, {1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
                           2.26290000613890934246e4, 4.92673942608635921086e4});
  Value near = mul(x, div(t, u));
  Value magnitude = abs(x);
  Value a = select(less(magnitude, c(6)), magnitude, c(6));
  Value p = polynomial(a, {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                           4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
                           9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2});
  Value q = polynomial(a, {1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
                           9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
                           1.65666309194161350182e3, 5.57535340817727675546e2});
  Value far = sub(c(1), div(mul(exp(sub(c(0), mul(a, a))), p), q));
  Value result = select(less(magnitude, c(1)), near, copySign(far, x));
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  return select(isNaN, x, result);
}

/// exp(y log |x|), with the sign of odd integer powers of negative numbers.
Value Arithmetic::pow(Value x, Value y) {
  Value result = exp(mul(y, log(abs(x))));
  Value truncated = math::TruncOp::create(b, y);
  Value isInteger = equal(truncated, y);
  Value halved = mul(y, c(0.5));
  Value isEven = equal(math::TruncOp::create(b, halved), halved);
  Value nan = c(std::numeric_limits<double>::quiet_NaN());
  Value negated = select(isEven, result, sub(c(0), result));
  result = select(less(x, c(0)), select(isInteger, negated, nan), result);
  result = select(equal(x, c(1)), c(1), result);
  return select(equal(y, c(0)), c(1), result);
}

/// x - trunc(x / y) y, as fmod; exact while the quotient is below 2^53. For f64.
Value Arithmetic::remainder(Value x, Value y) {
  Value quotient = math::TruncOp::create(b, div(x, y));
  Value r = fma(sub(c(0), quotient), y, x);
  // The quotient may have been rounded across an integer.
  Value step = copySign(abs(y), x);
  Value tooFar = less(mul(r, step), c(0));
  r = select(tooFar, add(r, step), r);
  Value tooShort = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, abs(r), abs(y));
  r = select(tooShort, sub(r, step), r);
  // A finite number modulo infinity is itself.
  r = select(equal(abs(y), c(std::numeric_limits<double>::infinity())), x, r);
  return copySign(r, x);
}

/// Our expansion of `op`, or null.
static Value expand(ImplicitLocOpBuilder &b, Operation &op) {
  Type type = op.getResult(0).getType();
  Type element = getElementTypeOrSelf(type);
  Value x = op.getOperand(0);
  if (isa<math::PowFOp, arith::RemFOp>(op) && element.isF32()) {
    // In f64, where the product y log(x) and the quotient have bits to spare.
    Type wide = b.getF64Type();
    if (auto vector = dyn_cast<VectorType>(type))
      wide = VectorType::get(vector.getShape(), wide);
    Arithmetic m(b, wide);
    Value wideX = arith::ExtFOp::create(b, wide, x), wideY = arith::ExtFOp::create(b, wide, op.getOperand(1));
    Value result = isa<math::PowFOp>(op) ? m.pow(wideX, wideY) : m.remainder(wideX, wideY);
    return arith::TruncFOp::create(b, type, result);
  }
  Arithmetic m(b, type);
  if (isa<math::RsqrtOp>(op))
    return m.div(m.c(1), m.sqrt(x));
  if (isa<math::ExpOp>(op))
    return m.exp(x);
  if (isa<math::Exp2Op>(op))
    return m.exp2(x);
  if (!element.isF64())
    return {};
  if (isa<math::LogOp>(op))
    return m.log(x);
  if (isa<math::Log2Op>(op))
    return m.mul(m.log(x), m.c(1.4426950408889634));
  if (isa<math::Log10Op>(op))
    return m.mul(m.log(x), m.c(0.4342944819032518));
  if (isa<math::ExpM1Op>(op))
    return m.expm1(x);
  if (isa<math::Log1pOp>(op))
    return m.log1p(x);
  if (isa<math::TanhOp>(op))
    return m.tanh(x);
  if (isa<math::ErfOp>(op))
    return m.erf(x);
  if (isa<math::PowFOp>(op))
    return m.pow(x, op.getOperand(1));
  if (isa<arith::RemFOp>(op))
    return m.remainder(x, op.getOperand(1));
  return {};
}

/// Whether LLVM would call a library for `op`. Of arith, that is only the remainder.
static bool needsExpansion(Operation &op) {
  if (isa<arith::RemFOp>(op))
    return true;
  if (!isa_and_present<math::MathDialect>(op.getDialect()))
    return false;
  return !isa<math::FmaOp, math::AbsFOp, math::AbsIOp, math::SqrtOp, math::CopySignOp, math::FloorOp, math::CeilOp,
              math::TruncOp, math::RoundEvenOp, math::RoundOp, math::IsNaNOp, math::IsInfOp, math::IsFiniteOp,
              math::CountLeadingZerosOp, math::CountTrailingZerosOp, math::CtPopOp>(op);
}

LogicalResult expandMath(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (needsExpansion(*op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    if (!element.isF32() && !element.isF64())
      return op->emitError("no code generation for ") << op->getName() << " on " << element;
    if (Value expanded = expand(b, *op)) {
      op->getResult(0).replaceAllUsesWith(expanded);
      op->erase();
    }
  }
  RewritePatternSet patterns(module.getContext());
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef) { return true; });
  if (failed(applyPatternsGreedily(module, std::move(patterns))))
    return module.emitError("expansion of math ops does not end");
  LogicalResult result = success();
  module.walk([&](Operation *op) {
    if (needsExpansion(*op))
      result = op->emitError("no code generation for ")
               << op->getName() << " on " << getElementTypeOrSelf(op->getResult(0).getType());
  });
  return result;
}

} // namespace spmd::kernel
