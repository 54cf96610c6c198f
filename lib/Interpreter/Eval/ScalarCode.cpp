//===- ScalarCode.cpp - the body of a kernel, point by point --------------===//

#include "ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "spmd/Runtime/Core/Philox.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
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
  }
  return b;
}

double neutralElement(kernel::ReduceKind kind) {
  if (kind == kernel::ReduceKind::Add)
    return 0;
  double infinity = std::numeric_limits<double>::infinity();
  return kind == kernel::ReduceKind::Max ? -infinity : infinity;
}

namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

double maximum(double a, double b) { return combine(kernel::ReduceKind::Max, a, b); }
double minimum(double a, double b) { return combine(kernel::ReduceKind::Min, a, b); }

Unary getUnary(Operation &op) {
  return llvm::TypeSwitch<Operation *, Unary>(&op)
      .Case<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::ExtSIOp, arith::IndexCastOp>(
          [](auto) -> Unary { return [](double x) { return x; }; })
      .Case([](arith::ExtUIOp op) -> Unary {
        if (op.getIn().getType().isInteger(1))
          return [](double x) { return x; };
        return nullptr;
      })
      .Case([](arith::NegFOp) -> Unary { return [](double x) { return -x; }; })
      .Case([](arith::FPToSIOp) -> Unary { return [](double x) { return std::trunc(x); }; })
      .Case<math::AbsFOp, math::AbsIOp>([](auto) -> Unary { return [](double x) { return std::fabs(x); }; })
      .Case([](math::ExpOp) -> Unary { return [](double x) { return std::exp(x); }; })
      .Case([](math::LogOp) -> Unary { return [](double x) { return std::log(x); }; })
      .Case([](math::SqrtOp) -> Unary { return [](double x) { return std::sqrt(x); }; })
      .Case([](math::TanhOp) -> Unary { return [](double x) { return std::tanh(x); }; })
      .Case([](math::ErfOp) -> Unary { return [](double x) { return std::erf(x); }; })
      .Case([](math::CosOp) -> Unary { return [](double x) { return std::cos(x); }; })
      .Case([](math::SinOp) -> Unary { return [](double x) { return std::sin(x); }; })
      .Default([](Operation *) -> Unary { return nullptr; });
}

/// Every comparison but `ne` is false of not-a-number.
Binary getComparison(arith::CmpFPredicate predicate) {
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return [](double a, double b) -> double { return a == b; };
  case arith::CmpFPredicate::UNE:
    return [](double a, double b) -> double { return !(a == b); };
  case arith::CmpFPredicate::OLT:
    return [](double a, double b) -> double { return a < b; };
  case arith::CmpFPredicate::OLE:
    return [](double a, double b) -> double { return a <= b; };
  case arith::CmpFPredicate::OGT:
    return [](double a, double b) -> double { return a > b; };
  case arith::CmpFPredicate::OGE:
    return [](double a, double b) -> double { return a >= b; };
  default:
    return nullptr;
  }
}

Binary getComparison(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return getComparison(arith::CmpFPredicate::OEQ);
  case arith::CmpIPredicate::ne:
    return getComparison(arith::CmpFPredicate::UNE);
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return getComparison(arith::CmpFPredicate::OLT);
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return getComparison(arith::CmpFPredicate::OLE);
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return getComparison(arith::CmpFPredicate::OGT);
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return getComparison(arith::CmpFPredicate::OGE);
  }
  return nullptr;
}

double bitwise(double a, double b, int64_t (*op)(int64_t, int64_t)) {
  return static_cast<double>(op(static_cast<int64_t>(a), static_cast<int64_t>(b)));
}

Binary getBinary(Operation &op) {
  return llvm::TypeSwitch<Operation *, Binary>(&op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) -> Binary { return [](double a, double b) { return a + b; }; })
      .Case<arith::SubFOp, arith::SubIOp>([](auto) -> Binary { return [](double a, double b) { return a - b; }; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) -> Binary { return [](double a, double b) { return a * b; }; })
      .Case([](arith::DivFOp) -> Binary { return [](double a, double b) { return a / b; }; })
      .Case([](arith::DivSIOp) -> Binary { return [](double a, double b) { return std::trunc(a / b); }; })
      .Case<arith::MaximumFOp, arith::MaxSIOp>([](auto) -> Binary { return maximum; })
      .Case<arith::MinimumFOp, arith::MinSIOp>([](auto) -> Binary { return minimum; })
      .Case([](math::PowFOp) -> Binary { return [](double a, double b) { return std::pow(a, b); }; })
      .Case([](arith::AndIOp) -> Binary {
        return [](double a, double b) { return bitwise(a, b, [](int64_t x, int64_t y) { return x & y; }); };
      })
      .Case([](arith::OrIOp) -> Binary {
        return [](double a, double b) { return bitwise(a, b, [](int64_t x, int64_t y) { return x | y; }); };
      })
      .Case([](arith::XOrIOp) -> Binary {
        return [](double a, double b) { return bitwise(a, b, [](int64_t x, int64_t y) { return x ^ y; }); };
      })
      .Case([](arith::CmpFOp compare) { return getComparison(compare.getPredicate()); })
      .Case([](arith::CmpIOp compare) { return getComparison(compare.getPredicate()); })
      .Default([](Operation *) -> Binary { return nullptr; });
}

/// A lane of a value that may be the same everywhere.
double lane(const Lanes &lanes, size_t i) { return lanes[lanes.size() == 1 ? 0 : i]; }

Lanes constantOf(arith::ConstantOp op) {
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    return {number.getValueAsDouble()};
  APInt value = cast<IntegerAttr>(op.getValue()).getValue();
  if (value.getBitWidth() == 1)
    return {value.isZero() ? 0.0 : 1.0};
  return {static_cast<double>(value.getSExtValue())};
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

} // namespace

FailureOr<std::vector<Lanes>> runScalarCode(Block &block, std::vector<Lanes> arguments, const ScalarContext &context) {
  DenseMap<Value, Lanes> lanes;
  for (auto [argument, values] : llvm::zip_equal(block.getArguments(), arguments))
    lanes[argument] = std::move(values);
  for (Operation &op : block.without_terminator()) {
    auto operand = [&](unsigned i) -> const Lanes & { return lanes.find(op.getOperand(i))->second; };
    size_t size = 1;
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      size = std::max(size, operand(i).size());
    Lanes result(size);
    if (Unary unary = getUnary(op)) {
      for (size_t i = 0; i < size; ++i)
        result[i] = unary(lane(operand(0), i));
    } else if (Binary binary = getBinary(op)) {
      for (size_t i = 0; i < size; ++i)
        result[i] = binary(lane(operand(0), i), lane(operand(1), i));
    } else if (isa<arith::SelectOp>(op)) {
      for (size_t i = 0; i < size; ++i)
        result[i] = lane(operand(0), i) != 0 ? lane(operand(1), i) : lane(operand(2), i);
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      result = constantOf(constant);
    } else if (auto index = dyn_cast<kernel::IndexOp>(op)) {
      result = context.index(index.getDim());
    } else if (auto coordinate = dyn_cast<kernel::CoordOp>(op)) {
      result = {context.coordinate(coordinate.getAxis())};
    } else if (auto reduce = dyn_cast<kernel::ReduceOp>(op)) {
      result = context.reduce(reduce, operand(0));
    } else if (auto uniform = dyn_cast<kernel::UniformOp>(op)) {
      auto word = [&](unsigned i, size_t l) { return static_cast<uint64_t>(static_cast<int64_t>(lane(operand(i), l))); };
      for (size_t i = 0; i < size; ++i)
        result[i] = runtime::philoxUniform(
            runtime::philox(word(0, i), word(1, i), word(2, i), uniform.getStream())[uniform.getWord()]);
    } else if (auto table = dyn_cast<kernel::SegmentConstantOp>(op)) {
      result = segmentTable(table, context);
    } else {
      op.emitError() << "the interpreter has no definition of '" << op.getName() << "' in a kernel";
      return failure();
    }
    lanes[op.getResult(0)] = std::move(result);
  }
  std::vector<Lanes> yielded;
  for (Value value : block.getTerminator()->getOperands())
    yielded.push_back(lanes.find(value)->second);
  return yielded;
}

} // namespace spmd::interp
