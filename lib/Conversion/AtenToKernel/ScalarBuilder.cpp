//===- ScalarBuilder.cpp - scalar arithmetic by name ----------------------===//

#include "spmd/Conversion/AtenToKernel/ScalarBodies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace spmd::fusion {

Type getComputeType(Type type) {
  return type.isF16() || type.isBF16() ? Type(Float32Type::get(type.getContext())) : type;
}

double getScalarValue(Attribute attr) {
  if (auto boolean = dyn_cast<BoolAttr>(attr))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return static_cast<double>(integer.getInt());
  return cast<FloatAttr>(attr).getValueAsDouble();
}

Value castScalar(ImplicitLocOpBuilder &b, Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(type);
  if (type.isInteger(1)) {
    if (fromFloat) {
      Value zero = arith::ConstantOp::create(b, b.getFloatAttr(from, 0.0));
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, zero);
    }
    Value zero = arith::ConstantOp::create(b, b.getIntegerAttr(from, 0));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  if (fromFloat && toFloat) {
    if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, type, value);
    if (from.getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
      return arith::TruncFOp::create(b, type, value);
    // f16 and bf16: through f32.
    return castScalar(b, castScalar(b, value, b.getF32Type()), type);
  }
  if (fromFloat)
    return arith::FPToSIOp::create(b, type, value);
  if (toFloat) {
    if (from.isInteger(1))
      return arith::UIToFPOp::create(b, type, value);
    return arith::SIToFPOp::create(b, type, value);
  }
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, type, value);
  if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, type, value);
  return arith::TruncIOp::create(b, type, value);
}

Value ScalarBuilder::constant(double value) {
  if (isFloat())
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

Value ScalarBuilder::add(Value x, Value y) {
  if (isFloat())
    return arith::AddFOp::create(b, x, y);
  if (type.isInteger(1)) // the sum of truth values is one
    return arith::OrIOp::create(b, x, y);
  return arith::AddIOp::create(b, x, y);
}

Value ScalarBuilder::sub(Value x, Value y) {
  if (isFloat())
    return arith::SubFOp::create(b, x, y);
  return arith::SubIOp::create(b, x, y);
}

Value ScalarBuilder::mul(Value x, Value y) {
  if (isFloat())
    return arith::MulFOp::create(b, x, y);
  return arith::MulIOp::create(b, x, y);
}

Value ScalarBuilder::div(Value x, Value y) {
  if (isFloat())
    return arith::DivFOp::create(b, x, y);
  return arith::DivSIOp::create(b, x, y);
}

Value ScalarBuilder::neg(Value x) {
  if (isFloat())
    return arith::NegFOp::create(b, x);
  return arith::SubIOp::create(b, constant(0), x);
}

Value ScalarBuilder::abs(Value x) {
  if (isFloat())
    return math::AbsFOp::create(b, x);
  return math::AbsIOp::create(b, x);
}

Value ScalarBuilder::max(Value x, Value y) {
  if (isFloat())
    return arith::MaximumFOp::create(b, x, y);
  if (type.isInteger(1))
    return arith::OrIOp::create(b, x, y);
  return arith::MaxSIOp::create(b, x, y);
}

Value ScalarBuilder::min(Value x, Value y) {
  if (isFloat())
    return arith::MinimumFOp::create(b, x, y);
  if (type.isInteger(1))
    return arith::AndIOp::create(b, x, y);
  return arith::MinSIOp::create(b, x, y);
}

Value ScalarBuilder::exp(Value x) { return math::ExpOp::create(b, x); }
Value ScalarBuilder::log(Value x) { return math::LogOp::create(b, x); }
Value ScalarBuilder::sqrt(Value x) { return math::SqrtOp::create(b, x); }
Value ScalarBuilder::tanh(Value x) { return math::TanhOp::create(b, x); }
Value ScalarBuilder::erf(Value x) { return math::ErfOp::create(b, x); }
Value ScalarBuilder::cos(Value x) { return math::CosOp::create(b, x); }
Value ScalarBuilder::sin(Value x) { return math::SinOp::create(b, x); }
Value ScalarBuilder::pow(Value x, Value y) { return math::PowFOp::create(b, x, y); }

Value ScalarBuilder::sigmoid(Value x) {
  Value one = constant(1);
  return div(one, add(one, exp(neg(x))));
}

Value ScalarBuilder::compare(StringRef predicate, Value x, Value y) {
  if (isFloat()) {
    auto ordered = llvm::StringSwitch<arith::CmpFPredicate>(predicate)
                       .Case("eq", arith::CmpFPredicate::OEQ)
                       .Case("ne", arith::CmpFPredicate::UNE)
                       .Case("lt", arith::CmpFPredicate::OLT)
                       .Case("le", arith::CmpFPredicate::OLE)
                       .Case("gt", arith::CmpFPredicate::OGT)
                       .Default(arith::CmpFPredicate::OGE);
    return arith::CmpFOp::create(b, ordered, x, y);
  }
  bool isBool = type.isInteger(1);
  auto integer = llvm::StringSwitch<arith::CmpIPredicate>(predicate)
                     .Case("eq", arith::CmpIPredicate::eq)
                     .Case("ne", arith::CmpIPredicate::ne)
                     .Case("lt", isBool ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt)
                     .Case("le", isBool ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle)
                     .Case("gt", isBool ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
                     .Default(isBool ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge);
  return arith::CmpIOp::create(b, integer, x, y);
}

Value ScalarBuilder::select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }

} // namespace spmd::fusion
