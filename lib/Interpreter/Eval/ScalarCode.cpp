//===- ScalarCode.cpp - the body of a kernel, point by point --------------===//

#include "ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "spmd/Runtime/Core/Philox.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace spmd::interp {

double combine(kernel::ReduceKind kind, double a, double b) {
  switch (kind) {
  case kernel::ReduceKind::Add:
    return a + b;
  case kernel::ReduceKind::Max:
    return std::isnan(a) || a > b ? a : b;
  case kernel::ReduceKind::Min:
    return std::isnan(a) || a < b ? a : b;
  case kernel::ReduceKind::Mul:
    return a * b;
  }
  return b;
}

double neutralElement(kernel::ReduceKind kind) {
  if (kind == kernel::ReduceKind::Add)
    return 0;
  if (kind == kernel::ReduceKind::Mul)
    return 1;
  double infinity = std::numeric_limits<double>::infinity();
  return kind == kernel::ReduceKind::Max ? -infinity : infinity;
}

namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);
using IntegerBinary = int64_t (*)(int64_t, int64_t);

double maximum(double a, double b) { return combine(kernel::ReduceKind::Max, a, b); }
double minimum(double a, double b) { return combine(kernel::ReduceKind::Min, a, b); }

/// A function of one float.
Unary getUnary(Operation &op) {
  return llvm::TypeSwitch<Operation *, Unary>(&op)
      .Case<arith::ExtFOp, arith::TruncFOp>([](auto) -> Unary { return [](double x) { return x; }; })
      .Case([](arith::NegFOp) -> Unary { return [](double x) { return -x; }; })
      .Case([](math::AbsFOp) -> Unary { return [](double x) { return std::fabs(x); }; })
      .Case([](math::FloorOp) -> Unary { return [](double x) { return std::floor(x); }; })
      .Case([](math::CeilOp) -> Unary { return [](double x) { return std::ceil(x); }; })
      .Case([](math::TruncOp) -> Unary { return [](double x) { return std::trunc(x); }; })
      .Case([](math::RoundEvenOp) -> Unary { return [](double x) { return std::nearbyint(x); }; })
      .Case([](math::ExpOp) -> Unary { return [](double x) { return std::exp(x); }; })
      .Case([](math::Exp2Op) -> Unary { return [](double x) { return std::exp2(x); }; })
      .Case([](math::ExpM1Op) -> Unary { return [](double x) { return std::expm1(x); }; })
      .Case([](math::LogOp) -> Unary { return [](double x) { return std::log(x); }; })
      .Case([](math::Log2Op) -> Unary { return [](double x) { return std::log2(x); }; })
      .Case([](math::Log10Op) -> Unary { return [](double x) { return std::log10(x); }; })
      .Case([](math::Log1pOp) -> Unary { return [](double x) { return std::log1p(x); }; })
      .Case([](math::SqrtOp) -> Unary { return [](double x) { return std::sqrt(x); }; })
      .Case([](math::SinOp) -> Unary { return [](double x) { return std::sin(x); }; })
      .Case([](math::CosOp) -> Unary { return [](double x) { return std::cos(x); }; })
      .Case([](math::TanOp) -> Unary { return [](double x) { return std::tan(x); }; })
      .Case([](math::AsinOp) -> Unary { return [](double x) { return std::asin(x); }; })
      .Case([](math::AcosOp) -> Unary { return [](double x) { return std::acos(x); }; })
      .Case([](math::AtanOp) -> Unary { return [](double x) { return std::atan(x); }; })
      .Case([](math::SinhOp) -> Unary { return [](double x) { return std::sinh(x); }; })
      .Case([](math::CoshOp) -> Unary { return [](double x) { return std::cosh(x); }; })
      .Case([](math::TanhOp) -> Unary { return [](double x) { return std::tanh(x); }; })
      .Case([](math::AsinhOp) -> Unary { return [](double x) { return std::asinh(x); }; })
      .Case([](math::AcoshOp) -> Unary { return [](double x) { return std::acosh(x); }; })
      .Case([](math::AtanhOp) -> Unary { return [](double x) { return std::atanh(x); }; })
      .Case([](math::ErfOp) -> Unary { return [](double x) { return std::erf(x); }; })
      .Case([](math::ErfcOp) -> Unary { return [](double x) { return std::erfc(x); }; })
      .Default([](Operation *) -> Unary { return nullptr; });
}

/// A function of two floats.
Binary getBinary(Operation &op) {
  return llvm::TypeSwitch<Operation *, Binary>(&op)
      .Case([](arith::AddFOp) -> Binary { return [](double a, double b) { return a + b; }; })
      .Case([](arith::SubFOp) -> Binary { return [](double a, double b) { return a - b; }; })
      .Case([](arith::MulFOp) -> Binary { return [](double a, double b) { return a * b; }; })
      .Case([](arith::DivFOp) -> Binary { return [](double a, double b) { return a / b; }; })
      .Case([](arith::RemFOp) -> Binary { return [](double a, double b) { return std::fmod(a, b); }; })
      .Case([](arith::MaximumFOp) -> Binary { return maximum; })
      .Case([](arith::MinimumFOp) -> Binary { return minimum; })
      .Case([](math::PowFOp) -> Binary { return [](double a, double b) { return std::pow(a, b); }; })
      .Case([](math::Atan2Op) -> Binary { return [](double a, double b) { return std::atan2(a, b); }; })
      .Case([](math::CopySignOp) -> Binary { return [](double a, double b) { return std::copysign(a, b); }; })
      .Default([](Operation *) -> Binary { return nullptr; });
}

/// Wrap-around arithmetic, without what C++ leaves undefined.
int64_t wrapping(uint64_t value) { return static_cast<int64_t>(value); }

/// A function of two integers, before the result is wrapped to its width.
IntegerBinary getIntegerBinary(Operation &op) {
  return llvm::TypeSwitch<Operation *, IntegerBinary>(&op)
      .Case([](arith::AddIOp) -> IntegerBinary {
        return [](int64_t a, int64_t b) { return wrapping(uint64_t(a) + uint64_t(b)); };
      })
      .Case([](arith::SubIOp) -> IntegerBinary {
        return [](int64_t a, int64_t b) { return wrapping(uint64_t(a) - uint64_t(b)); };
      })
      .Case([](arith::MulIOp) -> IntegerBinary {
        return [](int64_t a, int64_t b) { return wrapping(uint64_t(a) * uint64_t(b)); };
      })
      .Case([](arith::DivSIOp) -> IntegerBinary {
        return [](int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrapping(-uint64_t(a)) : a / b; };
      })
      .Case([](arith::RemSIOp) -> IntegerBinary {
        return [](int64_t a, int64_t b) -> int64_t { return b == 0 || b == -1 ? 0 : a % b; };
      })
      .Case([](arith::MaxSIOp) -> IntegerBinary { return [](int64_t a, int64_t b) { return std::max(a, b); }; })
      .Case([](arith::MinSIOp) -> IntegerBinary { return [](int64_t a, int64_t b) { return std::min(a, b); }; })
      .Case([](arith::AndIOp) -> IntegerBinary { return [](int64_t a, int64_t b) { return a & b; }; })
      .Case([](arith::OrIOp) -> IntegerBinary { return [](int64_t a, int64_t b) { return a | b; }; })
      .Case([](arith::XOrIOp) -> IntegerBinary { return [](int64_t a, int64_t b) { return a ^ b; }; })
      .Case([](arith::ShLIOp) -> IntegerBinary {
        return [](int64_t a, int64_t b) { return wrapping(uint64_t(a) << (b & 63)); };
      })
      .Case([](arith::ShRSIOp) -> IntegerBinary { return [](int64_t a, int64_t b) { return a >> (b & 63); }; })
      .Default([](Operation *) -> IntegerBinary { return nullptr; });
}

/// Every comparison but `ne` is false of not-a-number.
template <typename T>
std::optional<bool> compare(StringRef predicate, T a, T b) {
  if (predicate == "eq")
    return a == b;
  if (predicate == "ne")
    return !(a == b);
  if (predicate == "lt")
    return a < b;
  if (predicate == "le")
    return a <= b;
  if (predicate == "gt")
    return a > b;
  if (predicate == "ge")
    return a >= b;
  return std::nullopt;
}

/// "olt" and "slt" as "lt"; "uno" and others as they are. Unsigned comparisons are of truth values.
StringRef getPredicate(Operation &op) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    StringRef name = arith::stringifyCmpFPredicate(compare.getPredicate());
    if (name == "une" || name.starts_with("o"))
      return name == "une" ? "ne" : name == "one" || name == "ord" ? "" : name.drop_front();
    return name == "uno" ? name : "";
  }
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return "";
  StringRef name = arith::stringifyCmpIPredicate(compare.getPredicate());
  return name.size() == 3 ? name.drop_front() : name;
}

bool isInteger(Value value) { return !isa<FloatType>(value.getType()); }

/// `value` as an integer of this type: i1 is 0 or 1, others wrap.
int64_t wrapTo(Type type, int64_t value) {
  if (isa<IndexType>(type))
    return value;
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  return width >= 64 ? value : wrapping(uint64_t(value) << (64 - width)) >> (64 - width);
}

/// A float as an integer: to zero; what does not fit is the smallest, as x86 has it.
int64_t truncateToInteger(double value) {
  bool fits = value >= -0x1p63 && value < 0x1p63;
  return fits ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}

TypedLanes makeLanes(bool isInteger, size_t size) {
  TypedLanes lanes;
  lanes.isInteger = isInteger;
  if (isInteger)
    lanes.integers.resize(size);
  else
    lanes.reals.resize(size);
  return lanes;
}

/// Numbers as lanes of a value of this type, and back.
TypedLanes toTyped(Type type, Lanes numbers) {
  TypedLanes lanes;
  lanes.isInteger = !isa<FloatType>(type);
  if (!lanes.isInteger)
    lanes.reals = std::move(numbers);
  else
    for (double number : numbers)
      lanes.integers.push_back(wrapTo(type, static_cast<int64_t>(number)));
  return lanes;
}
Lanes toNumbers(TypedLanes lanes) {
  if (!lanes.isInteger)
    return std::move(lanes.reals);
  return Lanes(lanes.integers.begin(), lanes.integers.end());
}

/// A lane of a value that may be the same everywhere.
double real(const TypedLanes &lanes, size_t i) { return lanes.reals[lanes.reals.size() == 1 ? 0 : i]; }
int64_t integer(const TypedLanes &lanes, size_t i) { return lanes.integers[lanes.integers.size() == 1 ? 0 : i]; }

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

Lanes segmentTable(kernel::SegmentConstantOp op, const ScalarContext &context) {
  auto elements = cast<DenseElementsAttr>(op.getValues());
  std::vector<double> entries;
  if (isa<FloatType>(elements.getElementType()))
    for (APFloat entry : elements.getValues<APFloat>()) {
      bool losesInfo = false;
      entry.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      entries.push_back(entry.convertToDouble());
    }
  else
    for (APInt entry : elements.getValues<APInt>())
      entries.push_back(static_cast<double>(entry.getSExtValue()));
  int64_t count = entries.size();
  return context.segmentConstant(Tensor(DType::f64, {count}, std::move(entries)));
}

/// Operands: seed, step, and the element's number in the global tensor.
Lanes drawUniform(kernel::UniformOp op, ArrayRef<const TypedLanes *> operands) {
  size_t size = 1;
  for (const TypedLanes *operand : operands)
    size = std::max(size, operand->size());
  Lanes drawn(size);
  for (size_t i = 0; i < size; ++i) {
    auto word = [&](unsigned k) { return static_cast<uint64_t>(integer(*operands[k], i)); };
    drawn[i] = runtime::philoxUniform(runtime::philox(word(0), word(1), word(2), op.getStream())[op.getWord()]);
  }
  return drawn;
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

/// Runs arith and math ops of a block, one after the other; ops of kernels are left to `kernelOp`.
class CodeRunner {
public:
  /// The lanes of an op of kernels: nothing when it is none.
  std::function<std::optional<Lanes>(Operation &, ArrayRef<const TypedLanes *>)> kernelOp;

  LogicalResult run(Block &block, std::vector<TypedLanes> arguments);
  std::vector<TypedLanes> yielded;

private:
  bool evaluate(Operation &op, ArrayRef<const TypedLanes *> operands, TypedLanes &result);
};

bool CodeRunner::evaluate(Operation &op, ArrayRef<const TypedLanes *> operands, TypedLanes &result) {
  size_t size = result.size();
  if (Unary unary = getUnary(op)) {
    for (size_t i = 0; i < size; ++i)
      result.reals[i] = unary(real(*operands[0], i));
  } else if (Binary binary = getBinary(op)) {
    for (size_t i = 0; i < size; ++i)
      result.reals[i] = binary(real(*operands[0], i), real(*operands[1], i));
  } else if (IntegerBinary whole = getIntegerBinary(op)) {
    for (size_t i = 0; i < size; ++i)
      result.integers[i] = whole(integer(*operands[0], i), integer(*operands[1], i));
  } else if (StringRef predicate = getPredicate(op); !predicate.empty()) {
    bool isWhole = operands[0]->isInteger;
    for (size_t i = 0; i < size; ++i) {
      if (predicate == "uno")
        result.integers[i] = std::isnan(real(*operands[0], i)) || std::isnan(real(*operands[1], i));
      else if (isWhole)
        result.integers[i] = *compare(predicate, integer(*operands[0], i), integer(*operands[1], i));
      else
        result.integers[i] = *compare(predicate, real(*operands[0], i), real(*operands[1], i));
    }
  } else if (isa<arith::SelectOp>(op)) {
    for (size_t i = 0; i < size; ++i) {
      const TypedLanes &chosen = integer(*operands[0], i) != 0 ? *operands[1] : *operands[2];
      if (result.isInteger)
        result.integers[i] = integer(chosen, i);
      else
        result.reals[i] = real(chosen, i);
    }
  } else if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    for (size_t i = 0; i < size; ++i)
      result.reals[i] = static_cast<double>(integer(*operands[0], i));
  } else if (isa<arith::FPToSIOp>(op)) {
    for (size_t i = 0; i < size; ++i)
      result.integers[i] = truncateToInteger(real(*operands[0], i));
  } else if (isa<arith::BitcastOp>(op)) {
    for (size_t i = 0; i < size; ++i)
      bitcast(op, *operands[0], result, i);
  } else if (isa<arith::ExtUIOp>(op)) {
    uint64_t mask = llvm::maskTrailingOnes<uint64_t>(op.getOperand(0).getType().getIntOrFloatBitWidth());
    for (size_t i = 0; i < size; ++i)
      result.integers[i] = wrapping(uint64_t(integer(*operands[0], i)) & mask);
  } else if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp, math::AbsIOp>(op)) {
    bool isAbs = isa<math::AbsIOp>(op);
    for (size_t i = 0; i < size; ++i) {
      int64_t value = integer(*operands[0], i);
      result.integers[i] = isAbs && value < 0 ? wrapping(-uint64_t(value)) : value;
    }
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = constantOf(constant);
    return true;
  } else {
    return false;
  }
  if (result.isInteger)
    for (int64_t &value : result.integers)
      value = wrapTo(op.getResult(0).getType(), value);
  return true;
}

LogicalResult CodeRunner::run(Block &block, std::vector<TypedLanes> arguments) {
  DenseMap<Value, TypedLanes> lanes;
  for (auto [argument, values] : llvm::zip_equal(block.getArguments(), arguments))
    lanes[argument] = std::move(values);
  for (Operation &op : block) {
    SmallVector<const TypedLanes *> operands;
    size_t size = 1;
    for (Value operand : op.getOperands()) {
      operands.push_back(&lanes.find(operand)->second);
      size = std::max(size, operands.back()->size());
    }
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      for (const TypedLanes *value : operands)
        yielded.push_back(*value);
      continue;
    }
    TypedLanes result = makeLanes(isInteger(op.getResult(0)), size);
    if (!evaluate(op, operands, result)) {
      std::optional<Lanes> numbers = kernelOp ? kernelOp(op, operands) : std::nullopt;
      if (!numbers)
        return op.emitError() << "the interpreter has no definition of '" << op.getName() << "' in a kernel";
      result = toTyped(op.getResult(0).getType(), std::move(*numbers));
    }
    lanes[op.getResult(0)] = std::move(result);
  }
  return success();
}

} // namespace

FailureOr<std::vector<Lanes>> runScalarCode(Block &block, std::vector<Lanes> arguments, const ScalarContext &context) {
  std::vector<TypedLanes> typed;
  for (auto [argument, numbers] : llvm::zip_equal(block.getArguments(), arguments))
    typed.push_back(toTyped(argument.getType(), std::move(numbers)));
  CodeRunner runner;
  runner.kernelOp = [&](Operation &op, ArrayRef<const TypedLanes *> operands) -> std::optional<Lanes> {
    if (auto index = dyn_cast<kernel::IndexOp>(op))
      return context.index(index.getDim());
    if (auto coordinate = dyn_cast<kernel::CoordOp>(op))
      return Lanes{context.coordinate(coordinate.getAxis())};
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op))
      return context.reduce(reduce, toNumbers(*operands[0]));
    if (auto table = dyn_cast<kernel::SegmentConstantOp>(op))
      return segmentTable(table, context);
    if (auto uniform = dyn_cast<kernel::UniformOp>(op))
      return drawUniform(uniform, operands);
    return std::nullopt;
  };
  if (failed(runner.run(block, std::move(typed))))
    return failure();
  std::vector<Lanes> yielded;
  for (TypedLanes &value : runner.yielded)
    yielded.push_back(toNumbers(std::move(value)));
  return yielded;
}

FailureOr<std::vector<TypedLanes>> runScalarCode(Block &block, std::vector<TypedLanes> arguments) {
  CodeRunner runner;
  if (failed(runner.run(block, std::move(arguments))))
    return failure();
  return std::move(runner.yielded);
}

} // namespace spmd::interp
