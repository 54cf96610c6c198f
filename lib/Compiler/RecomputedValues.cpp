//===- RecomputedValues.cpp - What backward computes again ----------------===//

#include "RecomputedValues.h"
#include "PlanBytes.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Transforms/Recompute/Recomputable.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <map>
#include <utility>

using namespace mlir;
using namespace spmd;

/// Probes that follow the bytes of the values; then the distance is halved.
static constexpr int kGuessedProbes = 5;
/// Values of a list of which every beginning is planned.
static constexpr size_t kScanned = 32;

namespace {

/// Plans of a step that compute the first `count` values of the list again. The list is made once.
class RecomputedPlans {
public:
  RecomputedPlans(ModuleOp module, const PipelineOptions &options)
      : module(module), options(options), values(findRecomputable(getStep(module))) {}

  size_t size() const { return values.size(); }
  ArrayRef<Recomputable> first(size_t count) const { return ArrayRef(values).take_front(count); }
  /// Bytes of the arena; more than any budget if the step cannot be planned.
  int64_t bytesOf(size_t count);
  /// With the seconds of the step; none if it cannot be planned.
  std::optional<ComparedPlan> planOf(size_t count) { return compare(first(count), /*withTime=*/true); }
  /// The least count in (`few`, size()] of an arena of at most `budget` bytes, where `few` has a larger one.
  size_t findLeast(size_t few, int64_t budget);
  /// The values of a plan of at most `budget` bytes, where `count` is the result of findLeast.
  std::vector<Recomputable> repair(size_t count, int64_t budget);

private:
  std::optional<ComparedPlan> compare(ArrayRef<Recomputable> chosen, bool withTime);
  size_t guess(size_t from, int64_t bytes, int64_t budget) const;

  ModuleOp module;
  const PipelineOptions &options;
  std::vector<Recomputable> values;
  std::map<size_t, int64_t> known;
};

} // namespace

std::optional<ComparedPlan> RecomputedPlans::compare(ArrayRef<Recomputable> chosen, bool withTime) {
  markRecomputed(chosen);
  std::optional<ComparedPlan> plan = comparePlan(module, options, Phase::decompose, withTime);
  unmarkRecomputed(chosen);
  return plan;
}

int64_t RecomputedPlans::bytesOf(size_t count) {
  auto [entry, isNew] = known.try_emplace(count, INT64_MAX);
  if (isNew)
    if (std::optional<ComparedPlan> plan = compare(first(count), /*withTime=*/false))
      entry->second = plan->bytes;
  return entry->second;
}

/// The count whose arena is at most `budget` if that of `from` is `bytes` and each value counts as it stands.
size_t RecomputedPlans::guess(size_t from, int64_t bytes, int64_t budget) const {
  while (bytes > budget && from < values.size())
    bytes -= values[from++].bytes;
  while (from > 0 && bytes + values[from - 1].bytes <= budget)
    bytes += values[--from].bytes;
  return from;
}

size_t RecomputedPlans::findLeast(size_t few, int64_t budget) {
  // An arena need not shrink with each value. Of a short list every count is tried, so that a larger budget never takes
  // more values.
  if (size() <= kScanned) {
    size_t count = few + 1;
    while (count < size() && bytesOf(count) > budget)
      ++count;
    return count;
  }
  size_t most = size(), last = few;
  for (int probe = 0; most - few > 1; ++probe) {
    bool isGuessed = probe < kGuessedProbes && bytesOf(last) != INT64_MAX;
    size_t count = isGuessed ? guess(last, bytesOf(last), budget) : (few + most) / 2;
    count = std::clamp(count, few + 1, most - 1);
    (bytesOf(count) <= budget ? most : few) = count;
    last = count;
  }
  return most;
}

/// In place of the last value, which may free much more than is missing, the cheapest later one that frees enough. The
/// plan is no slower than that of `count` values and no faster than that of one less, so time stays monotone.
std::vector<Recomputable> RecomputedPlans::repair(size_t count, int64_t budget) {
  std::vector<Recomputable> chosen = first(count).vec();
  int64_t missing = bytesOf(count - 1) - budget;
  const Recomputable *best = nullptr;
  for (const Recomputable &one : ArrayRef(values).drop_front(count))
    if (one.bytes >= missing && one.seconds < (best ? best->seconds : chosen.back().seconds))
      best = &one;
  if (!best)
    return chosen;
  Recomputable last = std::exchange(chosen.back(), *best);
  std::optional<ComparedPlan> plan = compare(chosen, /*withTime=*/false);
  if (!plan || plan->bytes > budget)
    chosen.back() = last;
  return chosen;
}

static int64_t getBytes(ArrayRef<Recomputable> values) {
  int64_t bytes = 0;
  for (const Recomputable &one : values)
    bytes += one.bytes;
  return bytes;
}

static double getSeconds(ArrayRef<Recomputable> values) {
  double seconds = 0;
  for (const Recomputable &one : values)
    seconds += one.seconds;
  return seconds;
}

std::optional<RecomputedPlan> spmd::chooseRecomputedValues(ModuleOp module, const PipelineOptions &options,
                                                           int64_t budget) {
  RecomputedPlans plans(module, options);
  int64_t before = plans.bytesOf(0);
  if (before == INT64_MAX || before <= budget || plans.size() == 0)
    return std::nullopt;
  size_t count = plans.findLeast(0, budget);
  if (int64_t bytes = plans.bytesOf(count); bytes > budget)
    return bytes == INT64_MAX ? std::nullopt : std::optional(RecomputedPlan{static_cast<int64_t>(count), bytes});
  std::vector<Recomputable> chosen = plans.repair(count, budget);
  markRecomputed(chosen);
  emitRemark(module.getLoc()) << "memory budget: backward recomputes " << count << " of " << plans.size()
                              << " saved values, " << runtime::formatCount(getBytes(chosen))
                              << " bytes; modelled cost "
                              << llvm::formatv("{0:f2}", getSeconds(chosen) * 1e3).str()
                              << " ms of kernels per step on the reference machine";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Without a budget
//===----------------------------------------------------------------------===//

/// A trade makes the step longer by at most this part of it.
static constexpr double kMostSlowdown = 0.006;
/// A trade frees at least these bytes, or this part of the arena if that is `kSmallTrade` bytes.
static constexpr int64_t kLargeTrade = int64_t(1) << 30, kSmallTrade = int64_t(256) << 20;
static constexpr int64_t kTradedPart = 20;

static int64_t getLeastGain(int64_t arena) {
  return std::min(kLargeTrade, std::max(kSmallTrade, arena / kTradedPart));
}

/// The number of values that are rebuilt beside other results, all of which together take at most `seconds`.
static size_t countTradable(ArrayRef<Recomputable> values, double seconds) {
  size_t count = 0;
  for (double spent = 0; count < values.size() && values[count].isRebuilt; ++count)
    if ((spent += values[count].seconds) > seconds)
      break;
  return count;
}

void spmd::tradeRecomputedValues(ModuleOp module, const PipelineOptions &options) {
  RecomputedPlans plans(module, options);
  ArrayRef<Recomputable> all = plans.first(plans.size());
  // Most steps end here: nothing is planned to compare.
  if (getBytes(all.take_front(countTradable(all, HUGE_VAL))) < kSmallTrade)
    return;
  std::optional<ComparedPlan> before = plans.planOf(0);
  if (!before)
    return;
  double allowed = kMostSlowdown * before->seconds;
  size_t count = countTradable(all, allowed);
  std::optional<ComparedPlan> after;
  while (getBytes(plans.first(count)) >= getLeastGain(before->bytes)) {
    after = plans.planOf(count);
    if (!after || before->bytes - after->bytes < getLeastGain(before->bytes))
      return;
    double cost = after->seconds - before->seconds;
    if (cost <= allowed)
      break;
    // The model of single values was too low: so many fewer, and at least one.
    count = std::min(count - 1, static_cast<size_t>(static_cast<double>(count) * allowed / cost));
    after.reset();
  }
  if (!after)
    return;
  markRecomputed(plans.first(count));
  emitRemark(module.getLoc()) << "backward recomputes " << count << " saved values: the arena is "
                              << runtime::formatCount(before->bytes - after->bytes) << " bytes smaller, the modelled step "
                              << llvm::formatv("{0:f2}", (after->seconds / before->seconds - 1) * 100).str()
                              << " % longer; --no-budget-trades keeps them";
}
