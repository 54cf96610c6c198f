//===- BatchDims.cpp - Saying which dimension is the batch ----------------===//

#include "spmd/Pipelines/BatchDims.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace spmd;

LogicalResult spmd::setBatchDims(ModuleOp module, ArrayRef<std::pair<std::string, int64_t>> dims) {
  func::FuncOp step = getStep(module);
  if (!step)
    return failure();
  for (const auto &[name, dim] : dims) {
    SmallVector<StringRef> known;
    bool found = false;
    for (unsigned arg = 0, e = step.getNumArguments(); arg != e; ++arg) {
      auto batch = getArgRole<BatchAttr>(step, arg);
      if (!batch)
        continue;
      known.push_back(batch.getName());
      if (batch.getName() != name)
        continue;
      found = true;
      int64_t rank = cast<RankedTensorType>(step.getArgumentTypes()[arg]).getRank();
      if (dim < -1 || dim >= rank)
        return step.emitError("batch input '") << name << "' has " << rank << " dimensions, none is number " << dim;
      step.setArgAttr(arg, kArgAttr, BatchAttr::get(module.getContext(), name, dim));
    }
    if (!found)
      return step.emitError("there is no batch input '") << name << "'; there are: " << llvm::join(known, ", ");
  }
  return success();
}
