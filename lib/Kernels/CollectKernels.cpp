//===- CollectKernels.cpp - the kernels of a module -----------------------===//

#include "CollectKernels.h"
#include "dialects/Kernel/Kernel.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace spmd::kernel {

FailureOr<SmallVector<Operation *>> collectKernels(ModuleOp module) {
  SmallVector<Operation *> kernels;
  llvm::StringSet<> seen;
  WalkResult walk = module.walk([&](KernelOpInterface op) -> WalkResult {
    if (!op.isGenerated())
      return WalkResult::advance();
    StringAttr symbol = op.getSymbolAttr();
    if (!symbol)
      return op->emitOpError("has no symbol; run spmd-outline-kernels before code generation");
    if (seen.insert(symbol.getValue()).second)
      kernels.push_back(op);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return kernels;
}

} // namespace spmd::kernel
