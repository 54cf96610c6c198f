//===- ScalarBuilder.h - One element of an op, as arith and math -*- C++ -*-===//
//
// What the `body` of a pointwise op in the .td files is written with. A body is
// written once: the interpreter runs it, and every target makes its kernels of it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_SCALARBUILDER_H
#define SPMD_DIALECTS_ATEN_SCALARBUILDER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Operation.h"

namespace spmd::aten {

/// Converts a scalar as PyTorch does: to i1 by comparing with zero, floats to integers by truncation, to unsigned
/// integers modulo their range.
mlir::Value castScalar(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Type type);

/// The type that elements of `type` have in a body: a wider signed one for unsigned integers, of which it holds the
/// values alone, so that comparisons, quotients and conversions need not know where a number comes from.
mlir::Type getValueType(mlir::Type type);

/// The type an op computes in when its result is `type`: f32 for f16 and bf16, else that of the elements in a body.
mlir::Type getComputeType(mlir::Type type);

/// A PyTorch Scalar attribute (integer, float or bool) as a number.
double getScalarValue(mlir::Attribute attr);

/// The type that a body computes in, and that its operands are converted to.
enum class ComputeIn {
  result,   ///< the compute type of the result
  operands, ///< the type that PyTorch promotes the operands (and the Scalar `other`) to: comparisons
  none      ///< operands stay as they are; the builder's type is the result's
};
mlir::Type getBodyType(mlir::Operation *op, ComputeIn kind);

/// Arithmetic on values of one float or integer type, by name. Floats: not-a-number comes out where it goes in.
/// Truth values (i1): the sum, the maximum and the minimum are or, or, and.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::ImplicitLocOpBuilder &b, mlir::Type type) : b(b), type(getValueType(type)) {}

  mlir::Value constant(double value);
  /// A Scalar attribute: integers stay exact.
  mlir::Value constant(mlir::Attribute value);

  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Of integers: rounded to zero, and 0 by zero; modulo their range.
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value neg(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  mlir::Value square(mlir::Value x) { return mul(x, x); }
  /// alpha * x, without the product when alpha is one.
  mlir::Value scaled(mlir::Value x, mlir::Attribute alpha);
  /// value * alpha of two Scalars: as integers if this builder's type is one.
  mlir::Value scaledConstant(mlir::Attribute value, mlir::Attribute alpha);
  /// The larger and the smaller one, not-a-number where one is; x where they are equal, as -0 and 0 are.
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  /// x - trunc(x / y) y; of integers, 0 by zero.
  mlir::Value fmod(mlir::Value x, mlir::Value y);
  /// x - floor(x / y) y: the sign of y.
  mlir::Value remainder(mlir::Value x, mlir::Value y);
  /// floor(x / y), as Python's //.
  mlir::Value floorDiv(mlir::Value x, mlir::Value y);
  /// The sign of y on the magnitude of x.
  mlir::Value copySign(mlir::Value x, mlir::Value y);

  mlir::Value exp(mlir::Value x);
  mlir::Value exp2(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log2(mlir::Value x);
  mlir::Value log10(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value pow(mlir::Value x, mlir::Value y);
  mlir::Value sin(mlir::Value x);
  mlir::Value cos(mlir::Value x);
  mlir::Value tan(mlir::Value x);
  mlir::Value asin(mlir::Value x);
  mlir::Value acos(mlir::Value x);
  mlir::Value atan(mlir::Value x);
  mlir::Value atan2(mlir::Value y, mlir::Value x);
  mlir::Value sinh(mlir::Value x);
  mlir::Value cosh(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value asinh(mlir::Value x);
  mlir::Value acosh(mlir::Value x);
  mlir::Value atanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value erfc(mlir::Value x);
  mlir::Value sigmoid(mlir::Value x);

  // Rounding; integers stay what they are.
  mlir::Value floor(mlir::Value x);
  mlir::Value ceil(mlir::Value x);
  mlir::Value trunc(mlir::Value x);
  /// To the nearest integer, ties to even.
  mlir::Value round(mlir::Value x);

  // Truth values (i1).

  /// `predicate` is one of "eq", "ne", "lt", "le", "gt", "ge". Not-a-number is only `ne`.
  mlir::Value compare(llvm::StringRef predicate, mlir::Value x, mlir::Value y);
  mlir::Value compare(llvm::StringRef predicate, mlir::Value x, double y) { return compare(predicate, x, constant(y)); }
  mlir::Value isNan(mlir::Value x);
  // Of integers, which are never infinite: false.
  mlir::Value isInfinite(mlir::Value x);
  mlir::Value compareInfinity(mlir::Value x, double infinity);
  /// Of floats: the sign bit.
  mlir::Value isNegative(mlir::Value x);
  /// Whether x, of any type, is not zero.
  mlir::Value truth(mlir::Value x) { return castScalar(b, x, b.getI1Type()); }
  mlir::Value logicalNot(mlir::Value x);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  // Bits, of integers and truth values.
  mlir::Value bitAnd(mlir::Value x, mlir::Value y);
  mlir::Value bitOr(mlir::Value x, mlir::Value y);
  mlir::Value bitXor(mlir::Value x, mlir::Value y);
  mlir::Value bitNot(mlir::Value x);
  /// A shift by less than nothing or by the width or more moves everything out.
  mlir::Value shiftLeft(mlir::Value x, mlir::Value by);
  mlir::Value shiftRight(mlir::Value x, mlir::Value by);

  /// x as this builder's type.
  mlir::Value cast(mlir::Value x) { return castScalar(b, x, type); }

  mlir::ImplicitLocOpBuilder &b;
  mlir::Type type;

private:
  bool isFloat() const { return mlir::isa<mlir::FloatType>(type); }
  /// y, or 1 where it is 0 or -1: no division traps, that of the smallest integer neither.
  mlir::Value divisor(mlir::Value y);
};

/// What the generated code around a body needs: operands converted on the way in, the result on the way out.
struct ScalarBodyFrame {
  ScalarBodyFrame(mlir::Operation *op, mlir::ImplicitLocOpBuilder &b, mlir::ValueRange args, ComputeIn kind)
      : op(op), s(b, getBodyType(op, kind)), args(args), convert(kind != ComputeIn::none) {}

  /// The operand of a group of at most one; null when it is absent.
  mlir::Value operand(unsigned start, unsigned size) {
    if (size == 0)
      return {};
    return convert ? s.cast(args[start]) : args[start];
  }
  mlir::Value result(mlir::Value value);

  mlir::Operation *op;
  ScalarBuilder s;

private:
  mlir::ValueRange args;
  bool convert;
};

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_SCALARBUILDER_H
