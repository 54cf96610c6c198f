//===- ExpandTrigonometry.cpp - circular and hyperbolic functions ---------===//
//
// In f64 only; f32 is computed in f64 and rounded.
//
//===----------------------------------------------------------------------===//

#include "MathArithmetic.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace spmd::kernel {

/// x = n pi / 2 + r, |r| <= pi / 4 (Cody and Waite). The first multiply-add is exact: the difference is below 1 and a
/// multiple of 2^-53. In f64 up to |n| = 2^30; for f32 up to |x| = 2^50, where n is still off by less than a quarter.
/// Beyond, where neighbouring numbers are turns apart, r counts as 0: bounded, but no sine. Which of sine and cosine of
/// r it is, and its sign, follow from n modulo 4. Polynomials of fdlibm.
Value Arithmetic::circular(Value x, bool isCosine) {
  Value n = math::RoundEvenOp::create(b, mul(x, c(M_2_PI)));
  Value minus = sub(c(0), n);
  Value r = fma(minus, c(1.5707963267948966), x);
  r = fma(minus, c(6.123233995736766e-17), r);
  r = select(less(c(1), abs(r)), c(0), r);
  Value z = mul(r, r);
  Value sine = polynomial(z, {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                              -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01});
  sine = fma(mul(r, z), sine, r);
  Value cosine = polynomial(z, {-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                                2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02});
  cosine = fma(mul(z, z), cosine, fma(z, c(-0.5), c(1)));
  Value quadrant = isCosine ? add(n, c(1)) : n;
  Value half = mul(quadrant, c(0.5)), quarter = mul(quadrant, c(0.25));
  Value isEven = equal(math::FloorOp::create(b, half), half);
  // The second half of a turn.
  Value isNegative = less(c(0.25), sub(quarter, math::FloorOp::create(b, quarter)));
  Value result = select(isEven, sine, cosine);
  return select(isNegative, sub(c(0), result), result);
}

/// Minus zero stays what it is.
Value Arithmetic::sin(Value x) { return select(equal(x, c(0)), x, circular(x, /*isCosine=*/false)); }
Value Arithmetic::cos(Value x) { return circular(x, /*isCosine=*/true); }

/// Cephes: moved to |t| <= 0.66 by pi / 2 and pi / 4, then a rational.
Value Arithmetic::atan(Value x) {
  Value a = abs(x), isLarge = less(c(2.41421356237309504880), a), isSmall = less(a, c(0.66));
  Value middle = div(sub(a, c(1)), add(a, c(1)));
  Value t = select(isLarge, div(c(-1), a), select(isSmall, a, middle));
  Value start = select(isLarge, c(M_PI_2), select(isSmall, c(0), c(M_PI_4)));
  Value rest = select(isLarge, c(6.123233995736765886130e-17), select(isSmall, c(0), c(3.061616997868382943065e-17)));
  Value z = mul(t, t);
  Value p = polynomial(z, {-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                           -1.228866684490136173410e2, -6.485021904942025371773e1});
  Value q = polynomial(z, {1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
                           4.853903996359136964868e2, 1.945506571482613964425e2});
  Value angle = add(start, add(fma(mul(t, z), div(p, q), t), rest));
  return copySign(angle, x);
}

Value Arithmetic::asin(Value x) { return atan(div(x, sqrt(mul(sub(c(1), x), add(c(1), x))))); }

Value Arithmetic::acos(Value x) { return mul(c(2), atan(sqrt(div(sub(c(1), x), add(c(1), x))))); }

Value Arithmetic::atan2(Value y, Value x) {
  Value a = abs(y), d = abs(x), isSteep = less(d, a);
  Value low = select(isSteep, d, a), high = select(isSteep, a, d);
  Value ratio = div(low, high);
  ratio = select(equal(high, c(0)), c(0), ratio);
  ratio = select(equal(low, c(std::numeric_limits<double>::infinity())), c(1), ratio);
  Value angle = atan(ratio);
  angle = select(isSteep, sub(c(M_PI_2), angle), angle);
  // Also of minus zero.
  Value isLeft = less(copySign(c(1), x), c(0));
  angle = copySign(select(isLeft, sub(c(M_PI), angle), angle), y);
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, y);
  return select(isNaN, c(std::numeric_limits<double>::quiet_NaN()), angle);
}

Value Arithmetic::sinh(Value x) {
  Value u = expm1(abs(x));
  Value result = mul(c(0.5), add(u, div(u, add(u, c(1)))));
  result = select(equal(u, c(std::numeric_limits<double>::infinity())), u, result);
  return copySign(result, x);
}

Value Arithmetic::cosh(Value x) {
  Value e = exp(abs(x));
  return mul(c(0.5), add(e, div(c(1), e)));
}

/// log(a + sqrt(a^2 + 1)) with what is small kept apart; the square would overflow where it is 2 a.
Value Arithmetic::asinh(Value x) {
  Value a = abs(x), square = mul(a, a);
  Value near = log1p(add(a, div(square, add(c(1), sqrt(add(square, c(1)))))));
  Value far = add(log(a), c(M_LN2));
  return copySign(select(less(c(1e9), a), far, near), x);
}

Value Arithmetic::acosh(Value x) {
  Value t = sub(x, c(1));
  Value near = log1p(add(t, sqrt(mul(t, add(t, c(2))))));
  Value far = add(log(x), c(M_LN2));
  Value result = select(less(c(1e9), x), far, near);
  return select(less(x, c(1)), c(std::numeric_limits<double>::quiet_NaN()), result);
}

Value Arithmetic::atanh(Value x) {
  Value a = abs(x);
  Value result = mul(c(0.5), log1p(div(add(a, a), sub(c(1), a))));
  return copySign(result, x);
}

} // namespace spmd::kernel
