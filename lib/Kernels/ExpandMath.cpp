//===- ExpandMath.cpp - math ops without a library ------------------------===//
//
// exp, and everything in f64, is ours; what else f32 needs is MLIR's polynomial approximations. Multiply-adds are
// math.fma where written so, never where the compiler likes.
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"
#include "MathArithmetic.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::kernel {
/// x = n ln 2 + r, |r| <= ln 2 / 2; exp(x) = 2^n exp(r). exp2(x) is the same with x = n + r / ln 2; in f32, ln 2 is in
/// the coefficients.
///
/// 2^n is the product of two powers of two that are normal numbers, from which results below the normal range come
/// rounded, and those above it infinite. `isAddend` says that the result is only added to numbers of 2^-60 and more:
/// then n is added to the exponent's bits, and what is below 2^-100 need not be exact, which saves two operations
/// and gives the same sums.
Value Arithmetic::power(Value x, bool isBase2, bool isAddend) {
  // Bounds beyond which the result is 0, or not seen, or infinite. Not-a-number is within.
  double low = isF64() ? -746 : -104, high = isF64() ? 710 : 89;
  if (isBase2) {
    low = isF64() ? -1076 : -151;
    high = isF64() ? 1025 : 129;
  }
  Value given = x;
  if (isAddend)
    low = isBase2 ? (isF64() ? -1000 : -115) : (isF64() ? -700 : -80);
  x = select(less(x, c(low)), c(low), x);
  if (!isAddend)
    x = select(less(c(high), x), c(high), x);
  // Adding 1.5 * 2^mantissa rounds to an integer, which is then in the low bits: n, and both powers' exponent bias.
  int64_t mantissa = isF64() ? 52 : 23;
  double bias = isAddend ? 0 : isF64() ? 2 * 1023 : 2 * 127;
  Value magic = c((isF64() ? 6755399441055744.0 : 12582912.0) + bias);
  Value shifted = isBase2 ? add(x, magic) : fma(x, c(1.4426950408889634), magic);
  Value n = sub(shifted, magic);
  Value r;
  if (isBase2) {
    r = sub(x, n);
    if (isF64())
      r = mul(r, c(0.6931471805599453));
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
  } else if (isBase2) {
    // Least maximum of the relative error for |r| <= 1/2, with 1 and the ln 2 of f32 given: 3.0e-9.
    coefficients = {
        1.5326467110e-4, 1.3390807435e-3, 9.6185058355e-3, 5.5503599346e-2, 2.4022647738e-1, 0.6931471824646, 1.0};
  } else {
    // Least maximum of the relative error for |r| <= ln 2 / 2, with 1 + r exact: 3.1e-9.
    coefficients = {1.3814540105e-3, 8.3687451955e-3, 4.1668390791e-2, 1.6666520398e-1, 4.9999993432e-1, 1.0, 1.0};
  }
  Value p = polynomial(r, coefficients);
  // The magic number's own bits are shifted out.
  if (isAddend) {
    Value exponent = arith::ShLIOp::create(b, toBits(shifted), ci(mantissa));
    Value scaled = fromBits(arith::AddIOp::create(b, toBits(p), exponent));
    // The largest number with a finite result. Also true for not-a-number.
    double last = isF64() ? 709.78271289338397 : 88.72283;
    if (isBase2)
      last = isF64() ? 1023.9999999999999 : 127.99999237060547;
    Value isTooHigh = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, given, c(last));
    return select(isTooHigh, add(given, c(std::numeric_limits<double>::infinity())), scaled);
  }
  Value sum = toBits(shifted), half = arith::ShRUIOp::create(b, sum, ci(1));
  auto powerOfTwo = [&](Value biased) { return fromBits(arith::ShLIOp::create(b, biased, ci(mantissa))); };
  return mul(mul(p, powerOfTwo(half)), powerOfTwo(arith::SubIOp::create(b, sum, half)));
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
  result = select(equal(u, c(1)), x, result); // also minus zero
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
  return copySign(select(less(magnitude, c(0.625)), near, far), x);
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

/// Cephes: 1 - erf up to 1, exp(-x^2) times a rational above.
Value Arithmetic::erfc(Value x) {
  Value a = abs(x), gauss = exp(sub(c(0), mul(x, x)));
  Value p = polynomial(a, {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                           4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
                           9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2});
  Value q = polynomial(a, {1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
                           9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
                           1.65666309194161350182e3, 5.57535340817727675546e2});
  Value r = polynomial(a, {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                           6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0});
  Value s = polynomial(a, {1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1,
                           1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0});
  Value far = mul(gauss, select(less(a, c(8)), div(p, q), div(r, s)));
  // Beyond, the quotients are of infinities, and the Gaussian is zero.
  far = select(less(c(28), a), c(0), far);
  far = select(less(x, c(0)), sub(c(2), far), far);
  Value result = select(less(a, c(1)), sub(c(1), erf(x)), far);
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  return select(isNaN, x, result);
}

/// exp(y log |x|), with the sign of odd integer powers of negative numbers, minus zero among them.
Value Arithmetic::pow(Value x, Value y) {
  Value result = exp(mul(y, log(abs(x))));
  Value truncated = math::TruncOp::create(b, y);
  Value isInteger = equal(truncated, y);
  Value halved = mul(y, c(0.5));
  Value isEven = equal(math::TruncOp::create(b, halved), halved);
  Value nan = c(std::numeric_limits<double>::quiet_NaN());
  Value ofInteger = select(isEven, result, copySign(result, x));
  result = select(isInteger, ofInteger, select(less(x, c(0)), nan, result));
  result = select(equal(x, c(1)), c(1), result);
  return select(equal(y, c(0)), c(1), result);
}

/// x - trunc(x / y) y, as fmod; exact while the quotient is below 2^53. For f64.
Value Arithmetic::remainder(Value x, Value y) {
  Value quotient = math::TruncOp::create(b, div(x, y));
  Value r = fma(sub(c(0), quotient), y, x);
  // The quotient may have been rounded across an integer.
  Value step = copySign(abs(y), x);
  Value tooFar = less(mul(r, copySign(c(1), x)), c(0));
  r = select(tooFar, add(r, step), r);
  Value tooShort = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, abs(r), abs(y));
  r = select(tooShort, sub(r, step), r);
  // A finite number modulo infinity is itself.
  r = select(equal(abs(y), c(std::numeric_limits<double>::infinity())), x, r);
  return copySign(r, x);
}

/// Whether f32 is computed in f64, where quotients, products and arguments have bits to spare.
static bool isComputedWide(Operation &op) {
  return isa<math::PowFOp, arith::RemFOp, math::Log10Op, math::ErfcOp, math::SinOp, math::CosOp, math::TanOp,
             math::AsinOp, math::AcosOp, math::AtanOp, math::Atan2Op, math::SinhOp, math::CoshOp, math::AsinhOp,
             math::AcoshOp, math::AtanhOp>(op);
}

/// MLIR's approximations take subnormals for the smallest normal number, so they are scaled. For f32.
template <typename LogOp>
static Value scaledLog(Arithmetic &m, ImplicitLocOpBuilder &b, Value x, double logOfTwo) {
  Value tiny = m.less(x, m.c(1.1754943508222875e-38));
  Value log = LogOp::create(b, m.select(tiny, m.mul(x, m.c(33554432.0)), x));
  return m.select(tiny, m.sub(log, m.c(25 * logOfTwo)), log);
}

/// Whether all that becomes of `value` is a sum with a constant of at least 2^-60, as in 1 + exp(x).
static bool isAddend(Value value) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    auto sum = dyn_cast<arith::AddFOp>(user);
    APFloat constant(0.0);
    return sum && matchPattern(sum.getLhs() == value ? sum.getRhs() : sum.getLhs(), m_ConstantFloat(&constant)) &&
           constant.isFinite() && !constant.isZero() && ilogb(constant) >= -60;
  });
}

/// Our expansion of `op` on operands of the arithmetic's type, or null.
static Value expand(Arithmetic &m, Operation &op, ValueRange x) {
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case([&](math::RsqrtOp) { return m.div(m.c(1), m.sqrt(x[0])); })
      .Case([&](math::ExpOp) { return m.exp(x[0], isAddend(op.getResult(0))); })
      .Case([&](math::Exp2Op) { return m.exp2(x[0], isAddend(op.getResult(0))); })
      .Default([&](Operation *) -> Value {
        if (!m.isF64())
          return {};
        return llvm::TypeSwitch<Operation *, Value>(&op)
            .Case([&](math::LogOp) { return m.log(x[0]); })
            .Case([&](math::Log2Op) { return m.mul(m.log(x[0]), m.c(1.4426950408889634)); })
            .Case([&](math::Log10Op) { return m.mul(m.log(x[0]), m.c(0.4342944819032518)); })
            .Case([&](math::ExpM1Op) { return m.expm1(x[0]); })
            .Case([&](math::Log1pOp) { return m.log1p(x[0]); })
            .Case([&](math::ErfOp) { return m.erf(x[0]); })
            .Case([&](math::ErfcOp) { return m.erfc(x[0]); })
            .Case([&](math::SinOp) { return m.sin(x[0]); })
            .Case([&](math::CosOp) { return m.cos(x[0]); })
            .Case([&](math::TanOp) { return m.tan(x[0]); })
            .Case([&](math::AsinOp) { return m.asin(x[0]); })
            .Case([&](math::AcosOp) { return m.acos(x[0]); })
            .Case([&](math::AtanOp) { return m.atan(x[0]); })
            .Case([&](math::Atan2Op) { return m.atan2(x[0], x[1]); })
            .Case([&](math::SinhOp) { return m.sinh(x[0]); })
            .Case([&](math::CoshOp) { return m.cosh(x[0]); })
            .Case([&](math::TanhOp) { return m.tanh(x[0]); })
            .Case([&](math::AsinhOp) { return m.asinh(x[0]); })
            .Case([&](math::AcoshOp) { return m.acosh(x[0]); })
            .Case([&](math::AtanhOp) { return m.atanh(x[0]); })
            .Case([&](math::PowFOp) { return m.pow(x[0], x[1]); })
            .Case([&](arith::RemFOp) { return m.remainder(x[0], x[1]); })
            .Default([](Operation *) { return Value(); });
      });
}

/// Our expansion of `op`, or null.
static Value expand(ImplicitLocOpBuilder &b, Operation &op) {
  Type type = op.getResult(0).getType();
  if (!getElementTypeOrSelf(type).isF32() || !isComputedWide(op)) {
    Arithmetic m(b, type);
    if (isa<math::LogOp>(op) && !m.isF64())
      return scaledLog<math::LogOp>(m, b, op.getOperand(0), 0.6931471805599453);
    if (isa<math::Log2Op>(op) && !m.isF64())
      return scaledLog<math::Log2Op>(m, b, op.getOperand(0), 1);
    // MLIR's approximation of minus zero is zero.
    if (isa<math::ErfOp>(op) && !m.isF64())
      return m.copySign(math::ErfOp::create(b, op.getOperand(0)), op.getOperand(0));
    return expand(m, op, op.getOperands());
  }
  Type wide = b.getF64Type();
  if (auto vector = dyn_cast<VectorType>(type))
    wide = VectorType::get(vector.getShape(), wide);
  Arithmetic m(b, wide);
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(arith::ExtFOp::create(b, wide, operand));
  return arith::TruncFOp::create(b, type, expand(m, op, operands));
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
