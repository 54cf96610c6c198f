//===- PaddedRows.cpp - rows whose end nobody writes or reads -------------===//

#include "dialects/Kernel/PaddedRows.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"

using namespace mlir;

namespace spmd::kernel {

std::optional<PaddedRows> getPaddedRows(ClusterOp cluster, unsigned result) {
  auto type = cast<RankedTensorType>(cluster.getResult(result).getType());
  AccessMap map = AccessMap::get(cluster.getResultMap(result));
  if (type.getRank() < 2 || type.getNumElements() == 0 || !map.isLinear())
    return std::nullopt;
  int64_t written = 1, ld = type.getShape().back(), rows = type.getNumElements() / ld;
  for (auto [dim, size] : llvm::enumerate(cluster.getDims()))
    if (map.uses(dim))
      written *= size;
  PaddedRows padded{written / rows, ld};
  // All of the rows, each from its begin.
  auto range = map.getRange(cluster.getDims());
  bool isPadded = written % rows == 0 && padded.columns < ld && range && range->first == 0 &&
                  range->second == (rows - 1) * ld + padded.columns - 1 &&
                  (ld - padded.columns) * getElementBytes(type) < kMostRowAlignment;
  return isPadded ? std::optional(padded) : std::nullopt;
}

} // namespace spmd::kernel
