//===- Pointwise.cpp - elementwise arithmetic and comparison --------------===//

#include "Map.h"
#include "Activations.h"
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

FailureOr<Shape> commonShape(OpCall &call,
                             std::initializer_list<const Tensor *> operands) {
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
  return call.has("other") ? scalarArgument(call, "other")
                           : call.tensor("other");
}

template <typename F> static LogicalResult unary(OpCall &call, F f) {
  return mapReals(call, f, call.tensor("self"));
}

template <typename F> static LogicalResult binary(OpCall &call, F f) {
  return mapElements(call, f, call.tensor("self"), otherArgument(call));
}

/// self + sign * alpha * other, or with the two swapped.
template <typename F> static LogicalResult scaledSum(OpCall &call, F f) {
  Tensor alpha = call.has("alpha") ? scalarArgument(call, "alpha")
                                   : Tensor::scalar(DType::i64, 1);
  return mapElements(call, f, call.tensor("self"), otherArgument(call), alpha);
}

static double nanMax(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}
static double nanMin(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}
static int64_t nanMax(int64_t a, int64_t b) { return std::max(a, b); }
static int64_t nanMin(int64_t a, int64_t b) { return std::min(a, b); }

/// Python's modulo: the sign of the divisor.
static double pythonRemainder(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static int64_t pythonRemainder(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double divide(double a, double b, llvm::StringRef rounding) {
  if (rounding == "trunc")
    return std::trunc(a / b);
  if (rounding == "floor")
    return std::floor(a / b);
  return a / b;
}

static LogicalResult evaluateDiv(OpCall &call) {
  std::string rounding = call.has("rounding_mode")
                             ? call.string("rounding_mode").str()
                             : std::string();
  return mapReals(
      call, [&](double a, double b) { return divide(a, b, rounding); },
      call.tensor("self"), otherArgument(call));
}

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
      call,
      [](double x, double low, double high) {
        return std::isnan(x) ? x : std::min(std::max(x, low), high);
      },
      call.tensor("self"), bound("min", -INFINITY), bound("max", INFINITY));
}

static LogicalResult evaluatePow(OpCall &call) {
  Tensor base = call.has("self") ? scalarArgument(call, "self")
                                 : call.tensor("self");
  Tensor exponent = call.has("exponent") ? scalarArgument(call, "exponent")
                                         : call.tensor("exponent");
  return mapReals(
      call, [](double a, double b) { return std::pow(a, b); }, base, exponent);
}

static LogicalResult evaluateWhere(OpCall &call) {
  return mapElements(
      call, [](auto c, auto a, auto b) { return c != 0 ? a : b; },
      call.tensor("condition"), call.tensor("self"), call.tensor("other"));
}

static LogicalResult evaluateMaskedFill(OpCall &call) {
  Tensor value = call.has("value") ? scalarArgument(call, "value")
                                   : call.tensor("value");
  return mapElements(
      call, [](auto x, auto m, auto v) { return m != 0 ? v : x; },
      call.tensor("self"), call.tensor("mask"), value);
}

/// value * tensor1 (* or /) tensor2 + self.
template <typename F> static LogicalResult addScaledPair(OpCall &call, F f) {
  Tensor value = call.has("value") ? scalarArgument(call, "value")
                                   : Tensor::scalar(DType::i64, 1);
  return mapReals(call, f, call.tensor("self"), call.tensor("tensor1"),
                  call.tensor("tensor2"), value);
}

static LogicalResult evaluateLerp(OpCall &call) {
  Tensor weight = call.has("weight") ? scalarArgument(call, "weight")
                                     : call.tensor("weight");
  return mapReals(call, lerp, call.tensor("self"), call.tensor("end"), weight);
}

static LogicalResult evaluateCast(OpCall &call) {
  const Tensor &self = call.tensor("self");
  call.result(self.converted(call.resultType()));
  return success();
}

void registerPointwise(EvaluatorRegistry &r) {
  // Sums, products and their relatives.
  for (const char *name : {"aten.add.Tensor", "aten.add.Scalar"})
    r.add(name, [](OpCall &c) {
      return scaledSum(c, [](auto a, auto b, auto k) { return a + k * b; });
    });
  for (const char *name : {"aten.sub.Tensor", "aten.sub.Scalar"})
    r.add(name, [](OpCall &c) {
      return scaledSum(c, [](auto a, auto b, auto k) { return a - k * b; });
    });
  for (const char *name : {"aten.rsub.Tensor", "aten.rsub.Scalar"})
    r.add(name, [](OpCall &c) {
      return scaledSum(c, [](auto a, auto b, auto k) { return b - k * a; });
    });
  for (const char *name : {"aten.mul.Tensor", "aten.mul.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a * b; });
    });
  for (const char *name : {"aten.div.Tensor", "aten.div.Scalar",
                           "aten.div.Tensor_mode", "aten.div.Scalar_mode"})
    r.add(name, evaluateDiv);
  r.add("aten.floor_divide", [](OpCall &c) {
    return mapReals(
        c, [](double a, double b) { return std::floor(a / b); },
        c.tensor("self"), otherArgument(c));
  });
  for (const char *name : {"aten.remainder.Tensor", "aten.remainder.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return pythonRemainder(a, b); });
    });
  r.add("aten.maximum", [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return nanMax(a, b); });
    });
  r.add("aten.minimum", [](OpCall &c) {
    return binary(c, [](auto a, auto b) { return nanMin(a, b); });
  });
  for (const char *name : {"aten.pow.Tensor_Scalar", "aten.pow.Scalar",
                           "aten.pow.Tensor_Tensor"})
    r.add(name, evaluatePow);
  r.add("aten.addcmul", [](OpCall &c) {
    return addScaledPair(c, [](double s, double a, double b, double v) {
      return s + v * a * b;
    });
  });
  r.add("aten.addcdiv", [](OpCall &c) {
    return addScaledPair(c, [](double s, double a, double b, double v) {
      return s + v * a / b;
    });
  });
  for (const char *name : {"aten.lerp.Scalar", "aten.lerp.Tensor"})
    r.add(name, evaluateLerp);

  // Functions of one argument.
  r.add("aten.neg", [](OpCall &c) {
      return mapElements(c, [](auto x) { return -x; }, c.tensor("self"));
    });
  r.add("aten.abs", [](OpCall &c) {
    return mapElements(c, [](auto x) { return x < 0 ? -x : x; },
                       c.tensor("self"));
  });
  r.add("aten.sign", [](OpCall &c) {
    return mapElements(c, [](auto x) { return x > 0 ? 1 : x < 0 ? -1 : 0; },
                       c.tensor("self"));
  });
  r.add("aten.exp", [](OpCall &c) {
    return unary(c, [](double x) { return std::exp(x); });
  });
  r.add("aten.log", [](OpCall &c) {
    return unary(c, [](double x) { return std::log(x); });
  });
  r.add("aten.log1p", [](OpCall &c) {
    return unary(c, [](double x) { return std::log1p(x); });
  });
  r.add("aten.expm1", [](OpCall &c) {
    return unary(c, [](double x) { return std::expm1(x); });
  });
  r.add("aten.sqrt", [](OpCall &c) {
    return unary(c, [](double x) { return std::sqrt(x); });
  });
  r.add("aten.rsqrt", [](OpCall &c) {
    return unary(c, [](double x) { return 1 / std::sqrt(x); });
  });
  r.add("aten.reciprocal", [](OpCall &c) {
    return unary(c, [](double x) { return 1 / x; });
  });
  r.add("aten.sin", [](OpCall &c) {
    return unary(c, [](double x) { return std::sin(x); });
  });
  r.add("aten.cos", [](OpCall &c) {
    return unary(c, [](double x) { return std::cos(x); });
  });
  r.add("aten.tanh", [](OpCall &c) {
    return unary(c, [](double x) { return std::tanh(x); });
  });
  r.add("aten.erf", [](OpCall &c) {
    return unary(c, [](double x) { return std::erf(x); });
  });
  r.add("aten.floor", [](OpCall &c) {
    return unary(c, [](double x) { return std::floor(x); });
  });
  r.add("aten.ceil", [](OpCall &c) {
    return unary(c, [](double x) { return std::ceil(x); });
  });
  r.add("aten.sigmoid", [](OpCall &c) { return unary(c, sigmoid); });
  r.add("aten.silu", [](OpCall &c) { return unary(c, silu); });
  r.add("aten.relu", [](OpCall &c) {
    return mapElements(c, [](auto x) { return x < 0 ? x * 0 : x; },
                       c.tensor("self"));
  });
  r.add("aten.gelu", [](OpCall &c) {
    return c.string("approximate") == "tanh" ? unary(c, geluTanh)
                                             : unary(c, geluErf);
  });
  r.add("aten.elu", [](OpCall &c) {
    double alpha = c.number("alpha"), scale = c.number("scale"),
           inputScale = c.number("input_scale");
    return unary(c, [=](double x) {
      return x > 0 ? scale * x : scale * alpha * std::expm1(x * inputScale);
    });
  });
  r.add("aten.leaky_relu", [](OpCall &c) {
    double slope = c.number("negative_slope");
    return unary(c, [=](double x) { return x > 0 ? x : x * slope; });
  });
  r.add("aten.hardtanh", [](OpCall &c) {
    double low = c.number("min_val"), high = c.number("max_val");
    return unary(c,
                 [=](double x) { return std::min(std::max(x, low), high); });
  });
  r.add("aten.softplus", [](OpCall &c) {
    double beta = c.number("beta"), threshold = c.number("threshold");
    return unary(c, [=](double x) {
      return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
    });
  });

  // Comparison, logic, selection.
  for (const char *name : {"aten.eq.Tensor", "aten.eq.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a == b; });
    });
  for (const char *name : {"aten.ne.Tensor", "aten.ne.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a != b; });
    });
  for (const char *name : {"aten.lt.Tensor", "aten.lt.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a < b; });
    });
  for (const char *name : {"aten.le.Tensor", "aten.le.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a <= b; });
    });
  for (const char *name : {"aten.gt.Tensor", "aten.gt.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a > b; });
    });
  for (const char *name : {"aten.ge.Tensor", "aten.ge.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a >= b; });
    });
  r.add("aten.logical_not", [](OpCall &c) {
    return mapElements(c, [](auto x) { return x == 0; }, c.tensor("self"));
  });
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
  r.add("aten.logical_and", [](OpCall &c) {
      return binary(c, [](auto a, auto b) { return a != 0 && b != 0; });
    });
  r.add("aten.logical_or", [](OpCall &c) {
    return binary(c, [](auto a, auto b) { return a != 0 || b != 0; });
  });
  for (const char *name : {"aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(
          c, [](auto a, auto b) { return int64_t(a) & int64_t(b); });
    });
  for (const char *name : {"aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar"})
    r.add(name, [](OpCall &c) {
      return binary(
          c, [](auto a, auto b) { return int64_t(a) | int64_t(b); });
    });
  r.add("aten.where.self", evaluateWhere);
  for (const char *name : {"aten.masked_fill.Scalar", "aten.masked_fill.Tensor"})
    r.add(name, evaluateMaskedFill);
  for (const char *name : {"aten.clamp", "aten.clamp.Tensor", "aten.clamp_min",
                           "aten.clamp_max"})
    r.add(name, evaluateClamp);
  r.add("aten.isnan", [](OpCall &c) {
    return unary(c, [](double x) { return double(std::isnan(x)); });
  });
  r.add("aten.isinf", [](OpCall &c) {
    return unary(c, [](double x) { return double(std::isinf(x)); });
  });

  // Same values, another type or another tensor.
  for (const char *name : {"aten._to_copy", "aten.clone"})
    r.add(name, evaluateCast);
  r.add("aten.copy", [](OpCall &c) {
    Tensor value = c.tensor("src").converted(c.resultType());
    c.result(broadcastTo(value, c.tensor("self").shape()));
    return success();
  });
}

} // namespace spmd::interp
