//===- ScalarBodies.cpp - any op that has a scalar body -------------------===//
//
// The op's own body is built for float64 (its constants are not rounded to the
// program's types) and run for every element; the harness of test/Coverage
// compares the values with PyTorch's.
//
//===----------------------------------------------------------------------===//

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

/// The elements of a tensor, repeated to the shape; one alone stays one.
static TypedLanes readLanes(const Tensor &tensor, ShapeRef shape) {
  Tensor full = tensor.numel() == 1 ? tensor : broadcastTo(tensor, shape);
  TypedLanes lanes;
  lanes.isInteger = !full.isFloating();
  if (lanes.isInteger)
    lanes.integers = full.integers();
  else
    lanes.reals = full.reals();
  return lanes;
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
  Value value = cast<aten::AtenOpInterface>(twin).buildScalarBody(builder, scalars.getArguments());
  func::ReturnOp::create(builder, value);

  auto type = cast<RankedTensorType>(call.op->getResult(0).getType());
  std::vector<TypedLanes> arguments;
  for (const Tensor &operand : call.operands())
    arguments.push_back(readLanes(operand, type.getShape()));
  auto yielded = runScalarCode(scalars, std::move(arguments));
  if (failed(yielded))
    return failure();

  Tensor result(call.resultType(), type.getShape());
  const TypedLanes &lanes = yielded->front();
  bool isOne = lanes.size() == 1;
  for (int64_t i = 0, e = result.numel(); i < e; ++i) {
    if (lanes.isInteger)
      result.integerData()[i] = wrapTo(result.dtype(), lanes.integers[isOne ? 0 : i]);
    else
      result.realData()[i] = lanes.reals[isOne ? 0 : i];
  }
  call.result(std::move(result));
  return success();
}

} // namespace spmd::interp
