//===- MathArithmetic.h - elementary functions as arithmetic ----*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_MATHARITHMETIC_H
#define SPMD_LIB_KERNELS_MATHARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace spmd::kernel {

/// Arithmetic on values of one floating-point type (f32, f64 or a vector of them).
class Arithmetic {
public:
  Arithmetic(mlir::ImplicitLocOpBuilder &b, mlir::Type type)
      : b(b), type(type), bits(getElementTypeOrSelf(type).getIntOrFloatBitWidth()) {
    mlir::Type integer = b.getIntegerType(bits);
    auto vector = mlir::dyn_cast<mlir::VectorType>(type);
    intType = vector ? mlir::Type(mlir::VectorType::get(vector.getShape(), integer)) : integer;
  }

  bool isF64() const { return bits == 64; }
  mlir::Value c(double value) { return splat(type, b.getFloatAttr(getElementTypeOrSelf(type), value)); }
  mlir::Value ci(int64_t value) { return splat(intType, b.getIntegerAttr(getElementTypeOrSelf(intType), value)); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return mlir::arith::AddFOp::create(b, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return mlir::arith::SubFOp::create(b, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return mlir::arith::MulFOp::create(b, x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return mlir::arith::DivFOp::create(b, x, y); }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) { return mlir::math::FmaOp::create(b, x, y, z); }
  mlir::Value abs(mlir::Value x) { return mlir::math::AbsFOp::create(b, x); }
  mlir::Value sqrt(mlir::Value x) { return mlir::math::SqrtOp::create(b, x); }
  mlir::Value copySign(mlir::Value x, mlir::Value sign) { return mlir::math::CopySignOp::create(b, x, sign); }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OLT, x, y);
  }
  mlir::Value equal(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OEQ, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, condition, x, y);
  }
  mlir::Value toBits(mlir::Value x) { return mlir::arith::BitcastOp::create(b, intType, x); }
  mlir::Value fromBits(mlir::Value x) { return mlir::arith::BitcastOp::create(b, type, x); }

  /// Coefficients from the highest power down.
  mlir::Value polynomial(mlir::Value x, mlir::ArrayRef<double> coefficients) {
    mlir::Value sum = c(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, c(coefficient));
    return sum;
  }

  /// `isAddend`: the result is only added to numbers of at least 2^-60.
  mlir::Value exp(mlir::Value x, bool isAddend = false) { return power(x, /*isBase2=*/false, isAddend); }
  mlir::Value exp2(mlir::Value x, bool isAddend = false) { return power(x, /*isBase2=*/true, isAddend); }
  mlir::Value log(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value pow(mlir::Value x, mlir::Value y);
  mlir::Value erfc(mlir::Value x);
  // Trigonometric and hyperbolic functions, for f64 (ExpandTrigonometry.cpp).
  mlir::Value sin(mlir::Value x);
  mlir::Value cos(mlir::Value x);
  mlir::Value tan(mlir::Value x) { return div(sin(x), cos(x)); }
  mlir::Value asin(mlir::Value x);
  mlir::Value acos(mlir::Value x);
  mlir::Value atan(mlir::Value x);
  mlir::Value atan2(mlir::Value y, mlir::Value x);
  mlir::Value sinh(mlir::Value x);
  mlir::Value cosh(mlir::Value x);
  mlir::Value asinh(mlir::Value x);
  mlir::Value acosh(mlir::Value x);
  mlir::Value atanh(mlir::Value x);
  mlir::Value remainder(mlir::Value x, mlir::Value y);

private:
  mlir::Value power(mlir::Value x, bool isBase2, bool isAddend);
  mlir::Value circular(mlir::Value x, bool isCosine);
  mlir::Value splat(mlir::Type to, mlir::TypedAttr value) {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(to))
      return mlir::arith::ConstantOp::create(b, mlir::DenseElementsAttr::get(vector, mlir::Attribute(value)));
    return mlir::arith::ConstantOp::create(b, value);
  }

  mlir::ImplicitLocOpBuilder &b;
  mlir::Type type, intType;
  unsigned bits;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_MATHARITHMETIC_H
