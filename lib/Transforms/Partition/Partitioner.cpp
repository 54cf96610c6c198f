//===- Partitioner.cpp - visits the captured step -------------------------===//

#include "Partitioner.h"
#include "KeepSums.h"

#include "dialects/Aten/AtenRanks.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;
using spmd::aten::AtenOpInterface;

namespace spmd::partition {

Partitioner::Partitioner(Step &step, GradientUse known, bool isFinal)
    : step(step), domain(step), builder(step.func.getContext()), loc(step.func.getLoc()), known(std::move(known)),
      isFinal(isFinal) {
  this->known.wanted.resize(step.units.size());
  recorded.wanted.resize(step.units.size());
  unitIsReduced.resize(step.units.size());
}

LogicalResult Partitioner::run(Step &step) {
  GradientUse use;
  {
    Partitioner trial(step, {}, /*isFinal=*/false);
    LogicalResult result = trial.emitAll();
    trial.newFunc.erase();
    if (failed(result))
      return failure();
    use = std::move(trial.recorded);
  }
  Partitioner partitioner(step, std::move(use), /*isFinal=*/true);
  if (failed(partitioner.emitAll())) {
    partitioner.newFunc.erase();
    return failure();
  }
  func::FuncOp made = partitioner.newFunc;
  made->moveBefore(step.func);
  step.func.erase();
  made.setName("step");
  localizeSlices(made);
  return step.scattersSums ? keepSumsAcross(step, made) : success();
}

LogicalResult Partitioner::emitAll() {
  createFunction();
  Block &body = step.func.getBody().front();
  SmallVector<Operation *> late;
  for (Operation &op : body.without_terminator()) {
    bool needsLate = known.late.contains(&op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                       return operand.getDefiningOp() && known.late.contains(operand.getDefiningOp());
                     });
    if (needsLate) {
      known.late.insert(&op);
      late.push_back(&op);
    } else if (failed(emit(&op)) || cannotConvert) {
      return failure();
    }
  }
  for (Operation *op : late)
    if (failed(emit(op)))
      return failure();
  current = nullptr;
  if (failed(emitReturn()) || cannotConvert)
    return failure();
  if (isFinal)
    warnOfReplicatedWork();
  return success();
}

void Partitioner::tag(Operation *op) {
  if (segment)
    op->setAttr(kSegmentAttr, segment);
}

AxisState Partitioner::getState(Value value) const {
  if (isParameter(value) || parameterViews.contains(value))
    return AxisState::replicated();
  return states.lookup(value);
}

void Partitioner::setLocal(Value value, AxisState state, Value local) {
  states[value] = state;
  locals[value].push_back({state, local});
}

Operation *Partitioner::cloneOnto(Operation *op, ValueRange operands, TypeRange results) {
  Operation *clone = builder.insert(op->cloneWithoutRegions());
  clone->setOperands(operands);
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), results))
    result.setType(type);
  return clone;
}

bool Partitioner::isParameterViewOp(Operation *op) const {
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  if (!iface || op->getNumOperands() == 0)
    return false;
  // All of the parameter, which is gathered again wherever it is used, see [Note: order]; a piece of it is kept.
  auto count = [](Value value) { return typeOf(value).getNumElements(); };
  bool isWhole = iface.movesElements() && op->getNumOperands() == 1 &&
                 llvm::all_of(op->getResults(), [&](Value r) { return count(r) >= count(op->getOperand(0)); });
  return isWhole && (isParameter(op->getOperand(0)) || parameterViews.contains(op->getOperand(0))) &&
         llvm::none_of(op->getResults(), [&](Value result) { return domain.getHome(result).has_value(); });
}

LogicalResult Partitioner::emit(Operation *op) {
  current = op;
  loc = op->getLoc();
  segment = op->getAttr(kSegmentAttr);
  if (isAlongTensor(op, step.mesh))
    return emitAlongTensor(op);
  if (!isa<AtenOpInterface>(op))
    return op->emitError() << "'" << op->getName() << "' cannot be partitioned: it is no aten op ("
                           << describeSource(loc) << ")";
  if (isParameterViewOp(op)) {
    parameterViews.insert_range(op->getResults());
    return success();
  }
  if (auto list = dyn_cast<aten::ListOpInterface>(op))
    return emitList(list);
  if (OwnerDomain::isFullNorm(op) && getNormKind(op) && !isParameter(op->getOperand(0)) &&
      !parameterViews.contains(op->getOperand(0)))
    if (std::optional<Place> place = domain.getWanted(op->getOperand(0)))
      return emitNorm(op, place->unit, {{Member(place->segment, op->getOperand(0)), op->getResult(0)}});
  if (Place place; runsAtHome(op, place))
    return emitAtHome(op, place);
  if (emitStackOfTables(op))
    return success();
  return emitGeneric(op);
}

LogicalResult Partitioner::emitGeneric(Operation *op) {
  if (isa<aten::C10dAllReduceOp, aten::C10dAllGatherOp, aten::C10dReduceScatterOp>(op))
    return emitAmongRanks(op);
  if (step.isLocalView) {
    FailureOr<bool> done = emitVarying(op);
    if (failed(done) || *done)
      return success(succeeded(done));
  }
  SmallVector<AxisState> operandStates;
  for (Value operand : op->getOperands()) {
    AxisState state = getState(operand);
    operandStates.push_back(state.isOwned() ? AxisState::replicated() : state);
  }
  // A gradient stays partial; but many copies of one cost more to reduce than the value, unless they are the
  // parameter's own gradient.
  bool copies = isa<aten::ExpandOp>(op);
  bool staysPartial = llvm::all_of(op->getResults(), [&](Value result) {
    return (domain.isGradientBound(result) && (!copies || domain.getWanted(result))) || domain.getHome(result);
  });
  FailureOr<OpStates> chosen = propagate(op, operandStates, staysPartial, step.ranks);
  if (failed(chosen))
    return failure();

  SmallVector<Value> operands;
  for (auto [operand, want, fill] : llvm::zip_equal(op->getOperands(), chosen->operands, chosen->fill))
    operands.push_back(fill ? getMasked(operand, want, *fill) : get(operand, want));
  SmallVector<Type> types;
  for (auto [result, state] : llvm::zip_equal(op->getResults(), chosen->results))
    types.push_back(getLocalType(typeOf(result), state));
  countWork(op, *chosen);

  Operation *clone = builder.insert(op->cloneWithoutRegions());
  clone->setOperands(operands);
  if (failed(cast<aten::ShardingOpInterface>(clone).localize(types)))
    return op->emitError() << "'" << op->getName() << "' cannot compute a shard of its result (" << describeSource(loc)
                           << ")";
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), types))
    result.setType(type);
  if (runsOnChunks(op) && typeOf(op->getResult(0)).getRank() == 0 && chosen->results.front().isReplicated())
    clone = takeFirstOfEqual(clone);
  for (auto [old, state, result] : llvm::zip_equal(op->getResults(), chosen->results, clone->getResults()))
    setLocal(old, state, result);
  if (llvm::any_of(operandStates, [](AxisState s) { return s.isShard(); }))
    for (Value result : op->getResults())
      shardAgain(result);
  return success();
}

/// True when a GEMM or attention uses the value, or what light ops make of it.
static bool feedsHeavyOp(Value value) {
  SmallVector<Value> open{value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      auto iface = dyn_cast<aten::CostOpInterface>(user);
      if (!iface || !seen.insert(user).second)
        continue;
      if (iface.isHeavy())
        return true;
      llvm::append_range(open, user->getResults());
    }
  return false;
}

/// An op that had to gather an operand gives a replicated value, and all that follows would be replicated too. Slicing
/// it is free, so work that is worth it goes on with shards.
void Partitioner::shardAgain(Value value) {
  auto type = typeOf(value);
  if (!getState(value).isReplicated() || !feedsHeavyOp(value))
    return;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (size >= step.ranks) {
      // Whoever needs it whole finds the whole value, too.
      AxisState state = AxisState::shard(dim, 1, getChunk(size, step.ranks));
      get(value, state);
      states[value] = state;
      return;
    }
}

/// Counts heavy work, and what of it no mesh axis cuts.
void Partitioner::countWork(Operation *op, const OpStates &chosen) {
  auto iface = cast<aten::CostOpInterface>(op);
  if (!iface.isHeavy() || step.ranks == 1 || step.isLocalView)
    return;
  double flops = iface.getFlops();
  totalWork += flops;
  if (llvm::any_of(chosen.operands, [](AxisState s) { return s.isShard(); }))
    return;
  replicatedWork += flops;
  if (flops > largestReplicatedFlops) {
    largestReplicatedFlops = flops;
    largestReplicated = op;
  }
}

void Partitioner::warnOfReplicatedWork() {
  constexpr double kWorthAWarning = 0.01;
  if (!largestReplicated || replicatedWork <= kWorthAWarning * totalWork)
    return;
  auto percent = static_cast<int64_t>(100 * replicatedWork / totalWork + 0.5);
  emitWarning(largestReplicated->getLoc())
      << percent << " % of the floating-point operations of matrix products and attention run on every rank alike; "
      << "the largest is '" << largestReplicated->getName() << "' (" << describeSource(largestReplicated->getLoc())
      << "), whose result of " << getTensorBytes(typeOf(largestReplicated->getResult(0))) << " bytes every rank has whole; "
      << "none of its operands is cut over the ranks; to cut them, give the inputs they come from a batch dimension "
         "(--batch-dim=NAME=DIM), and keep it apart from dimensions that an op needs whole";
}

} // namespace spmd::partition
