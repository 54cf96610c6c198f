//===- OpWork.cpp - an aten op as the cost model reads it -----------------===//

#include "OpWork.h"
#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Spmd/ElementType.h"
#include "dialects/Spmd/TensorBytes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::recompute {

using cost::CommandKind;

int64_t getNumBytes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isIntOrFloat() ? getTensorBytes(type) : 0;
}

static CommandKind getKind(aten::AtenOpInterface op) {
  return llvm::TypeSwitch<Operation *, CommandKind>(op)
      .Case<aten::SdpaOp>([](auto) { return CommandKind::Attention; })
      .Case<aten::SdpaBackwardOp>([](auto) { return CommandKind::AttentionBackward; })
      .Case<aten::GroupedMmOp, aten::GroupedOuterOp>([](auto) { return CommandKind::GroupedGemm; })
      .Default([&](Operation *) { return op.isMatrixProduct() ? CommandKind::Gemm : CommandKind::Kernel; });
}

cost::KernelWork getWork(Operation *op) {
  auto aten = cast<aten::AtenOpInterface>(op);
  cost::KernelWork work{getKind(aten), runtime::DType::F32, 0, aten.getFlops(), 0};
  for (Value value : op->getOperands())
    work.bytes += static_cast<double>(getNumBytes(value));
  for (Value value : op->getResults())
    work.bytes += static_cast<double>(getNumBytes(value));
  if (auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType())) {
    work.dtype = getDType(type.getElementType()).value_or(work.dtype);
    if (type.getRank() >= 2)
      work.side = std::min(type.getShape().end()[-1], type.getShape().end()[-2]);
  }
  return work;
}

} // namespace spmd::recompute
