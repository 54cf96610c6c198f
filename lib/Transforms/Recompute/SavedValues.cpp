//===- SavedValues.cpp - what forward keeps for backward ------------------===//

#include "SavedValues.h"
#include "OpWork.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace spmd::recompute {

/// A value of at most so many bytes is kept: row statistics of a short batch, scalars.
constexpr int64_t kSmallBytes = 128;
/// A value of at most this part of the largest operand of its op is a statistic of it, and is kept.
constexpr int64_t kStatisticPart = 16;

bool isLight(Operation *op) {
  auto aten = dyn_cast<aten::AtenOpInterface>(op);
  return aten && !aten.isHeavy();
}

static bool isStatistic(OpResult value) {
  int64_t largest = 0;
  for (Value operand : value.getOwner()->getOperands())
    largest = std::max(largest, getNumBytes(operand));
  int64_t bytes = getNumBytes(value);
  return bytes <= kSmallBytes || bytes * kStatisticPart <= largest;
}

bool isHeavy(Operation *op) {
  auto aten = dyn_cast<aten::AtenOpInterface>(op);
  return aten && aten.isHeavy();
}

SavedValues::SavedValues(func::FuncOp step) : step(step) {
  auto module = step->getParentOfType<ModuleOp>();
  if (auto names = module->getAttrOfType<ArrayAttr>(kPhasesAttr))
    for (size_t segment = 0; segment < names.size(); ++segment)
      phases.push_back(getPhase(module, segment));
  for (Operation &op : step.getBody().front()) {
    places[&op] = heavyBefore.size();
    heavyBefore.push_back((heavyBefore.empty() ? 0 : heavyBefore.back()) + isHeavy(&op));
    std::optional<int64_t> segment = getSegment(&op);
    if (auto unpack = dyn_cast<UnpackOp>(op); unpack && segment)
      unpacks.try_emplace({unpack.getUnitAttr(), *segment}, unpack);
  }
  findSources();
  findSaved();
  findCuts();
}

std::optional<StepPhase> SavedValues::phaseOf(Operation *op) const {
  std::optional<int64_t> segment = getSegment(op);
  return segment && *segment >= 0 && *segment < static_cast<int64_t>(phases.size()) ? phases[*segment] : std::nullopt;
}

bool SavedValues::isSource(Value base) const { return isa<BlockArgument>(base) || sources.contains(base); }

bool SavedValues::isParameter(Value base) const {
  auto unpack = base.getDefiningOp<UnpackOp>();
  return unpack && unpack.getUnitAttr();
}

UnpackOp SavedValues::findUnpack(Value parameter, int64_t segment) const {
  return unpacks.lookup({parameter.getDefiningOp<UnpackOp>().getUnitAttr(), segment});
}

Value SavedValues::findParameter(Value parameter, int64_t segment) const {
  auto forward = parameter.getDefiningOp<UnpackOp>();
  UnpackOp again = findUnpack(parameter, segment);
  if (!again)
    return {};
  Attribute name = forward.getNames()[cast<OpResult>(parameter).getResultNumber()];
  for (auto [other, value] : llvm::zip(again.getNames(), again.getResults()))
    if (other == name && value.getType() == parameter.getType())
      return value;
  return {};
}

/// What follows from arguments and parameters by light ops alone (masks of positions, tables of sines, casts of
/// parameters) is there anyway or is derived, and statistics are kept.
void SavedValues::findSources() {
  for (Operation &op : step.getBody().front()) {
    if (isa<UnpackOp>(op) || isa<CollectiveOpInterface>(op)) {
      sources.insert_range(op.getResults());
      continue;
    }
    bool isFree = isLight(&op) && isPure(&op) &&
                  llvm::all_of(op.getOperands(), [&](Value operand) { return isSource(getBase(operand)); });
    for (OpResult result : op.getResults())
      if (isFree || (!isView(&op) && isStatistic(result)))
        sources.insert(result);
  }
}

static int64_t getTotalBytes(const llvm::SmallSetVector<Value, 4> &values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += getNumBytes(value);
  return bytes;
}

/// What a kernel of backward reads to compute a pointwise `value`: at each step an operand, or what that is computed from
/// where this is no larger (as lib/Conversion/AtenToKernel/Fusion/Recompute.cpp decides).
SavedValues::Leaves SavedValues::findLeaves(Value value) {
  if (auto known = leaves.find(value); known != leaves.end())
    return known->second;
  Leaves found;
  for (Value operand : value.getDefiningOp()->getOperands()) {
    Value base = getBase(operand);
    if (isSource(base))
      continue;
    auto aten = dyn_cast<aten::AtenOpInterface>(base.getDefiningOp());
    if (aten && aten.isPointwise() && !saved.contains(base))
      if (Leaves deeper = findLeaves(base); getTotalBytes(deeper) <= getNumBytes(base)) {
        found.insert(deeper.begin(), deeper.end());
        continue;
      }
    found.insert(base);
  }
  return leaves[value] = found;
}

void SavedValues::findSaved() {
  Block &body = step.getBody().front();
  for (Operation &op : body) {
    if (!isBackward(&op) || isView(&op))
      continue;
    for (Value operand : op.getOperands()) {
      Value base = getBase(operand);
      if (Operation *def = base.getDefiningOp(); def && isForward(def) && !isSource(base))
        backwardReaders[base].push_back(&op);
    }
  }
  for (Operation &op : body) {
    if (!isForward(&op) || isView(&op))
      continue;
    for (OpResult result : op.getResults()) {
      auto readers = backwardReaders.find(result);
      if (readers == backwardReaders.end())
        continue;
      auto aten = dyn_cast<aten::AtenOpInterface>(op);
      bool isPointwise = aten && aten.isPointwise();
      if (!isPointwise || llvm::any_of(readers->second, isHeavy) ||
          getTotalBytes(findLeaves(result)) > getNumBytes(result)) {
        saved.insert(result);
        continue;
      }
      SmallVector<Operation *, 2> through = readers->second;
      for (Value leaf : findLeaves(result)) {
        saved.insert(leaf);
        llvm::append_range(backwardReaders[leaf], through);
      }
    }
  }
}

/// See [Note: cuts].
void SavedValues::findCuts() {
  // Until where forward reads a value of forward, by segment.
  llvm::DenseMap<Value, int64_t> lastReads;
  Block &body = step.getBody().front();
  for (Operation &op : body)
    if (isForward(&op) && !isView(&op))
      for (Value operand : op.getOperands())
        lastReads[getBase(operand)] = places.lookup(&op);
  llvm::SmallSetVector<Value, 8> live;
  std::optional<int64_t> current;
  int64_t number = 0;
  for (Operation &op : body) {
    if (!isForward(&op) || isView(&op))
      continue;
    if (getSegment(&op) != current) {
      current = getSegment(&op);
      live.clear();
      number = 0;
    }
    int64_t place = places.lookup(&op);
    for (OpResult result : op.getResults())
      if (!isSource(result) && lastReads.lookup(result) > place)
        live.insert(result);
    live.remove_if([&](Value value) { return lastReads.lookup(value) <= place; });
    if (live.size() == 1 && cuts.try_emplace(live.front(), *current, number).second)
      ++number;
  }
}

/// Whether heavy ops run between the last reader in forward and the first one in backward. Otherwise nothing is gained.
bool SavedValues::isAlivePastHeavyOp(OpResult value) const {
  int64_t last = places.lookup(value.getOwner()), first = heavyBefore.size() - 1;
  for (Operation *reader : backwardReaders.lookup(value))
    first = std::min(first, places.lookup(reader));
  SmallVector<Value> open{value};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isView(user))
        llvm::append_range(open, user->getResults());
      else if (isForward(user))
        last = std::max(last, places.lookup(user));
    }
  return first > last && heavyBefore[first - 1] > heavyBefore[last];
}

std::optional<Candidate> SavedValues::makeCandidate(OpResult value) const {
  auto readers = backwardReaders.find(value);
  if (readers == backwardReaders.end() || !isAlivePastHeavyOp(value))
    return std::nullopt;
  std::optional<int64_t> segment = getSegment(readers->second.front());
  int64_t bytes = getNumBytes(value);
  Candidate candidate{value, bytes, {}, isLight(value.getOwner()) ? bytes : 0};
  SmallVector<Operation *> open{value.getOwner()};
  llvm::DenseSet<Operation *> seen;
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    auto aten = dyn_cast<aten::AtenOpInterface>(op);
    if (!aten || !isPure(op) || op->getNumRegions())
      return std::nullopt;
    if (aten.isHeavy())
      candidate.products.push_back(op);
    for (Value operand : op->getOperands()) {
      Value base = getBase(operand);
      if (isParameter(base)) {
        UnpackOp forward = base.getDefiningOp<UnpackOp>();
        auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(forward, forward.getUnitAttr());
        bool isKept = unit && !unit.getReshardAfterForward();
        if (!isKept && (!segment || !findUnpack(base, *segment)))
          return std::nullopt; // nothing gathers it once more
        continue;
      }
      Operation *def = base.getDefiningOp();
      if (!isSource(base) && !saved.contains(base)) {
        if (!isForward(def))
          return std::nullopt;
        // A product reads its operands from memory.
        if (aten.isHeavy() && isLight(def) && !seen.contains(def))
          candidate.written += getNumBytes(base);
        open.push_back(def);
      }
    }
  }
  return candidate;
}

std::optional<std::pair<int64_t, int64_t>> SavedValues::getCut(Value value) const {
  auto cut = cuts.find(value);
  return cut == cuts.end() ? std::nullopt : std::optional(cut->second);
}

std::vector<Candidate> SavedValues::findCandidates() const {
  std::vector<Candidate> all;
  for (Value value : saved)
    if (auto result = dyn_cast<OpResult>(value))
      if (std::optional<Candidate> candidate = makeCandidate(result))
        all.push_back(*candidate);
  llvm::sort(all, [&](const Candidate &a, const Candidate &b) {
    return std::pair(places.lookup(a.value.getOwner()), a.value.getResultNumber()) <
           std::pair(places.lookup(b.value.getOwner()), b.value.getResultNumber());
  });
  return all;
}

} // namespace spmd::recompute
