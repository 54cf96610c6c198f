//===- Recomputable.cpp - saved values in the order of their price --------===//

#include "spmd/Transforms/Recompute/Recomputable.h"

#include "SavedValues.h"
#include <set>

using namespace mlir;

namespace spmd {

/// Of the reference machine (an H100 with library kernels): FLOP/s of a product of 16 bits, and bytes/s of memory.
constexpr double kFlops = 989e12 * 0.72, kBandwidth = 3.35e12 * 0.9;

std::vector<Recomputable> findRecomputable(func::FuncOp step) {
  recompute::SavedValues values(step);
  std::vector<recompute::Candidate> candidates = values.findCandidates();
  // Price per byte, and the place in the program.
  std::vector<std::pair<double, size_t>> order;
  auto getSeconds = [&](size_t i) { return candidates[i].flops / kFlops + candidates[i].written / kBandwidth; };
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

} // namespace spmd
