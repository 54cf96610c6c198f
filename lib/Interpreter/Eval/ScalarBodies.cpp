//===- ScalarBodies.cpp - any op that has a scalar body -------------------===//
//
// The op's own body is built for float64 (its constants are not rounded to the
// program's types) and run for every element; the harness of test/Coverage
// compares the values with PyTorch's, and test/unit/Interpreter/ScalarBodiesTest.cpp
// bits with what the op is in C++.
//
//===----------------------------------------------------------------------===//

#include "Map.h"
#include "ScalarCode.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace spmd::interp {

/// Floats as f64, unsigned integers as wide signed ones: the result wraps.
static Type getEvaluationType(Type type) {
  if (isa<FloatType>(type))
    return Float64Type::get(type.getContext());
  return type.isUnsignedInteger() ? IntegerType::get(type.getContext(), 64) : type;
}

static RankedTensorType getEvaluationTensor(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return RankedTensorType::get(type.getShape(), getEvaluationType(type.getElementType()));
}

/// Elements of a tensor; one alone is the same everywhere.
static TypedLanes readLanes(const Tensor &tensor, size_t begin, size_t count) {
  TypedLanes lanes;
  lanes.isInteger = !tensor.isFloating();
  bool isOne = tensor.numel() == 1;
  auto read = [&](auto elements, auto &into) {
    auto part = isOne ? elements : elements.slice(begin, count);
    into.assign(part.begin(), part.end());
  };
  if (lanes.isInteger)
    read(tensor.integers(), lanes.integers);
  else
    read(tensor.reals(), lanes.reals);
  return lanes;
}

/// Writes `count` elements of an array, or one that many times.
template <typename T>
static void writeLanes(const std::vector<T> &lanes, T *into, size_t count) {
  if (lanes.size() == 1)
    std::fill_n(into, count, lanes.front());
  else
    std::copy_n(lanes.begin(), count, into);
}

LogicalResult evaluateScalarBody(OpCall &call) {
  // A twin of the op on f64 tensors that are arguments of a block.
  Block tensors, scalars;
  Operation *twin = call.op->clone();
  tensors.push_back(twin);
  SmallVector<Value> operands;
  for (Value operand : call.op->getOperands()) {
    RankedTensorType type = getEvaluationTensor(operand);
    operands.push_back(tensors.addArgument(type, call.op->getLoc()));
    scalars.addArgument(type.getElementType(), call.op->getLoc());
  }
  twin->setOperands(operands);
  twin->getResult(0).setType(getEvaluationTensor(call.op->getResult(0)));

  ImplicitLocOpBuilder builder(call.op->getLoc(), call.op->getContext());
  builder.setInsertionPointToEnd(&scalars);
  Value value = cast<aten::ScalarBodyOpInterface>(twin).buildScalarBody(builder, scalars.getArguments());
  func::ReturnOp::create(builder, value);

  FailureOr<Shape> shape =
      commonShape(call, llvm::map_to_vector(call.operands(), [](const Tensor &operand) { return &operand; }));
  if (failed(shape))
    return failure();
  SmallVector<Tensor> full;
  for (const Tensor &operand : call.operands())
    full.push_back(operand.numel() == 1 ? operand : broadcastTo(operand, *shape));
  auto read = [&](size_t begin, size_t count) {
    std::vector<TypedLanes> lanes;
    for (const Tensor &tensor : full)
      lanes.push_back(readLanes(tensor, begin, count));
    return lanes;
  };
  Tensor result(call.resultType(), *shape);
  auto write = [&](size_t begin, size_t count, const TypedLanes &value) {
    if (value.isInteger)
      writeLanes(value.integers, result.integerData() + begin, count);
    else
      writeLanes(value.reals, result.realData() + begin, count);
  };
  if (failed(runScalarCode(scalars, result.numel(), read, write)))
    return failure();
  if (!result.isFloating())
    for (int64_t i = 0, e = result.numel(); i < e; ++i)
      result.integerData()[i] = wrapTo(result.dtype(), result.integerData()[i]);
  call.result(std::move(result));
  return success();
}

} // namespace spmd::interp
