//===- KeptUnits.cpp - Mode default: what a budget lets units keep --------===//

#include "KeptUnits.h"
#include "PlanBytes.h"
#include "dialects/Spmd/ReshardOpen.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Runtime/Core/Text.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace spmd;
using runtime::formatCount;

namespace {

/// A unit that may keep what it has gathered.
struct Candidate {
  StringAttr unit;
  std::string name;     ///< of its first module, for people
  size_t number;        ///< among the candidates as units lie in the IR
  int64_t bytes = 0;    ///< of the gathered buffer, in the type in which it travels
  int64_t sent = 0;     ///< of these a gather brings from other ranks
  int64_t gathers = 0;  ///< that are saved
  int64_t distance = 0; ///< ops between a release and the next gather, of all of these
  int64_t freed = -1;   ///< the op that releases what was gathered last
};

} // namespace

/// What the open units gather, in the program in which none keeps anything.
static FailureOr<SmallVector<Candidate>> listCandidates(ModuleOp module, const PipelineOptions &options) {
  OwningOpRef<ModuleOp> scheduled = module.clone();
  if (failed(runSilently(*scheduled, options, Phase::units, Phase::collectives)))
    return failure();
  llvm::MapVector<StringAttr, Candidate> found;
  for (auto unit : scheduled->getOps<ShardUnitOp>())
    if (unit->hasAttr(kReshardOpenAttr)) {
      StringRef path = unit.getModules().empty() ? "" : cast<StringAttr>(unit.getModules()[0]).getValue();
      found.insert({unit.getSymNameAttr(), Candidate{unit.getSymNameAttr(), path.empty() ? "(root)" : path.str(), found.size()}});
    }
  llvm::DenseMap<Operation *, int64_t> positions;
  int64_t position = 0;
  for (Operation &op : getStep(*scheduled).getBody().front())
    positions[&op] = position++;
  for (auto wait : getStep(*scheduled).getBody().front().getOps<WaitOp>()) {
    auto start = wait.getHandle().getDefiningOp<AllGatherStartOp>();
    auto entry = start && start.getUnitAttr() ? found.find(start.getUnitAttr().getAttr()) : found.end();
    if (entry == found.end())
      continue;
    Candidate &candidate = entry->second;
    auto type = cast<RankedTensorType>(wait->getResult(0).getType());
    int64_t width = type.getElementTypeBitWidth() / 8;
    candidate.bytes = type.getNumElements() * width;
    candidate.sent = candidate.bytes - cast<RankedTensorType>(start.getInput().getType()).getNumElements() * width;
    if (candidate.freed >= 0) {
      ++candidate.gathers;
      candidate.distance += std::max<int64_t>(positions[wait] - candidate.freed, 0);
    }
    candidate.freed = positions[wait];
    for (Operation *user : wait->getResult(0).getUsers())
      if (isa<ReleaseOp>(user))
        candidate.freed = positions[user];
  }
  SmallVector<Candidate> candidates;
  for (auto &[unit, candidate] : found)
    if (candidate.gathers > 0)
      candidates.push_back(candidate);
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::tuple(-a.gathers, a.distance, a.number) < std::tuple(-b.gathers, b.distance, b.number);
  });
  return candidates;
}

static void keep(ModuleOp module, ArrayRef<Candidate> kept) {
  for (auto unit : module.getOps<ShardUnitOp>())
    if (llvm::any_of(kept, [&](const Candidate &c) { return c.unit == unit.getSymNameAttr(); }))
      unit.setReshardAfterForward(false);
}

/// The units that are kept, in the order of the candidates.
static SmallVector<Candidate> choose(ModuleOp module, const PipelineOptions &options, int64_t budget,
                                     ArrayRef<Candidate> candidates) {
  auto fits = [&](ArrayRef<Candidate> kept) {
    OwningOpRef<ModuleOp> changed = module.clone();
    keep(*changed, kept);
    std::optional<int64_t> bytes = planBytes(*changed, options, Phase::units);
    return bytes && *bytes <= budget;
  };
  SmallVector<Candidate> kept, rest(candidates);
  auto fitsWith = [&](size_t count) {
    SmallVector<Candidate> tried(kept);
    tried.append(rest.begin(), rest.begin() + count);
    return fits(tried);
  };
  if (rest.empty() || !fits({}))
    return {};
  while (!rest.empty()) {
    // Of the beginnings of `rest` those of `most` units fit, those of `few` do not.
    size_t most = 0, few = rest.size() + 1;
    for (size_t count = rest.size(); few - most > 1; count = (most + few) / 2)
      (fitsWith(count) ? most : few) = count;
    kept.append(rest.begin(), rest.begin() + most);
    if (most == rest.size())
      break;
    int64_t tooMuch = rest[most].bytes;
    rest.erase(rest.begin(), rest.begin() + most + 1);
    llvm::erase_if(rest, [&](const Candidate &c) { return c.bytes >= tooMuch; });
  }
  return kept;
}

LogicalResult spmd::chooseKeptUnits(ModuleOp module, const PipelineOptions &options, std::optional<int64_t> budget) {
  SmallVector<ShardUnitOp> open;
  for (auto unit : module.getOps<ShardUnitOp>())
    if (unit->hasAttr(kReshardOpenAttr))
      open.push_back(unit);
  if (open.empty())
    return success();
  if (!budget)
    return emitError(module.getLoc())
           << "mode default keeps what is gathered of as many units as fit into memory: say how much there is with "
              "--memory-budget, or take --mode=fully_shard, which keeps none, or --mode=shard_grad_op, which keeps all";
  FailureOr<SmallVector<Candidate>> candidates = listCandidates(module, options);
  // A step that these phases refuse, they refuse again, with words.
  if (failed(candidates))
    candidates.emplace();
  SmallVector<Candidate> kept = choose(module, options, *budget, *candidates);
  keep(module, kept);
  for (ShardUnitOp unit : open)
    unit->removeAttr(kReshardOpenAttr);
  std::string names;
  int64_t saved = 0;
  for (const Candidate &candidate : kept) {
    names += (names.empty() ? ": " : ", ") + candidate.name;
    saved += candidate.gathers * candidate.sent;
  }
  emitRemark(module.getLoc()) << "mode default: " << kept.size() << " of " << candidates->size()
                              << " units that are gathered again keep what is gathered until backward, which saves a "
                                 "rank "
                              << formatCount(saved) << " bytes to receive" << names;
  return success();
}
