//===- Elementwise.cpp - Pointwise ops, constants, casts ------------------===//

#include "Lowering.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace spmd;
using namespace spmd::stablehlo;

static StringRef nameOf(Operation *op) { return op->getName().getStringRef(); }

static LogicalResult checkOperands(Operation *op, unsigned count) {
  if (op->getNumOperands() == count && op->getNumResults() == 1)
    return success();
  return opError(op) << "expected " << count << " operands and one result";
}

/// Computes `op` from operands that broadcast: where all of them are repeated, so is the result.
static LogicalResult broadcastOp(Lowering &lowering, Operation *op,
                                 llvm::function_ref<int64_t(ArrayRef<int64_t>, const TensorSpec &)> compute) {
  TensorSpec spec = specOf(op);
  bool isRepeated = llvm::all_of(op->getOperands(), [&](Value value) { return lowering.get(value).isRepeated(); });
  bool isWhole = llvm::any_of(op->getOperands(), [&](Value value) {
    Tensor &tensor = lowering.get(value);
    return !tensor.isRepeated() && tensor.spec.shape == spec.shape;
  });
  Ints ids;
  for (Value value : op->getOperands())
    ids.push_back(isRepeated || isWhole ? lowering.useScalar(lowering.get(value)) : lowering.use(value));
  if (!isRepeated || spec.shape.empty()) {
    lowering.bind(op->getResult(0), compute(ids, spec));
    return success();
  }
  Tensor result;
  result.spec = spec;
  result.scalar = compute(ids, {{}, spec.dtype});
  lowering.bind(op->getResult(0), result);
  return success();
}

//===----------------------------------------------------------------------===//
// Of one operand
//===----------------------------------------------------------------------===//

static StringRef getUnary(StringRef name) {
  static const llvm::StringMap<StringRef> ops = {{"stablehlo.negate", "aten.neg.default"},
                                                 {"stablehlo.exponential", "aten.exp.default"},
                                                 {"stablehlo.exponential_minus_one", "aten.expm1.default"},
                                                 {"stablehlo.log", "aten.log.default"},
                                                 {"stablehlo.log_plus_one", "aten.log1p.default"},
                                                 {"stablehlo.sqrt", "aten.sqrt.default"},
                                                 {"stablehlo.rsqrt", "aten.rsqrt.default"},
                                                 {"stablehlo.tanh", "aten.tanh.default"},
                                                 {"stablehlo.logistic", "aten.sigmoid.default"},
                                                 {"stablehlo.abs", "aten.abs.default"},
                                                 {"stablehlo.floor", "aten.floor.default"},
                                                 {"stablehlo.ceil", "aten.ceil.default"},
                                                 {"stablehlo.round_nearest_even", "aten.round.default"},
                                                 {"stablehlo.sine", "aten.sin.default"},
                                                 {"stablehlo.cosine", "aten.cos.default"},
                                                 {"stablehlo.tan", "aten.tan.default"},
                                                 {"chlo.erf", "aten.erf.default"},
                                                 {"chlo.erfc", "aten.erfc.default"},
                                                 {"chlo.erf_inv", "aten.erfinv.default"},
                                                 {"chlo.sinh", "aten.sinh.default"},
                                                 {"chlo.cosh", "aten.cosh.default"}};
  return ops.lookup(name);
}

static LogicalResult lowerUnary(Lowering &lowering, Operation *op, StringRef aten) {
  if (failed(checkOperands(op, 1)))
    return failure();
  return broadcastOp(lowering, op,
                     [&](ArrayRef<int64_t> ids, const TensorSpec &) { return lowering.unary(aten, ids[0]); });
}

static LogicalResult lowerUnary(Lowering &lowering, Operation *op) {
  return lowerUnary(lowering, op, getUnary(nameOf(op)));
}

/// Says of the result that it is a square, for what sums it ([Note: norms]).
static LogicalResult lowerSquare(Lowering &lowering, Operation *op) {
  Tensor source = lowering.get(op->getOperand(0));
  if (source.number && source.number->kind == Kind::real && source.number->real == 0) {
    source.number->real = 0; // of -0 as well
    source.id = source.scalar = -1;
    return lowering.bind(op->getResult(0), source), success();
  }
  LogicalResult lowered = broadcastOp(lowering, op, [&](ArrayRef<int64_t> ids, const TensorSpec &) {
    return combine(lowering, "stablehlo.multiply", ids[0], ids[0]);
  });
  if (succeeded(lowered) && !source.isRepeated())
    lowering.get(op->getResult(0)).root = lowering.use(op->getOperand(0));
  return lowered;
}

static LogicalResult lowerSquareOp(Lowering &lowering, Operation *op) {
  return failed(checkOperands(op, 1)) ? failure() : lowerSquare(lowering, op);
}

/// ATen's sign of NaN is 0, StableHLO's is NaN.
static LogicalResult lowerSign(Lowering &lowering, Operation *op) {
  if (failed(checkOperands(op, 1)))
    return failure();
  return broadcastOp(lowering, op, [&](ArrayRef<int64_t> ids, const TensorSpec &spec) {
    int64_t sign = lowering.unary("aten.sign.default", ids[0]);
    if (!isFloating(spec.dtype))
      return sign;
    int64_t isNan = lowering.emit("aten.ne.Tensor", {makeValue("self", ids[0]), makeValue("other", ids[0])},
                                  {spec.shape, DType::I1});
    return lowering.emit("aten.where.self",
                         {makeValue("condition", isNan), makeValue("self", ids[0]), makeValue("other", sign)}, spec);
  });
}

static LogicalResult lowerIsFinite(Lowering &lowering, Operation *op) {
  if (failed(checkOperands(op, 1)))
    return failure();
  return broadcastOp(lowering, op, [&](ArrayRef<int64_t> ids, const TensorSpec &spec) {
    Number infinity{Kind::real, std::numeric_limits<double>::infinity(), 0};
    return lowering.emit("aten.lt.Scalar",
                         {makeValue("self", lowering.unary("aten.abs.default", ids[0])), makeNumber("other", infinity)},
                         spec);
  });
}

static LogicalResult lowerNot(Lowering &lowering, Operation *op) {
  if (failed(checkOperands(op, 1)))
    return failure();
  return lowerUnary(lowering, op,
                    specOf(op).dtype == DType::I1 ? "aten.logical_not.default" : "aten.bitwise_not.default");
}

static LogicalResult lowerIdentity(Lowering &lowering, Operation *op) {
  for (auto [result, operand] : llvm::zip_equal(op->getResults(), op->getOperands()))
    lowering.bind(result, lowering.get(operand));
  return success();
}

/// A small whole number has the same value in every floating type.
static LogicalResult lowerConvert(Lowering &lowering, Operation *op) {
  if (failed(checkOperands(op, 1)))
    return failure();
  Tensor source = lowering.get(op->getOperand(0));
  TensorSpec spec = specOf(op);
  if (source.spec.dtype == spec.dtype)
    return lowering.bind(op->getResult(0), source), success();
  if (source.number && source.number->kind == Kind::integer && isFloating(spec.dtype) &&
      std::abs(source.number->integer) <= 256) {
    Tensor result;
    result.spec = spec;
    result.number = Number{Kind::real, source.number->asDouble(), 0};
    return lowering.bind(op->getResult(0), result), success();
  }
  return broadcastOp(lowering, op,
                     [&](ArrayRef<int64_t> ids, const TensorSpec &spec) { return lowering.cast(ids[0], spec.dtype); });
}

//===----------------------------------------------------------------------===//
// Of two and three operands
//===----------------------------------------------------------------------===//

/// The ATen op on tensors of a type; empty for an op that it does not have.
static StringRef getBinary(StringRef name, DType dtype) {
  bool isBool = dtype == DType::I1;
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"stablehlo.add", "stablehlo.or", "stablehlo.maximum"}, isBool ? "aten.logical_or.default" : "")
      .Cases({"stablehlo.multiply", "stablehlo.and", "stablehlo.minimum"}, isBool ? "aten.logical_and.default" : "")
      .Case("stablehlo.xor", isBool ? "aten.logical_xor.default" : "aten.bitwise_xor.Tensor")
      .Default("");
}

static StringRef getArithmetic(StringRef name, DType dtype) {
  if (StringRef logical = getBinary(name, dtype); !logical.empty())
    return logical;
  if (dtype == DType::I1)
    return "";
  return llvm::StringSwitch<StringRef>(name)
      .Case("stablehlo.add", "aten.add.Tensor")
      .Case("stablehlo.subtract", "aten.sub.Tensor")
      .Case("stablehlo.multiply", "aten.mul.Tensor")
      .Case("stablehlo.divide", isFloating(dtype) ? "aten.div.Tensor" : "aten.div.Tensor_mode")
      .Case("stablehlo.remainder", "aten.fmod.Tensor")
      .Case("stablehlo.maximum", "aten.maximum.default")
      .Case("stablehlo.minimum", "aten.minimum.default")
      .Case("stablehlo.power", "aten.pow.Tensor_Tensor")
      .Case("stablehlo.atan2", isFloating(dtype) ? "aten.atan2.default" : "")
      .Case("stablehlo.and", isFloating(dtype) ? "" : "aten.bitwise_and.Tensor")
      .Case("stablehlo.or", isFloating(dtype) ? "" : "aten.bitwise_or.Tensor")
      .Default("");
}

int64_t spmd::stablehlo::combine(Lowering &lowering, StringRef op, int64_t lhs, int64_t rhs) {
  const TensorSpec &left = lowering.spec(lhs), &right = lowering.spec(rhs);
  TensorSpec spec = left.shape.size() < right.shape.size() ? right : left;
  StringRef aten = getArithmetic(op, spec.dtype);
  if (aten.empty())
    return -1;
  std::vector<step::Arg> args{makeValue("self", lhs),
                              makeValue(aten == "aten.pow.Tensor_Tensor" ? "exponent" : "other", rhs)};
  if (aten == "aten.add.Tensor" || aten == "aten.sub.Tensor")
    args.push_back(makeInteger("alpha", 1));
  if (aten == "aten.div.Tensor_mode") {
    step::Arg mode;
    mode.name = "rounding_mode";
    mode.kind = Kind::string;
    mode.string = "trunc";
    args.push_back(mode);
  }
  return lowering.emit(aten, std::move(args), spec);
}

/// A floating tensor and a number: the op that has the number as an attribute, or -1.
static int64_t combineNumber(Lowering &lowering, StringRef op, int64_t id, const Number &number, bool isLeft) {
  if (!isFloating(lowering.spec(id).dtype))
    return -1;
  bool commutes = op == "stablehlo.add" || op == "stablehlo.multiply";
  if (op == "stablehlo.subtract" && isLeft)
    return lowering.scalarOp("aten.rsub.Scalar", id, number);
  if (op == "stablehlo.power")
    return isLeft ? lowering.emit("aten.pow.Scalar", {makeNumber("self", number), makeValue("exponent", id)},
                                  lowering.spec(id))
                  : lowering.emit("aten.pow.Tensor_Scalar", {makeValue("self", id), makeNumber("exponent", number)},
                                  lowering.spec(id));
  if (isLeft && !commutes)
    return -1;
  StringRef aten = llvm::StringSwitch<StringRef>(op)
                       .Case("stablehlo.add", "aten.add.Scalar")
                       .Case("stablehlo.subtract", "aten.sub.Scalar")
                       .Case("stablehlo.multiply", "aten.mul.Scalar")
                       .Case("stablehlo.divide", "aten.div.Scalar")
                       .Default("");
  return aten.empty() ? -1 : lowering.scalarOp(aten, id, number);
}

static LogicalResult lowerBinary(Lowering &lowering, Operation *op) {
  if (failed(checkOperands(op, 2)))
    return failure();
  TensorSpec spec = specOf(op);
  StringRef name = nameOf(op);
  if (getArithmetic(name, spec.dtype).empty())
    return emitError(op->getLoc()) << "'" << name << "' of " << runtime::nameOf(spec.dtype) << " is not supported";
  if (name == "stablehlo.multiply" && isFloating(spec.dtype) && op->getOperand(0) == op->getOperand(1))
    return lowerSquare(lowering, op);
  for (bool isLeft : {false, true}) {
    Tensor &number = lowering.get(op->getOperand(isLeft ? 0 : 1)),
           &other = lowering.get(op->getOperand(isLeft ? 1 : 0));
    if (!number.number || other.isRepeated())
      continue;
    // A square and nothing, as the absolute value of what could be complex is spelled. No square is -0.
    if (name == "stablehlo.add" && other.root >= 0 && number.number->asDouble() == 0) {
      Tensor result = other;
      return lowering.bind(op->getResult(0), result), success();
    }
    if (int64_t id = combineNumber(lowering, name, lowering.use(other), *number.number, isLeft); id >= 0)
      return lowering.bind(op->getResult(0), id), success();
  }
  return broadcastOp(
      lowering, op, [&](ArrayRef<int64_t> ids, const TensorSpec &) { return combine(lowering, name, ids[0], ids[1]); });
}

static LogicalResult lowerCompare(Lowering &lowering, Operation *op) {
  FailureOr<StringRef> direction = getEnum(op, "comparison_direction"), type = getEnum(op, "compare_type");
  if (failed(checkOperands(op, 2)) || failed(direction) || failed(type))
    return failure();
  if (*type == "TOTALORDER")
    return opError(op) << "comparisons in total order are not supported";
  StringRef name = llvm::StringSwitch<StringRef>(*direction)
                       .Case("EQ", "eq")
                       .Case("NE", "ne")
                       .Case("LT", "lt")
                       .Case("LE", "le")
                       .Case("GT", "gt")
                       .Case("GE", "ge")
                       .Default("");
  if (name.empty())
    return opError(op) << "comparison_direction must be EQ, NE, LT, LE, GT or GE, found '" << *direction << "'";
  Tensor &lhs = lowering.get(op->getOperand(0)), &rhs = lowering.get(op->getOperand(1));
  if (rhs.number && !lhs.isRepeated() && lhs.spec.dtype != DType::I1) {
    lowering.bind(op->getResult(0),
                  lowering.emit(("aten." + name + ".Scalar").str(),
                                {makeValue("self", lowering.use(lhs)), makeNumber("other", *rhs.number)}, specOf(op)));
    return success();
  }
  return broadcastOp(lowering, op, [&](ArrayRef<int64_t> ids, const TensorSpec &spec) {
    return lowering.emit(("aten." + name + ".Tensor").str(), {makeValue("self", ids[0]), makeValue("other", ids[1])},
                         spec);
  });
}

static LogicalResult lowerSelect(Lowering &lowering, Operation *op) {
  if (failed(checkOperands(op, 3)))
    return failure();
  // A condition without dimensions is for all elements, as ATen broadcasts it.
  return broadcastOp(lowering, op, [&](ArrayRef<int64_t> ids, const TensorSpec &spec) {
    return lowering.emit("aten.where.self",
                         {makeValue("condition", ids[0]), makeValue("self", ids[1]), makeValue("other", ids[2])}, spec);
  });
}

/// clamp(min, x, max) is min(max(x, min), max).
static LogicalResult lowerClamp(Lowering &lowering, Operation *op) {
  if (failed(checkOperands(op, 3)))
    return failure();
  if (specOf(op).dtype == DType::I1)
    return opError(op) << "booleans are not supported";
  return broadcastOp(lowering, op, [&](ArrayRef<int64_t> ids, const TensorSpec &) {
    return combine(lowering, "stablehlo.minimum", combine(lowering, "stablehlo.maximum", ids[1], ids[0]), ids[2]);
  });
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static Number toNumber(const APFloat &value) {
  APFloat wide = value;
  bool loses;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return {Kind::real, wide.convertToDouble(), 0};
}

static Number toNumber(const APInt &value, DType dtype) {
  if (dtype == DType::I1)
    return {Kind::boolean, 0, !value.isZero()};
  return {Kind::integer, 0, dtype == DType::U8 ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue()};
}

static bool isSame(const Number &a, const Number &b) {
  return a.kind == b.kind && a.integer == b.integer &&
         (a.real == b.real || (std::isnan(a.real) && std::isnan(b.real))) &&
         std::signbit(a.real) == std::signbit(b.real);
}

/// Most constants of a step are one number. Others are few runs of equal ones; an array of data is an argument.
static LogicalResult lowerConstant(Lowering &lowering, Operation *op) {
  constexpr size_t kMostRuns = 64;
  TensorSpec spec = specOf(op);
  auto elements = dyn_cast_or_null<ElementsAttr>(getAttribute(op, "value"));
  auto ints = dyn_cast_or_null<DenseIntElementsAttr>(elements);
  auto floats = dyn_cast_or_null<DenseFPElementsAttr>(elements);
  if (!ints && !floats) {
    InFlightDiagnostic error = opError(op) << "a constant must have its elements in the text";
    error.attachNote() << "print with get_asm(print_generic_op_form=True, enable_debug_info=True) and without a limit "
                          "for large elements, or give the array to the step as an argument of kind constant";
    return error;
  }
  SmallVector<std::pair<Number, int64_t>> runs;
  auto add = [&](const Number &number) {
    if (runs.empty() || !isSame(runs.back().first, number))
      runs.emplace_back(number, 0);
    ++runs.back().second;
  };
  if (elements.isSplat() && ints)
    runs.emplace_back(toNumber(ints.getSplatValue<APInt>(), spec.dtype), elements.getNumElements());
  else if (elements.isSplat())
    runs.emplace_back(toNumber(floats.getSplatValue<APFloat>()), elements.getNumElements());
  else if (ints)
    for (const APInt &value : ints.getValues<APInt>())
      add(toNumber(value, spec.dtype));
  else
    for (const APFloat &value : floats.getValues<APFloat>())
      add(toNumber(value));
  if (runs.empty())
    return opError(op) << "a constant without elements is not supported";
  if (runs.size() == 1) {
    Tensor result;
    result.spec = spec;
    result.number = runs[0].first;
    return lowering.bind(op->getResult(0), result), success();
  }
  if (runs.size() > kMostRuns) {
    InFlightDiagnostic error = opError(op) << "a constant of " << elements.getNumElements()
                                           << " different elements is not supported";
    error.attachNote() << "give the array to the step as an argument of kind constant, or compute it there from "
                          "jnp.arange";
    return error;
  }
  step::Arg parts;
  parts.name = "tensors";
  parts.kind = Kind::values;
  for (auto [number, count] : runs)
    parts.integers.push_back(lowering.full({{count}, spec.dtype}, number));
  int64_t flat =
      lowering.emit("aten.cat.default", {parts, makeInteger("dim", 0)}, {{elements.getNumElements()}, spec.dtype});
  lowering.bind(op->getResult(0), lowering.view(flat, Ints(spec.shape.begin(), spec.shape.end())));
  return success();
}

/// Calls of functions that have no op of their own, by name.
static LogicalResult lowerCustomCall(Lowering &lowering, Operation *op) {
  auto target = dyn_cast_or_null<StringAttr>(getAttribute(op, "call_target_name"));
  StringRef name = target ? target.getValue() : "";
  StringRef aten = llvm::StringSwitch<StringRef>(name)
                       .Case("mhlo.erf", "aten.erf.default")
                       .Case("mhlo.erfc", "aten.erfc.default")
                       .Case("mhlo.erf_inv", "aten.erfinv.default")
                       .Case("mhlo.sinh", "aten.sinh.default")
                       .Case("mhlo.cosh", "aten.cosh.default")
                       .Case("mhlo.tan", "aten.tan.default")
                       .Default("");
  if (aten.empty()) {
    InFlightDiagnostic error = opError(op) << "custom call '@" << name << "' is not supported";
    error.attachNote() << "known are mhlo.erf, mhlo.erfc, mhlo.erf_inv, mhlo.sinh, mhlo.cosh and mhlo.tan; lower for "
                          "platform cpu, without sharding annotations and kernels of your own";
    return error;
  }
  return lowerUnary(lowering, op, aten);
}

/// A composite is the call of the function that says what it is.
static LogicalResult lowerComposite(Lowering &lowering, Operation *op) {
  auto callee = dyn_cast_or_null<FlatSymbolRefAttr>(getAttribute(op, "decomposition"));
  if (!callee)
    return opError(op) << "a composite must name its decomposition";
  return lowering.inlineCall(op, callee.getValue());
}

void spmd::stablehlo::addElementwiseHandlers(HandlerTable &table) {
  for (StringRef name : {"negate", "exponential", "exponential_minus_one", "log", "log_plus_one", "sqrt", "rsqrt",
                         "tanh", "logistic", "abs", "floor", "ceil", "round_nearest_even", "sine", "cosine", "tan"})
    table[("stablehlo." + name).str()] = &lowerUnary;
  for (StringRef name : {"chlo.erf", "chlo.erfc", "chlo.erf_inv", "chlo.sinh", "chlo.cosh"})
    table[name] = &lowerUnary;
  for (StringRef name : {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power", "atan2",
                         "and", "or", "xor"})
    table[("stablehlo." + name).str()] = &lowerBinary;
  table["chlo.square"] = &lowerSquareOp;
  table["stablehlo.sign"] = &lowerSign;
  table["stablehlo.is_finite"] = &lowerIsFinite;
  table["stablehlo.not"] = &lowerNot;
  table["stablehlo.convert"] = &lowerConvert;
  table["stablehlo.optimization_barrier"] = &lowerIdentity;
  table["stablehlo.compare"] = &lowerCompare;
  table["stablehlo.select"] = &lowerSelect;
  table["stablehlo.clamp"] = &lowerClamp;
  table["stablehlo.constant"] = &lowerConstant;
  table["stablehlo.custom_call"] = &lowerCustomCall;
  table["stablehlo.composite"] = &lowerComposite;
}
