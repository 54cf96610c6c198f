//===- Map.cpp - elementwise application over broadcast tensors -----------===//

#include "Map.h"
#include "mlir/IR/BuiltinAttributes.h"

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

FailureOr<Shape> commonShape(OpCall &call, ArrayRef<const Tensor *> operands) {
  Shape shape;
  for (const Tensor *operand : operands) {
    std::optional<Shape> next = broadcastShapes(shape, operand->shape());
    if (!next)
      return call.error() << "operands do not broadcast together";
    shape = std::move(*next);
  }
  return shape;
}

} // namespace spmd::interp
