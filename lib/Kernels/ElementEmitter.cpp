//===- ElementEmitter.cpp - scalar ops of a body at a width ---------------===//

#include "ElementEmitter.h"
#include "PhiloxEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

/// A cast between index and an integer is one between i64 and it.
static Value emitIndexCast(CodeBuilder &b, Operation &op, Value operand, int64_t width) {
  Type to = getWideType(op.getResult(0).getType(), width);
  unsigned fromBits = getElementTypeOrSelf(operand.getType()).getIntOrFloatBitWidth();
  unsigned toBits = getElementTypeOrSelf(to).getIntOrFloatBitWidth();
  if (fromBits == toBits)
    return operand;
  if (fromBits > toBits)
    return arith::TruncIOp::create(b, to, operand);
  if (isa<arith::IndexCastUIOp>(op))
    return arith::ExtUIOp::create(b, to, operand);
  return arith::ExtSIOp::create(b, to, operand);
}

Value emitElementOp(CodeBuilder &b, Operation &op, ValueRange operands) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = dyn_cast<IntegerAttr>(constant.getValue());
    if (value && value.getType().isIndex())
      return b.i64(value.getInt());
    return b.constant(constant.getValue());
  }
  if (auto uniform = dyn_cast<UniformOp>(op))
    return emitUniform(b, operands[0], operands[1], operands[2], uniform.getStream(), uniform.getWord());
  int64_t width = 1;
  for (Value operand : operands)
    if (auto vector = dyn_cast<VectorType>(operand.getType()))
      width = vector.getNumElements();
  SmallVector<Value> wide;
  for (Value operand : operands)
    wide.push_back(b.broadcast(operand, width));
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return emitIndexCast(b, op, wide.front(), width);
  OperationState state(op.getLoc(), op.getName());
  state.addOperands(wide);
  state.addTypes(getWideType(op.getResult(0).getType(), width));
  state.addAttributes(op.getAttrs());
  return b.create(state)->getResult(0);
}

Value emitIota(CodeBuilder &b, Value first, int64_t width) {
  if (width == 1)
    return first;
  auto steps = llvm::to_vector(llvm::seq<int64_t>(0, width));
  auto type = VectorType::get({width}, b.getI64Type());
  Value iota = b.constant(DenseElementsAttr::get(type, ArrayRef<int64_t>(steps)));
  return arith::AddIOp::create(b, b.broadcast(first, width), iota);
}

} // namespace spmd::kernel
