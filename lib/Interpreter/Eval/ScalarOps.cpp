//===- ScalarOps.cpp - what an op of arith or math computes ---------------===//

#include "ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace spmd::interp {

using Operands = ArrayRef<const TypedLanes *>;

int64_t wrapTo(Type type, int64_t value) {
  if (isa<IndexType>(type))
    return value;
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  return width >= 64 ? value : static_cast<int64_t>(uint64_t(value) << (64 - width)) >> (64 - width);
}

namespace {

/// A lane of a value that may be the same everywhere.
double real(const TypedLanes &lanes, size_t i) { return lanes.reals[lanes.reals.size() == 1 ? 0 : i]; }
int64_t integer(const TypedLanes &lanes, size_t i) { return lanes.integers[lanes.integers.size() == 1 ? 0 : i]; }

/// out[i] = f(in[i]...): a loop for each function, which is inlined in it.
template <typename T, typename R, typename F>
bool mapLanes(const std::vector<T> &x, std::vector<R> &out, F f) {
  size_t step = x.size() == 1 ? 0 : 1;
  for (size_t i = 0, e = out.size(); i < e; ++i)
    out[i] = f(x[i * step]);
  return true;
}
template <typename T, typename R, typename F>
bool mapLanes(const std::vector<T> &x, const std::vector<T> &y, std::vector<R> &out, F f) {
  size_t xStep = x.size() == 1 ? 0 : 1, yStep = y.size() == 1 ? 0 : 1;
  for (size_t i = 0, e = out.size(); i < e; ++i)
    out[i] = f(x[i * xStep], y[i * yStep]);
  return true;
}

/// arith.maximumf and arith.minimumf: not-a-number comes out, and -0 is less than 0.
double maximum(double a, double b) {
  if (a == b)
    return std::signbit(a) ? b : a;
  return std::isnan(a) || a > b ? a : b;
}
double minimum(double a, double b) {
  if (a == b)
    return std::signbit(a) ? a : b;
  return std::isnan(a) || a < b ? a : b;
}

/// A function of one float. False: the op is none, as in what follows.
bool evaluateUnary(Operation &op, Operands operands, TypedLanes &result) {
  auto map = [&](auto f) { return mapLanes(operands[0]->reals, result.reals, f); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return map([](double x) { return x; }); })
      .Case([&](arith::NegFOp) { return map([](double x) { return -x; }); })
      .Case([&](math::AbsFOp) { return map([](double x) { return std::fabs(x); }); })
      .Case([&](math::FloorOp) { return map([](double x) { return std::floor(x); }); })
      .Case([&](math::CeilOp) { return map([](double x) { return std::ceil(x); }); })
      .Case([&](math::TruncOp) { return map([](double x) { return std::trunc(x); }); })
      .Case([&](math::RoundEvenOp) { return map([](double x) { return std::nearbyint(x); }); })
      .Case([&](math::ExpOp) { return map([](double x) { return std::exp(x); }); })
      .Case([&](math::Exp2Op) { return map([](double x) { return std::exp2(x); }); })
      .Case([&](math::ExpM1Op) { return map([](double x) { return std::expm1(x); }); })
      .Case([&](math::LogOp) { return map([](double x) { return std::log(x); }); })
      .Case([&](math::Log2Op) { return map([](double x) { return std::log2(x); }); })
      .Case([&](math::Log10Op) { return map([](double x) { return std::log10(x); }); })
      .Case([&](math::Log1pOp) { return map([](double x) { return std::log1p(x); }); })
      .Case([&](math::SqrtOp) { return map([](double x) { return std::sqrt(x); }); })
      .Case([&](math::SinOp) { return map([](double x) { return std::sin(x); }); })
      .Case([&](math::CosOp) { return map([](double x) { return std::cos(x); }); })
      .Case([&](math::TanOp) { return map([](double x) { return std::tan(x); }); })
      .Case([&](math::AsinOp) { return map([](double x) { return std::asin(x); }); })
      .Case([&](math::AcosOp) { return map([](double x) { return std::acos(x); }); })
      .Case([&](math::AtanOp) { return map([](double x) { return std::atan(x); }); })
      .Case([&](math::SinhOp) { return map([](double x) { return std::sinh(x); }); })
      .Case([&](math::CoshOp) { return map([](double x) { return std::cosh(x); }); })
      .Case([&](math::TanhOp) { return map([](double x) { return std::tanh(x); }); })
      .Case([&](math::AsinhOp) { return map([](double x) { return std::asinh(x); }); })
      .Case([&](math::AcoshOp) { return map([](double x) { return std::acosh(x); }); })
      .Case([&](math::AtanhOp) { return map([](double x) { return std::atanh(x); }); })
      .Case([&](math::ErfOp) { return map([](double x) { return std::erf(x); }); })
      .Case([&](math::ErfcOp) { return map([](double x) { return std::erfc(x); }); })
      .Default(false);
}

/// A function of two floats.
bool evaluateBinary(Operation &op, Operands operands, TypedLanes &result) {
  auto map = [&](auto f) { return mapLanes(operands[0]->reals, operands[1]->reals, result.reals, f); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](arith::AddFOp) { return map([](double a, double b) { return a + b; }); })
      .Case([&](arith::SubFOp) { return map([](double a, double b) { return a - b; }); })
      .Case([&](arith::MulFOp) { return map([](double a, double b) { return a * b; }); })
      .Case([&](arith::DivFOp) { return map([](double a, double b) { return a / b; }); })
      .Case([&](arith::RemFOp) { return map([](double a, double b) { return std::fmod(a, b); }); })
      .Case([&](arith::MaximumFOp) { return map(maximum); })
      .Case([&](arith::MinimumFOp) { return map(minimum); })
      .Case([&](math::PowFOp) { return map([](double a, double b) { return std::pow(a, b); }); })
      .Case([&](math::Atan2Op) { return map([](double a, double b) { return std::atan2(a, b); }); })
      .Case([&](math::CopySignOp) { return map([](double a, double b) { return std::copysign(a, b); }); })
      .Default(false);
}

/// Wrap-around arithmetic, without what C++ leaves undefined.
int64_t wrapping(uint64_t value) { return static_cast<int64_t>(value); }

/// A function of two integers, before the result is wrapped to its width.
bool evaluateIntegerBinary(Operation &op, Operands operands, TypedLanes &result) {
  auto map = [&](auto f) { return mapLanes(operands[0]->integers, operands[1]->integers, result.integers, f); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case(
          [&](arith::AddIOp) { return map([](int64_t a, int64_t b) { return wrapping(uint64_t(a) + uint64_t(b)); }); })
      .Case(
          [&](arith::SubIOp) { return map([](int64_t a, int64_t b) { return wrapping(uint64_t(a) - uint64_t(b)); }); })
      .Case(
          [&](arith::MulIOp) { return map([](int64_t a, int64_t b) { return wrapping(uint64_t(a) * uint64_t(b)); }); })
      .Case([&](arith::DivSIOp) {
        return map([](int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrapping(-uint64_t(a)) : a / b; });
      })
      .Case([&](arith::RemSIOp) {
        return map([](int64_t a, int64_t b) -> int64_t { return b == 0 || b == -1 ? 0 : a % b; });
      })
      .Case([&](arith::MaxSIOp) { return map([](int64_t a, int64_t b) { return std::max(a, b); }); })
      .Case([&](arith::MinSIOp) { return map([](int64_t a, int64_t b) { return std::min(a, b); }); })
      .Case([&](arith::AndIOp) { return map([](int64_t a, int64_t b) { return a & b; }); })
      .Case([&](arith::OrIOp) { return map([](int64_t a, int64_t b) { return a | b; }); })
      .Case([&](arith::XOrIOp) { return map([](int64_t a, int64_t b) { return a ^ b; }); })
      .Case([&](arith::ShLIOp) { return map([](int64_t a, int64_t b) { return wrapping(uint64_t(a) << (b & 63)); }); })
      .Case([&](arith::ShRSIOp) { return map([](int64_t a, int64_t b) { return a >> (b & 63); }); })
      .Default(false);
}

/// Of floats: every comparison but `une` and `uno` is false of not-a-number.
bool evaluateCompare(arith::CmpFOp op, Operands operands, TypedLanes &result) {
  auto map = [&](auto f) { return mapLanes(operands[0]->reals, operands[1]->reals, result.integers, f); };
  switch (op.getPredicate()) {
  case arith::CmpFPredicate::OEQ:
    return map([](double a, double b) { return a == b; });
  case arith::CmpFPredicate::UNE:
    return map([](double a, double b) { return a != b; });
  case arith::CmpFPredicate::OLT:
    return map([](double a, double b) { return a < b; });
  case arith::CmpFPredicate::OLE:
    return map([](double a, double b) { return a <= b; });
  case arith::CmpFPredicate::OGT:
    return map([](double a, double b) { return a > b; });
  case arith::CmpFPredicate::OGE:
    return map([](double a, double b) { return a >= b; });
  case arith::CmpFPredicate::UNO:
    return map([](double a, double b) { return std::isnan(a) || std::isnan(b); });
  default:
    return false;
  }
}

/// Of integers; unsigned comparisons are of truth values.
bool evaluateCompare(arith::CmpIOp op, Operands operands, TypedLanes &result) {
  auto map = [&](auto f) { return mapLanes(operands[0]->integers, operands[1]->integers, result.integers, f); };
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return map([](int64_t a, int64_t b) { return a == b; });
  case arith::CmpIPredicate::ne:
    return map([](int64_t a, int64_t b) { return a != b; });
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return map([](int64_t a, int64_t b) { return a < b; });
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return map([](int64_t a, int64_t b) { return a <= b; });
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return map([](int64_t a, int64_t b) { return a > b; });
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return map([](int64_t a, int64_t b) { return a >= b; });
  }
  return false;
}

/// A float as an integer: to zero; what does not fit is the smallest, as x86 has it.
int64_t truncateToInteger(double value) {
  bool fits = value >= -0x1p63 && value < 0x1p63;
  return fits ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}

TypedLanes constantOf(arith::ConstantOp op) {
  TypedLanes lanes;
  if (auto number = dyn_cast<FloatAttr>(op.getValue())) {
    lanes.reals = {number.getValueAsDouble()};
    return lanes;
  }
  APInt value = cast<IntegerAttr>(op.getValue()).getValue();
  lanes.isInteger = true;
  lanes.integers = {value.getBitWidth() == 1 ? int64_t(value.getZExtValue()) : value.getSExtValue()};
  return lanes;
}

/// Lane i: the bits of a number as a number of another type. A float of 16 or 32 bits is here as a double of its value.
void bitcast(Operation &op, const TypedLanes &operand, TypedLanes &result, size_t i) {
  auto semanticsOf = [](Type type) -> const llvm::fltSemantics & { return cast<FloatType>(type).getFloatSemantics(); };
  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  bool losesInfo = false;
  APInt bits(from.getIntOrFloatBitWidth(), 0);
  if (operand.isInteger) {
    bits = APInt(bits.getBitWidth(), uint64_t(integer(operand, i)), /*isSigned=*/false, /*implicitTrunc=*/true);
  } else {
    APFloat number(real(operand, i));
    number.convert(semanticsOf(from), APFloat::rmNearestTiesToEven, &losesInfo);
    bits = number.bitcastToAPInt();
  }
  if (result.isInteger) {
    result.integers[i] = bits.getSExtValue();
    return;
  }
  APFloat number(semanticsOf(to), bits);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  result.reals[i] = number.convertToDouble();
}

/// One that changes the type of a number, or not.
bool evaluateConversion(Operation &op, Operands operands, TypedLanes &result) {
  if (operands.empty()) // an op of kernels, as `kernel.index`
    return false;
  const TypedLanes &x = *operands[0];
  auto toReals = [&](auto) { return mapLanes(x.integers, result.reals, [](int64_t a) { return double(a); }); };
  auto same = [&](auto) { return mapLanes(x.integers, result.integers, [](int64_t a) { return a; }); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case<arith::SIToFPOp, arith::UIToFPOp>(toReals)
      .Case([&](arith::FPToSIOp) { return mapLanes(x.reals, result.integers, truncateToInteger); })
      .Case([&](arith::BitcastOp) {
        for (size_t i = 0, e = result.size(); i < e; ++i)
          bitcast(op, x, result, i);
        return true;
      })
      .Case([&](arith::ExtUIOp) {
        uint64_t mask = llvm::maskTrailingOnes<uint64_t>(op.getOperand(0).getType().getIntOrFloatBitWidth());
        return mapLanes(x.integers, result.integers, [=](int64_t a) { return wrapping(uint64_t(a) & mask); });
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(same)
      .Case([&](math::AbsIOp) {
        return mapLanes(x.integers, result.integers, [](int64_t a) { return a < 0 ? wrapping(-uint64_t(a)) : a; });
      })
      .Default(false);
}

bool evaluateSelect(Operands operands, TypedLanes &result) {
  for (size_t i = 0, e = result.size(); i < e; ++i) {
    const TypedLanes &chosen = integer(*operands[0], i) != 0 ? *operands[1] : *operands[2];
    if (result.isInteger)
      result.integers[i] = integer(chosen, i);
    else
      result.reals[i] = real(chosen, i);
  }
  return true;
}

void wrapAll(Type type, std::vector<int64_t> &values) {
  if (isa<IndexType>(type) || type.getIntOrFloatBitWidth() >= 64)
    return;
  for (int64_t &value : values)
    value = wrapTo(type, value);
}

} // namespace

bool evaluateScalarOp(Operation &op, Operands operands, TypedLanes &result) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = constantOf(constant);
    return true;
  }
  bool isKnown = llvm::TypeSwitch<Operation *, bool>(&op)
                     .Case<arith::CmpFOp, arith::CmpIOp>([&](auto op) { return evaluateCompare(op, operands, result); })
                     .Case([&](arith::SelectOp) { return evaluateSelect(operands, result); })
                     .Default([&](Operation *) {
                       return evaluateUnary(op, operands, result) || evaluateBinary(op, operands, result) ||
                              evaluateIntegerBinary(op, operands, result) || evaluateConversion(op, operands, result);
                     });
  if (isKnown && result.isInteger)
    wrapAll(op.getResult(0).getType(), result.integers);
  return isKnown;
}

} // namespace spmd::interp
