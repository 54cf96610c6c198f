//===- Recomputable.cpp - saved values in the order of their price --------===//

#include "spmd/Transforms/Recompute/Recomputable.h"

#include "OpWork.h"
#include "SavedValues.h"
#include "spmd/Cost/MachineFile.h"
#include <set>

using namespace mlir;

namespace spmd {

static double getSeconds(const recompute::Candidate &candidate) {
  const cost::Machine &machine = cost::referenceMachine();
  double seconds = static_cast<double>(candidate.written) / machine.memoryBandwidth();
  for (Operation *op : candidate.products)
    seconds += cost::kernelSeconds(recompute::getWork(op), machine);
  return seconds;
}

std::vector<Recomputable> findRecomputable(func::FuncOp step) {
  recompute::SavedValues values(step);
  std::vector<recompute::Candidate> candidates = values.findCandidates();
  // Price per byte, and the place in the program.
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < candidates.size(); ++i)
    order.push_back({getSeconds(candidates[i]) / static_cast<double>(candidates[i].bytes), i});
  llvm::sort(order);
  std::vector<Recomputable> all;
  for (auto [price, i] : order)
    all.push_back({candidates[i].value, candidates[i].bytes, getSeconds(candidates[i]), candidates[i].products.empty()});
  // Of two neighbouring cuts one is kept.
  std::set<std::pair<int64_t, int64_t>> taken;
  llvm::erase_if(all, [&](const Recomputable &one) {
    auto cut = values.getCut(one.value);
    if (!cut)
      return false;
    auto [segment, number] = *cut;
    if (taken.count({segment, number - 1}) || taken.count({segment, number + 1}))
      return true;
    taken.insert(*cut);
    return false;
  });
  return all;
}

void markRecomputed(ArrayRef<Recomputable> values) {
  for (const Recomputable &one : values)
    one.value.getOwner()->setAttr(kRecomputeAttr, UnitAttr::get(one.value.getContext()));
}

void unmarkRecomputed(ArrayRef<Recomputable> values) {
  for (const Recomputable &one : values)
    one.value.getOwner()->removeAttr(kRecomputeAttr);
}

} // namespace spmd
