//===- RecomputedValues.cpp - What a budget makes backward recompute ------===//

#include "RecomputedValues.h"
#include "PlanBytes.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Transforms/Recompute/Recomputable.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace spmd;

/// The least count in (`few`, `most`] for which `fits` is true, where it is true of `most` and of all counts behind the
/// least; `guess` is tried first, then counts at growing distances from it.
static size_t findLeast(size_t few, size_t most, size_t guess, llvm::function_ref<bool(size_t)> fits) {
  for (size_t step = 1; most - few > 1; step *= 2) {
    size_t count = std::clamp(guess, few + 1, most - 1);
    if (fits(count)) {
      most = count;
      guess = count > step ? count - step : 0;
    } else {
      few = count;
      guess = count + step;
    }
    // Both ends are near the guess, or nowhere near: then halves are as good.
    if (step > 4)
      guess = (few + most) / 2;
  }
  return most;
}

std::optional<RecomputedPlan> spmd::chooseRecomputedValues(ModuleOp module, const PipelineOptions &options,
                                                           int64_t budget) {
  std::optional<int64_t> before = planBytes(module, options, Phase::decompose);
  if (!before || *before <= budget)
    return std::nullopt;
  std::vector<Recomputable> values = findRecomputable(getStep(module));
  if (values.empty())
    return std::nullopt;
  int64_t planned = 0;
  auto fits = [&](size_t count) {
    PipelineOptions changed = options;
    changed.recompute = count;
    std::optional<int64_t> bytes = planBytes(module, changed, Phase::decompose);
    planned = bytes.value_or(INT64_MAX);
    return planned <= budget;
  };
  if (!fits(values.size()))
    return planned == INT64_MAX ? std::nullopt
                                : std::optional(RecomputedPlan{static_cast<int64_t>(values.size()), planned});
  size_t guess = 0;
  for (int64_t freed = 0; guess < values.size() && freed < *before - budget; ++guess)
    freed += values[guess].bytes;
  size_t count = findLeast(0, values.size(), guess, fits);
  int64_t bytes = 0;
  double seconds = 0;
  ArrayRef<Recomputable> chosen = ArrayRef(values).take_front(count);
  markRecomputed(chosen);
  for (const Recomputable &one : chosen) {
    bytes += one.bytes;
    seconds += one.seconds;
  }
  emitRemark(module.getLoc()) << "memory budget: backward recomputes " << count << " of " << values.size()
                              << " saved values, " << runtime::formatCount(bytes) << " bytes; modelled cost "
                              << llvm::formatv("{0:f2}", seconds * 1e3).str()
                              << " ms of kernels per step on the reference machine";
  return std::nullopt;
}
