//===- KernelFunctions.cpp - The kernels that a plan launches -------------===//

#include "KernelFunctions.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace spmd;

void spmd::addKernelFunctions(func::FuncOp step) {
  OpBuilder builder(step);
  llvm::StringSet<> known;
  for (auto kernel : step.getBody().front().getOps<kernel::KernelOpInterface>()) {
    StringAttr symbol = kernel.getSymbolAttr();
    if (!symbol || !known.insert(symbol.getValue()).second)
      continue;
    Operation *op = kernel;
    OpBuilder::InsertionGuard guard(builder);
    auto function = func::FuncOp::create(builder, op->getLoc(), symbol,
                                         builder.getFunctionType(op->getOperandTypes(), op->getResultTypes()));
    function.setPrivate();
    Block *entry = function.addEntryBlock();
    IRMapping mapping;
    // The same value may be several operands of the kernel. It is several arguments, all but the first unused, so that
    // the kernel still says what it reads twice.
    builder.setInsertionPointToStart(entry);
    Operation *copy = builder.clone(*op, mapping);
    for (OpOperand &operand : copy->getOpOperands()) {
      unsigned first = llvm::find(op->getOperands(), op->getOperand(operand.getOperandNumber())) - op->operand_begin();
      operand.set(entry->getArgument(first));
    }
    func::ReturnOp::create(builder, op->getLoc(), copy->getResults());
  }
}
