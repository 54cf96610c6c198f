//===- ScalarBodies.cpp - what one element of a pointwise op is -----------===//

#include "spmd/Conversion/AtenToKernel/ScalarBodies.h"

#include "dialects/Aten/AtenRandom.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace mlir;

namespace spmd::fusion {

namespace {

/// A formula over arguments of the compute type of the result.
using Args = ArrayRef<Value>;
using Formula = Value (*)(ScalarBuilder &, Args, Operation *);

double getScalar(Operation *op, StringRef name, double otherwise) {
  Attribute attr = op->getAttr(name);
  return attr ? getScalarValue(attr) : otherwise;
}

bool isTanh(Operation *op) {
  auto approximate = op->getAttrOfType<StringAttr>("approximate");
  return approximate && approximate.getValue() == "tanh";
}

/// alpha * x, without the product when alpha is one.
Value scaled(ScalarBuilder &s, Value x, double alpha) { return alpha == 1 ? x : s.mul(s.constant(alpha), x); }

constexpr double kTwoOverSqrtPi = M_2_SQRTPI;
constexpr double kGeluBeta = M_SQRT2 * kTwoOverSqrtPi * 0.5;
constexpr double kGeluKappa = 0.044715;

/// tanh(beta * (x + kappa * x^3))
Value geluTanh(ScalarBuilder &s, Value x) {
  Value cube = s.mul(s.square(x), x);
  Value inner = s.mul(s.constant(kGeluBeta), s.add(x, s.mul(s.constant(kGeluKappa), cube)));
  return s.tanh(inner);
}

/// Phi(x) = (1 + erf(x / sqrt 2)) / 2
Value normalCdf(ScalarBuilder &s, Value x) {
  Value erf = s.erf(s.mul(x, s.constant(M_SQRT1_2)));
  return s.mul(s.constant(0.5), s.add(s.constant(1), erf));
}

Value gelu(ScalarBuilder &s, Args a, Operation *op) {
  if (!isTanh(op))
    return s.mul(a[0], normalCdf(s, a[0]));
  Value half = s.mul(s.constant(0.5), a[0]);
  return s.mul(half, s.add(s.constant(1), geluTanh(s, a[0])));
}

Value geluBackward(ScalarBuilder &s, Args a, Operation *op) {
  Value grad = a[0], x = a[1], one = s.constant(1), half = s.constant(0.5);
  if (!isTanh(op)) {
    Value density = s.mul(s.exp(s.mul(s.constant(-0.5), s.square(x))), s.constant(kTwoOverSqrtPi * M_SQRT1_2 * 0.5));
    return s.mul(grad, s.add(normalCdf(s, x), s.mul(x, density)));
  }
  Value tanh = geluTanh(s, x);
  Value left = s.mul(half, x), right = s.add(one, tanh);
  Value tanhDerivative = s.sub(one, s.square(tanh));
  Value innerDerivative = s.mul(s.constant(kGeluBeta), s.add(one, s.mul(s.constant(3 * kGeluKappa), s.square(x))));
  Value fromLeft = s.mul(half, right);
  Value fromRight = s.mul(s.mul(left, tanhDerivative), innerDerivative);
  return s.mul(grad, s.add(fromLeft, fromRight));
}

Value power(ScalarBuilder &s, Value x, double exponent) {
  if (exponent == 0)
    return s.constant(1);
  if (exponent == 1)
    return x;
  if (exponent == 2)
    return s.square(x);
  if (exponent == 3)
    return s.mul(s.square(x), x);
  if (exponent == 0.5)
    return s.sqrt(x);
  if (exponent == -0.5)
    return s.div(s.constant(1), s.sqrt(x));
  if (exponent == -1)
    return s.div(s.constant(1), x);
  if (exponent == -2)
    return s.div(s.constant(1), s.square(x));
  return s.pow(x, s.constant(exponent));
}

Value clamp(ScalarBuilder &s, Args a, Operation *op) {
  Value value = a[0];
  if (Attribute low = op->getAttr("min"))
    value = s.max(value, s.constant(getScalarValue(low)));
  if (Attribute high = op->getAttr("max"))
    value = s.min(value, s.constant(getScalarValue(high)));
  return value;
}

Value clampTensor(ScalarBuilder &s, Args a, Operation *op) {
  // Segments: self, min, max.
  auto segments = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
  unsigned next = 1;
  Value value = a[0];
  if (segments[1])
    value = s.max(value, a[next++]);
  if (segments[2])
    value = s.min(value, a[next]);
  return value;
}

/// PyTorch takes the form that is exact at the nearer end.
Value lerp(ScalarBuilder &s, Args a, Operation *op) {
  double weight = getScalar(op, "weight", 0);
  Value span = s.sub(a[1], a[0]);
  if (std::abs(weight) < 0.5)
    return s.add(a[0], s.mul(s.constant(weight), span));
  return s.sub(a[1], s.mul(span, s.constant(1 - weight)));
}

/// Ops that compute in the compute type of their result.
const llvm::StringMap<Formula> &getArithmeticFormulas() {
  static const llvm::StringMap<Formula> formulas = {
      {"aten.add.Tensor",
       [](ScalarBuilder &s, Args a, Operation *op) { return s.add(a[0], scaled(s, a[1], getScalar(op, "alpha", 1))); }},
      {"aten.sub.Tensor",
       [](ScalarBuilder &s, Args a, Operation *op) { return s.sub(a[0], scaled(s, a[1], getScalar(op, "alpha", 1))); }},
      {"aten.add.Scalar",
       [](ScalarBuilder &s, Args a, Operation *op) {
         return s.add(a[0], s.constant(getScalar(op, "other", 0) * getScalar(op, "alpha", 1)));
       }},
      {"aten.sub.Scalar",
       [](ScalarBuilder &s, Args a, Operation *op) {
         return s.sub(a[0], s.constant(getScalar(op, "other", 0) * getScalar(op, "alpha", 1)));
       }},
      {"aten.rsub.Scalar",
       [](ScalarBuilder &s, Args a, Operation *op) {
         return s.sub(s.constant(getScalar(op, "other", 0)), scaled(s, a[0], getScalar(op, "alpha", 1)));
       }},
      {"aten.mul.Tensor", [](ScalarBuilder &s, Args a, Operation *) { return s.mul(a[0], a[1]); }},
      {"aten.mul.Scalar",
       [](ScalarBuilder &s, Args a, Operation *op) { return s.mul(a[0], s.constant(getScalar(op, "other", 1))); }},
      {"aten.div.Tensor", [](ScalarBuilder &s, Args a, Operation *) { return s.div(a[0], a[1]); }},
      {"aten.div.Scalar",
       [](ScalarBuilder &s, Args a, Operation *op) { return s.div(a[0], s.constant(getScalar(op, "other", 1))); }},
      {"aten.neg", [](ScalarBuilder &s, Args a, Operation *) { return s.neg(a[0]); }},
      {"aten.abs", [](ScalarBuilder &s, Args a, Operation *) { return s.abs(a[0]); }},
      {"aten.exp", [](ScalarBuilder &s, Args a, Operation *) { return s.exp(a[0]); }},
      {"aten.log", [](ScalarBuilder &s, Args a, Operation *) { return s.log(a[0]); }},
      {"aten.sqrt", [](ScalarBuilder &s, Args a, Operation *) { return s.sqrt(a[0]); }},
      {"aten.rsqrt", [](ScalarBuilder &s, Args a, Operation *) { return s.div(s.constant(1), s.sqrt(a[0])); }},
      {"aten.reciprocal", [](ScalarBuilder &s, Args a, Operation *) { return s.div(s.constant(1), a[0]); }},
      {"aten.erf", [](ScalarBuilder &s, Args a, Operation *) { return s.erf(a[0]); }},
      {"aten.cos", [](ScalarBuilder &s, Args a, Operation *) { return s.cos(a[0]); }},
      {"aten.sin", [](ScalarBuilder &s, Args a, Operation *) { return s.sin(a[0]); }},
      {"aten.tanh", [](ScalarBuilder &s, Args a, Operation *) { return s.tanh(a[0]); }},
      {"aten.sigmoid", [](ScalarBuilder &s, Args a, Operation *) { return s.sigmoid(a[0]); }},
      {"aten.silu",
       [](ScalarBuilder &s, Args a, Operation *) { return s.div(a[0], s.add(s.constant(1), s.exp(s.neg(a[0])))); }},
      {"aten.relu", [](ScalarBuilder &s, Args a, Operation *) { return s.max(a[0], s.constant(0)); }},
      {"aten.gelu", gelu},
      {"aten.tanh_backward",
       [](ScalarBuilder &s, Args a, Operation *) { return s.mul(a[0], s.sub(s.constant(1), s.square(a[1]))); }},
      {"aten.sigmoid_backward",
       [](ScalarBuilder &s, Args a, Operation *) { return s.mul(s.mul(a[0], s.sub(s.constant(1), a[1])), a[1]); }},
      {"aten.silu_backward",
       [](ScalarBuilder &s, Args a, Operation *) {
         Value one = s.constant(1), sigmoid = s.sigmoid(a[1]);
         Value slope = s.add(one, s.mul(a[1], s.sub(one, sigmoid)));
         return s.mul(s.mul(a[0], sigmoid), slope);
       }},
      {"aten.gelu_backward", geluBackward},
      {"aten.threshold_backward",
       [](ScalarBuilder &s, Args a, Operation *op) {
         Value below = s.compare("le", a[1], s.constant(getScalar(op, "threshold", 0)));
         return s.select(below, s.constant(0), a[0]);
       }},
      {"aten.pow.Tensor_Scalar",
       [](ScalarBuilder &s, Args a, Operation *op) { return power(s, a[0], getScalar(op, "exponent", 1)); }},
      {"aten.pow.Scalar",
       [](ScalarBuilder &s, Args a, Operation *op) { return s.pow(s.constant(getScalar(op, "self", 1)), a[0]); }},
      {"aten.pow.Tensor_Tensor", [](ScalarBuilder &s, Args a, Operation *) { return s.pow(a[0], a[1]); }},
      {"aten.clamp", clamp},
      {"aten.clamp.Tensor", clampTensor},
      {"aten.maximum", [](ScalarBuilder &s, Args a, Operation *) { return s.max(a[0], a[1]); }},
      {"aten.minimum", [](ScalarBuilder &s, Args a, Operation *) { return s.min(a[0], a[1]); }},
      {"aten.addcmul",
       [](ScalarBuilder &s, Args a, Operation *op) {
         return s.add(a[0], s.mul(scaled(s, a[1], getScalar(op, "value", 1)), a[2]));
       }},
      {"aten.addcdiv",
       [](ScalarBuilder &s, Args a, Operation *op) {
         return s.add(a[0], s.div(scaled(s, a[1], getScalar(op, "value", 1)), a[2]));
       }},
      {"aten.lerp.Scalar", lerp},
      {"aten._to_copy", [](ScalarBuilder &, Args a, Operation *) { return a[0]; }},
  };
  return formulas;
}

/// A scalar body that converts to the compute type, applies `formula` and rounds to the result type.
ScalarBody makeArithmetic(Operation *op, Formula formula) {
  Type result = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  return [op, formula, result](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, getComputeType(result));
    SmallVector<Value> converted;
    for (Value arg : args)
      converted.push_back(castScalar(b, arg, s.type));
    return castScalar(b, formula(s, converted, op), result);
  };
}

/// The type in which PyTorch compares its operands: that of the operand of the highest category (bool, integer,
/// float), among those of one category the one that has dims.
Type getComparisonType(Operation *op) {
  Type best;
  auto rankOf = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    int category = isa<FloatType>(element) ? 2 : element.isInteger(1) ? 0 : 1;
    return std::make_tuple(category, tensor.getRank() > 0, element.getIntOrFloatBitWidth());
  };
  for (Type type : op->getOperandTypes())
    if (!best || rankOf(type) > rankOf(best))
      best = type;
  Type element = cast<RankedTensorType>(best).getElementType();
  Attribute scalar = op->getAttr("other");
  if (scalar && isa<FloatAttr>(scalar) && !isa<FloatType>(element))
    return Float32Type::get(op->getContext());
  if (scalar && element.isInteger(1) && isa<IntegerAttr>(scalar) && !isa<BoolAttr>(scalar))
    return IntegerType::get(op->getContext(), 64);
  return getComputeType(element);
}

ScalarBody makeComparison(Operation *op, StringRef predicate) {
  Type type = getComparisonType(op);
  Attribute scalar = op->getAttr("other");
  return [type, scalar, predicate](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, type);
    Value x = castScalar(b, args[0], type);
    Value y = scalar ? s.constant(getScalarValue(scalar)) : castScalar(b, args[1], type);
    return s.compare(predicate, x, y);
  };
}

ScalarBody makeSelection(Operation *op) {
  Type result = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  if (op->getName().getStringRef() == "aten.where.self")
    return [result](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
      return arith::SelectOp::create(b, args[0], castScalar(b, args[1], result), castScalar(b, args[2], result));
    };
  double fill = getScalar(op, "value", 0);
  return [result, fill](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
    Value value = ScalarBuilder(b, result).constant(fill);
    return arith::SelectOp::create(b, args[1], value, args[0]);
  };
}

ScalarBody makeLogical(Operation *op) {
  Type result = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  StringRef name = op->getName().getStringRef();
  if (name == "aten.logical_not")
    return [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
      Value truth = castScalar(b, args[0], b.getI1Type());
      return arith::XOrIOp::create(b, truth, ScalarBuilder(b, b.getI1Type()).constant(1));
    };
  if (name == "aten.logical_and")
    return [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
      return arith::AndIOp::create(b, castScalar(b, args[0], b.getI1Type()), castScalar(b, args[1], b.getI1Type()));
    };
  if (name == "aten.bitwise_not")
    return [result](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
      return arith::XOrIOp::create(b, args[0], ScalarBuilder(b, result).constant(result.isInteger(1) ? 1 : -1));
    };
  return [result](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
    return arith::AndIOp::create(b, castScalar(b, args[0], result), castScalar(b, args[1], result));
  };
}

ScalarBody makeUniform(aten::PhiloxUniformOp op) {
  int64_t stream = op.getStream(), word = op.getWord();
  return [=](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
    return kernel::UniformOp::create(b, args[0], args[1], args[2], stream, word);
  };
}

} // namespace

ScalarBody getScalarBody(Operation *op) {
  StringRef name = op->getName().getStringRef();
  auto formula = getArithmeticFormulas().find(name);
  if (formula != getArithmeticFormulas().end())
    return makeArithmetic(op, formula->second);
  for (StringRef predicate : {"eq", "ne", "lt", "le", "gt", "ge"})
    if (name == ("aten." + predicate + ".Tensor").str() || name == ("aten." + predicate + ".Scalar").str())
      return makeComparison(op, predicate);
  if (name == "aten.where.self" || name == "aten.masked_fill.Scalar")
    return makeSelection(op);
  if (name == "aten.logical_not" || name == "aten.logical_and" || name == "aten.bitwise_not" ||
      name == "aten.bitwise_and.Tensor")
    return makeLogical(op);
  if (auto uniform = dyn_cast<aten::PhiloxUniformOp>(op))
    return makeUniform(uniform);
  return nullptr;
}

} // namespace spmd::fusion
