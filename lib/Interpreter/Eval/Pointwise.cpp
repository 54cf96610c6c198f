//===- Pointwise.cpp - elementwise arithmetic and comparison --------------===//

#include "Activations.h"
#include "Map.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {

Tensor scalarArgument(const OpCall &call, llvm::StringRef name) {
  Attribute attr = call.op->getAttr(name);
  if (isa_and_nonnull<BoolAttr>(attr))
    return Tensor::scalar(DType::i1, call.number(name));
  if (isa_and_nonnull<IntegerAttr>(attr))
    return Tensor(DType::i64, {}, std::vector<int64_t>{call.integer(name)});
  return Tensor::scalar(DType::f64, call.number(name));
}

FailureOr<Shape> commonShape(OpCall &call, std::initializer_list<const Tensor *> operands) {
  Shape shape;
  for (const Tensor *operand : operands) {
    std::optional<Shape> next = broadcastShapes(shape, operand->shape());
    if (!next)
      return call.error() << "operands do not broadcast together";
    shape = std::move(*next);
  }
  return shape;
}

/// The second argument of `.Tensor` and `.Scalar` overloads alike.
static Tensor otherArgument(const OpCall &call) {
  return call.has("other") ? scalarArgument(call, "other") : call.tensor("other");
}

template <typename F>
static LogicalResult unary(OpCall &call, F f) {
  return mapReals(call, f, call.tensor("self"));
}

template <typename F>
static LogicalResult binary(OpCall &call, F f) {
  return mapElements(call, f, call.tensor("self"), otherArgument(call));
}

/// self + sign * alpha * other, or with the two swapped.
template <typename F>
static LogicalResult scaledSum(OpCall &call, F f) {
  Tensor alpha = call.has("alpha") ? scalarArgument(call, "alpha") : Tensor::scalar(DType::i64, 1);
  return mapElements(call, f, call.tensor("self"), otherArgument(call), alpha);
}

static double nanMax(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }
static double nanMin(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }
static int64_t nanMax(int64_t a, int64_t b) { return std::max(a, b); }
static int64_t nanMin(int64_t a, int64_t b) { return std::min(a, b); }

/// clamp with scalar or tensor bounds, either of which may be missing.
static LogicalResult evaluateClamp(OpCall &call) {
  auto bound = [&](llvm::StringRef name, double otherwise) {
    if (call.has(name))
      return scalarArgument(call, name);
    if (call.op->getName().getStringRef().ends_with(".Tensor"))
      if (const Tensor &tensor = call.tensor(name))
        return tensor;
    return Tensor::scalar(DType::f64, otherwise);
  };
  return mapReals(
      call, [](double x, double low, double high) { return std::isnan(x) ? x : std::min(std::max(x, low), high); },
      call.tensor("self"), bound("min", -INFINITY), bound("max", INFINITY));
}

static LogicalResult evaluatePow(OpCall &call) {
  Tensor base = call.has("self") ? scalarArgument(call, "self") : call.tensor("self");
  Tensor exponent = call.has("exponent") ? scalarArgument(call, "exponent") : call.tensor("exponent");
  return mapReals(call, [](double a, double b) { return std::pow(a, b); }, base, exponent);
}

static LogicalResult evaluateWhere(OpCall &call) {
  return mapElements(
      call, [](auto c, auto a, auto b) { return c != 0 ? a : b; }, call.tensor("condition"), call.tensor("self"),
      call.tensor("other"));
}

static LogicalResult evaluateMaskedFill(OpCall &call) {
  return mapElements(
      call, [](auto x, auto m, auto v) { return m != 0 ? v : x; }, call.tensor("self"), call.tensor("mask"),
      scalarArgument(call, "value"));
}

/// value * tensor1 (* or /) tensor2 + self.
template <typename F>
static LogicalResult addScaledPair(OpCall &call, F f) {
  Tensor value = call.has("value") ? scalarArgument(call, "value") : Tensor::scalar(DType::i64, 1);
  return mapReals(call, f, call.tensor("self"), call.tensor("tensor1"), call.tensor("tensor2"), value);
}

static LogicalResult evaluateCast(OpCall &call) {
  const Tensor &self = call.tensor("self");
  call.result(self.converted(call.resultType()));
  return success();
}

void registerPointwise(EvaluatorRegistry &r) {
  // Sums, products and their relatives.
  for (const char *name : {"aten.add.Tensor", "aten.add.Scalar"})
    r.add(name, [](OpCall &c) { return scaledSum(c, [](auto a, auto b, auto k) { return a + k * b; }); });
  for (const char *name : {"aten.sub.Tensor", "aten.sub.Scalar"})
    r.add(name, [](OpCall &c) { return scaledSum(c, [](auto a, auto b, auto k) { return a - k * b; }); });
  r.add("aten.rsub.Scalar", [](OpCall &c) { return scaledSum(c, [](auto a, auto b, auto k) { return b - k * a; }); });
  for (const char *name : {"aten.mul.Tensor", "aten.mul.Scalar"})
    r.add(name, [](OpCall &c) { return binary(c, [](auto a, auto b) { return a * b; }); });
  for (const char *name : {"aten.div.Tensor", "aten.div.Scalar"})
    r.add(name, [](OpCall &c) {
      return mapReals(c, [](double a, double b) { return a / b; }, c.tensor("self"), otherArgument(c));
    });
  r.add("aten.maximum", [](OpCall &c) { return binary(c, [](auto a, auto b) { return nanMax(a, b); }); });
  r.add("aten.minimum", [](OpCall &c) { return binary(c, [](auto a, auto b) { return nanMin(a, b); }); });
  for (const char *name : {"aten.pow.Tensor_Scalar", "aten.pow.Scalar", "aten.pow.Tensor_Tensor"})
    r.add(name, evaluatePow);
  r.add("aten.addcmul", [](OpCall &c) {
    return addScaledPair(c, [](double s, double a, double b, double v) { return s + v * a * b; });
  });
  r.add("aten.addcdiv", [](OpCall &c) {
    return addScaledPair(c, [](double s, double a, double b, double v) { return s + v * a / b; });
  });
  r.add("aten.lerp.Scalar",
        [](OpCall &c) { return mapReals(c, lerp, c.tensor("self"), c.tensor("end"), scalarArgument(c, "weight")); });

  // Functions of one argument.
  r.add("aten.neg", [](OpCall &c) { return mapElements(c, [](auto x) { return -x; }, c.tensor("self")); });
  r.add("aten.abs", [](OpCall &c) { return mapElements(c, [](auto x) { return x < 0 ? -x : x; }, c.tensor("self")); });
  r.add("aten.exp", [](OpCall &c) { return unary(c, [](double x) { return std::exp(x); }); });
  r.add("aten.log", [](OpCall &c) { return unary(c, [](double x) { return std::log(x); }); });
  r.add("aten.sqrt", [](OpCall &c) { return unary(c, [](double x) { return std::sqrt(x); }); });
  r.add("aten.rsqrt", [](OpCall &c) { return unary(c, [](double x) { return 1 / std::sqrt(x); }); });
  r.add("aten.reciprocal", [](OpCall &c) { return unary(c, [](double x) { return 1 / x; }); });
  r.add("aten.sin", [](OpCall &c) { return unary(c, [](double x) { return std::sin(x); }); });
  r.add("aten.cos", [](OpCall &c) { return unary(c, [](double x) { return std::cos(x); }); });
  r.add("aten.tanh", [](OpCall &c) { return unary(c, [](double x) { return std::tanh(x); }); });
  r.add("aten.erf", [](OpCall &c) { return unary(c, [](double x) { return std::erf(x); }); });
  r.add("aten.sigmoid", [](OpCall &c) { return unary(c, sigmoid); });
  r.add("aten.silu", [](OpCall &c) { return unary(c, silu); });
  r.add("aten.relu",
        [](OpCall &c) { return mapElements(c, [](auto x) { return x < 0 ? x * 0 : x; }, c.tensor("self")); });
  r.add("aten.gelu",
        [](OpCall &c) { return c.string("approximate") == "tanh" ? unary(c, geluTanh) : unary(c, geluErf); });
  // Comparison, logic, selection.
  for (const char *name : {"aten.eq.Tensor", "aten.eq.Scalar"})
    r.add(name, [](OpCall &c) { return binary(c, [](auto a, auto b) { return a == b; }); });
  for (const char *name : {"aten.ne.Tensor", "aten.ne.Scalar"})
    r.add(name, [](OpCall &c) { return binary(c, [](auto a, auto b) { return a != b; }); });
  for (const char *name : {"aten.lt.Tensor", "aten.lt.Scalar"})
    r.add(name, [](OpCall &c) { return binary(c, [](auto a, auto b) { return a < b; }); });
  for (const char *name : {"aten.le.Tensor", "aten.le.Scalar"})
    r.add(name, [](OpCall &c) { return binary(c, [](auto a, auto b) { return a <= b; }); });
  for (const char *name : {"aten.gt.Tensor", "aten.gt.Scalar"})
    r.add(name, [](OpCall &c) { return binary(c, [](auto a, auto b) { return a > b; }); });
  for (const char *name : {"aten.ge.Tensor", "aten.ge.Scalar"})
    r.add(name, [](OpCall &c) { return binary(c, [](auto a, auto b) { return a >= b; }); });
  r.add("aten.logical_not", [](OpCall &c) { return mapElements(c, [](auto x) { return x == 0; }, c.tensor("self")); });
  r.add("aten.bitwise_not", [](OpCall &c) {
    bool boolean = c.resultType() == DType::i1;
    return mapElements(
        c,
        [=](auto x) {
          auto bits = static_cast<int64_t>(x);
          return boolean ? int64_t(bits == 0) : ~bits;
        },
        c.tensor("self"));
  });
  r.add("aten.logical_and", [](OpCall &c) { return binary(c, [](auto a, auto b) { return a != 0 && b != 0; }); });
  r.add("aten.bitwise_and.Tensor",
        [](OpCall &c) { return binary(c, [](auto a, auto b) { return int64_t(a) & int64_t(b); }); });
  r.add("aten.where.self", evaluateWhere);
  r.add("aten.masked_fill.Scalar", evaluateMaskedFill);
  for (const char *name : {"aten.clamp", "aten.clamp.Tensor"})
    r.add(name, evaluateClamp);
  // Same values, another type or another tensor.
  for (const char *name : {"aten._to_copy", "aten.clone"})
    r.add(name, evaluateCast);
}

} // namespace spmd::interp
