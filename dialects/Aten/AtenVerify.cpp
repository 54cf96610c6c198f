//===- AtenVerify.cpp - Verifier of pointwise ops -------------------------===//

#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/RuleBuilder.h"
#include "dialects/Aten/TypePromotion.h"

using namespace mlir;
using namespace spmd::aten;

LogicalResult spmd::aten::noConstraints(Operation *) { return success(); }

SmallVector<int64_t> spmd::aten::shapeOf(Value value) { return SmallVector<int64_t>(typeOf(value).getShape()); }

LogicalResult spmd::aten::expectShape(Operation *op, Value value, ArrayRef<int64_t> shape) {
  if (!value || typeOf(value).getShape() == shape)
    return success();
  return op->emitOpError() << "has " << typeOf(value) << ", expected shape [" << shape << "]";
}

/// Shape that `shapes` have together; failure if they do not broadcast.
static FailureOr<SmallVector<int64_t>> broadcast(OperandRange operands) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    ArrayRef<int64_t> other = typeOf(operand).getShape();
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (auto [mine, theirs] : llvm::zip(llvm::reverse(shape), llvm::reverse(other))) {
      if (mine != theirs && mine != 1 && theirs != 1)
        return failure();
      if (mine == 1)
        mine = theirs;
    }
  }
  return shape;
}

Type spmd::aten::getResultElementType(Operation *op, ResultType kind) {
  SmallVector<RankedTensorType> tensors;
  for (Value operand : op->getOperands())
    tensors.push_back(typeOf(operand));
  if (tensors.empty()) // an op that import has yet to refuse
    return {};
  SmallVector<Attribute> scalars;
  for (StringRef name : {"self", "other", "exponent", "min", "max"})
    if (Attribute scalar = op->getAttr(name))
      scalars.push_back(scalar);
  switch (kind) {
  case ResultType::promoted:
    return promoteTypes(tensors, scalars, op->getContext());
  case ResultType::floating: {
    Type type = promoteTypes(tensors, scalars, op->getContext());
    return isa<FloatType>(type) ? type : Float32Type::get(op->getContext());
  }
  case ResultType::quotient:
    return getResultElementType(op, op->getAttr("rounding_mode") ? ResultType::promoted : ResultType::floating);
  case ResultType::boolean:
    return IntegerType::get(op->getContext(), 1);
  case ResultType::first:
    return tensors[0].getElementType();
  case ResultType::selected:
    return promoteTypes(ArrayRef(tensors).drop_front(), {}, op->getContext());
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult spmd::aten::verifyPointwise(Operation *op, ResultType kind) {
  RankedTensorType result = typeOf(op->getResult(0));
  // C1
  FailureOr<SmallVector<int64_t>> shape = broadcast(op->getOperands());
  if (failed(shape))
    return op->emitOpError("has operands that do not broadcast");
  if (ArrayRef<int64_t>(*shape) != result.getShape())
    return op->emitOpError() << "has result " << result << ", its operands broadcast to shape [" << *shape << "]";
  // C2
  if (kind == ResultType::selected && !typeOf(op->getOperand(0)).getElementType().isInteger(1))
    return op->emitOpError() << "has condition " << typeOf(op->getOperand(0)) << ", expected element type i1";
  Type expected = getResultElementType(op, kind);
  if (result.getElementType() != expected)
    return op->emitOpError() << "has result " << result << ", expected element type " << expected;
  return success();
}
