//===- ClusterSkeleton.cpp - how a cluster's points meet threads ----------===//

#include "ClusterSkeleton.h"
#include "dialects/Kernel/Body.h"

using namespace mlir;

namespace spmd::kernel {

SmallVector<unsigned> getNestDims(ClusterOp op) {
  ArrayRef<int64_t> dims = op.getDims();
  llvm::SmallBitVector nest(dims.size());
  for (auto reduce : op.getBodyBlock()->getOps<ReduceOp>())
    for (int64_t d : reduce.getOver())
      nest.set(d);
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    AccessMap access = AccessMap::get(op.getResultMap(i));
    for (unsigned d = op.getParallel(); d < dims.size(); ++d)
      if (!access.uses(d))
        nest.set(d);
  }
  return SmallVector<unsigned>(nest.set_bits_begin(), nest.set_bits_end());
}

ClusterSkeleton::ClusterSkeleton(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                 const Device &device)
    : ClusterValues(b, op, arguments.operands, arguments.results), b(b), device(device), block(arguments.block) {
  nest = getNestDims(op);
  for (unsigned d = 0; d < dims.size(); ++d)
    if (!llvm::is_contained(nest, d))
      gridDims.push_back(d);
}

/// Positions along the lane dim are multiples of the width, and pointers are aligned to 16 bytes.
int64_t ClusterSkeleton::getAlignment(AffineMap map, Type element, int64_t width) {
  int64_t bytes = getStoredBytes(element);
  if (width == 1 || !laneDim)
    return bytes;
  MLIRContext *context = op.getContext();
  AffineExpr index = map.getResult(0);
  index = index.replace(getAffineDimExpr(*laneDim, context), getAffineDimExpr(*laneDim, context) * width);
  index = simplifyAffineExpr(index, map.getNumDims(), map.getNumSymbols());
  int64_t alignment = std::min(width * bytes, kWideBytes);
  while (alignment > bytes && !index.isMultipleOf(alignment / bytes))
    alignment /= 2;
  return alignment;
}

int64_t ClusterSkeleton::getWidth(unsigned dim) const {
  int64_t widest = 1;
  bool isWide = false;
  auto visit = [&](Type type, std::optional<int64_t> stride) {
    if (stride != 1)
      return;
    isWide = true;
    widest = std::max(widest, getElementBytes(type));
  };
  for (auto [access, operand] : llvm::zip_equal(operandAccess, op.getInputs()))
    visit(operand.getType(), access.getStride(dim));
  for (auto [access, type] : llvm::zip_equal(resultAccess, op->getResultTypes())) {
    std::optional<int64_t> stride = access.getStride(dim);
    if (access.uses(dim) && stride != 1)
      return 1;
    visit(type, stride);
  }
  int64_t width = isWide ? std::max<int64_t>(kWideBytes / widest, 1) : 1;
  while (dims[dim] % width)
    width /= 2;
  return width;
}

void ClusterSkeleton::setPosition(Value flat, ArrayRef<unsigned> gridDims) {
  int64_t bound = 1;
  for (unsigned d : gridDims)
    bound *= dims[d];
  for (unsigned i = gridDims.size(); i-- > 0;) {
    int64_t size = dims[gridDims[i]];
    auto [quotient, rest] = i == 0 ? std::pair(Value(), flat) : b.divide(flat, size, bound);
    position[gridDims[i]] = rest;
    flat = quotient;
  }
}

void ClusterSkeleton::setItem(Value item, int64_t items, int64_t width) {
  if (gridDims.empty())
    return;
  int64_t size = dims[*laneDim] / width;
  ArrayRef<unsigned> outer = ArrayRef(gridDims).drop_back();
  auto [quotient, lane] = outer.empty() ? std::pair(b.i64(0), item) : b.divide(item, size, items);
  setPosition(quotient, outer);
  position[*laneDim] = b.mul(lane, width);
}

SmallVector<ClusterSkeleton::LevelStep> ClusterSkeleton::getSteps(unsigned level, const Roots &roots) const {
  unsigned dim = nest[level], number = dim - op.getParallel();
  SmallVector<int64_t> stages;
  for (const Root *root : roots)
    stages.push_back(root->stage[number]);
  llvm::sort(stages);
  stages.erase(llvm::unique(stages), stages.end());
  SmallVector<LevelStep> steps;
  for (int64_t stage : stages) {
    LevelStep &step = steps.emplace_back();
    for (const Root *root : roots)
      if (root->stage[number] == stage)
        (root->dims.test(dim) ? step.inside : root->reduce ? step.before : step.after).push_back(root);
  }
  return steps;
}

unsigned ClusterSkeleton::getLevel(ReduceOp reduce) const {
  return llvm::find(nest, static_cast<unsigned>(*llvm::min_element(reduce.getOver()))) - nest.begin();
}

} // namespace spmd::kernel
