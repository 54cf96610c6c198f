//===- Recomputable.cpp - saved values in the order of their price --------===//

#include "spmd/Transforms/Recompute/Recomputable.h"

#include "SavedValues.h"
#include <set>

using namespace mlir;

namespace spmd {

/// Of the reference machine (lib/Cost/machines/reference-h100.json): FLOP/s of a product of 16 bits with large and narrow
/// results, and bytes/s of memory.
constexpr double kFlops = 989e12 * 0.72, kNarrowFlops = 989e12 * 0.62, kBandwidth = 3.35e12 * 0.9;

std::vector<Recomputable> findRecomputable(func::FuncOp step) {
  recompute::SavedValues values(step);
  std::vector<recompute::Candidate> candidates = values.findCandidates();
  // Price per byte, and the place in the program.
  std::vector<std::pair<double, size_t>> order;
  auto getSeconds = [&](size_t i) {
    const recompute::Candidate &one = candidates[i];
    return one.flops / kFlops + one.narrowFlops / kNarrowFlops + one.written / kBandwidth;
  };
  for (size_t i = 0; i < candidates.size(); ++i)
    order.push_back({getSeconds(i) / static_cast<double>(candidates[i].bytes), i});
  llvm::sort(order);
  std::vector<Recomputable> all;
  for (auto [price, i] : order)
    all.push_back({candidates[i].value, candidates[i].bytes, getSeconds(i)});
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

} // namespace spmd
