//===- ScalarCode.cpp - the body of a kernel, point by point --------------===//

#include "ScalarCode.h"
#include "ScalarOps.h"
#include "spmd/Runtime/Core/Philox.h"
#include "llvm/ADT/DenseMap.h"
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

bool isInteger(Value value) { return !isa<FloatType>(value.getType()); }

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
    auto word = [&](unsigned k) {
      return static_cast<uint64_t>(operands[k]->integers[operands[k]->size() == 1 ? 0 : i]);
    };
    drawn[i] = runtime::philoxUniform(runtime::philox(word(0), word(1), word(2), op.getStream())[op.getWord()]);
  }
  return drawn;
}

/// Runs arith and math ops of a block, one after the other; ops of kernels are left to `kernelOp`.
class CodeRunner {
public:
  /// The lanes of an op of kernels: nothing when it is none.
  std::function<std::optional<Lanes>(Operation &, ArrayRef<const TypedLanes *>)> kernelOp;

  LogicalResult run(Block &block, std::vector<TypedLanes> arguments);
  std::vector<TypedLanes> yielded;
};

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
    if (!evaluateScalarOp(op, operands, result)) {
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

LogicalResult runScalarCode(Block &block, size_t size,
                            llvm::function_ref<std::vector<TypedLanes>(size_t begin, size_t count)> read,
                            llvm::function_ref<void(size_t begin, size_t count, const TypedLanes &value)> write) {
  constexpr size_t kCount = 1024;
  for (size_t begin = 0; begin < size; begin += kCount) {
    size_t count = std::min(kCount, size - begin);
    CodeRunner runner;
    if (failed(runner.run(block, read(begin, count))))
      return failure();
    write(begin, count, runner.yielded.front());
  }
  return success();
}

} // namespace spmd::interp
