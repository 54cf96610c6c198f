//===- KernelKind.cpp - what a kernel is, for people ----------------------===//

#include "KernelKind.h"

using namespace mlir;

namespace spmd::kernel {

StringRef getKernelKind(Operation *op) {
  auto cluster = dyn_cast<ClusterOp>(op);
  if (!cluster)
    return op->getName().stripDialect();
  bool hasRows = false, hasColumns = false;
  cluster.walk([&](ReduceOp reduce) {
    bool isRow = llvm::is_contained(reduce.getOver(), static_cast<int64_t>(cluster.getDims().size()) - 1);
    (isRow ? hasRows : hasColumns) = true;
  });
  if (hasRows && hasColumns)
    return "row and column reduction";
  return hasRows ? "row reduction" : hasColumns ? "column reduction" : "elementwise";
}

} // namespace spmd::kernel
