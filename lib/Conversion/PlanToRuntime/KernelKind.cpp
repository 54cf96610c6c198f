//===- KernelKind.cpp - What a manifest says of a kernel -------------------===//

#include "KernelKind.h"
#include "dialects/Spmd/ElementType.h"

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

std::optional<runtime::KernelProducts> getProducts(KernelOpInterface op) {
  if (!isa<GroupedGemmOp, GroupedOuterOp>(op))
    return std::nullopt;
  std::optional<runtime::DType> dtype = getDType(cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
  return runtime::KernelProducts{static_cast<int64_t>(op.getFlops()), dtype.value_or(runtime::DType::F32)};
}

} // namespace spmd::kernel
