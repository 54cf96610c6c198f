//===- VerifyPartition.cpp - spmd-verify-partition ------------------------===//
//
// Numbers in comments are those of the pass description. The checks read the
// encodings only; they share the rules of the ops with the partitioner, and nothing
// else.
//
//===----------------------------------------------------------------------===//

#include "ListOps.h"
#include "Parts.h"
#include "Propagate.h"
#include "States.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace spmd {
#define GEN_PASS_DEF_VERIFYPARTITION
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using namespace spmd::partition;
using spmd::aten::AtenOpInterface;
using spmd::aten::Linearity;
using spmd::aten::ShardingRule;

namespace {

class Verifier {
public:
  explicit Verifier(func::FuncOp step) : step(step) {}
  LogicalResult run();

private:
  InFlightDiagnostic error(Operation *op) {
    return op->emitError() << "'" << op->getName() << "' (" << describeSource(op->getLoc()) << ") ";
  }
  LogicalResult verifyTypes(Operation *op, TypeRange types);
  LogicalResult verifyConversion(Operation *op);
  LogicalResult expect(Operation *op, AxisState from, AxisState to, bool ok);
  LogicalResult verifyAten(AtenOpInterface op);
  LogicalResult verifyPartials(AtenOpInterface op, const ShardingRule *rule);
  LogicalResult verifyShards(AtenOpInterface op, const ShardingRule &rule);
  LogicalResult verifyList(Operation *op);
  LogicalResult verifyVarying(Operation *op);
  LogicalResult verifyReductions();
  LogicalResult verifyReturn();

  func::FuncOp step;
  int64_t ranks = 1;
};

AxisState stateOf(Value value) { return *getState(value.getType()); }

} // namespace

/// 1
LogicalResult Verifier::verifyTypes(Operation *op, TypeRange types) {
  for (Type type : types) {
    if (!isa<RankedTensorType>(type))
      return error(op) << "has type " << type << "; a scheduled step is spmd-verify-schedule's to check";
    if (!getState(type))
      return error(op) << "has type " << type << ", which says no sharding for the mesh";
  }
  return success();
}

LogicalResult Verifier::expect(Operation *op, AxisState from, AxisState to, bool ok) {
  if (ok)
    return success();
  return error(op) << "makes " << to.str() << " from " << from.str();
}

/// 3
LogicalResult Verifier::verifyConversion(Operation *op) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (op->getNumResults() <= index)
      break;
    AxisState from = stateOf(operand), to = stateOf(op->getResult(index));
    bool sameGlobal = getGlobalShape(operand.getType()) == getGlobalShape(op->getResult(index).getType());
    bool ok = sameGlobal;
    if (isa<AllGatherOp>(op))
      ok = ok && (from.isShard() || from.isOwned()) && to.isReplicated();
    else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      ok = ok && (from == AxisState::partial(scatter.getKind()) || from.isVarying()) && (to.isShard() || to.isOwned());
    else if (auto reduce = dyn_cast<AllReduceOp>(op))
      ok =
          ok &&
          (from == AxisState::partial(cast<ReduceKindAttr>(reduce.getKinds()[index]).getValue()) || from.isVarying()) &&
          to.isReplicated();
    else if (isa<SliceOp>(op))
      ok = ok && from.isReplicated() && (to.isShard() || to.isOwned());
    else if (auto mask = dyn_cast<MaskOp>(op))
      ok = ok && from == to && from == AxisState::shard(mask.getDim(), mask.getPre(), mask.getChunk()) &&
           static_cast<int64_t>(mask.getTotal() * mask.getPre()) == getGlobalShape(operand.getType())[from.dim];
    else
      continue;
    if (failed(expect(op, from, to, ok)))
      return failure();
  }
  return success();
}

/// 2
LogicalResult Verifier::verifyPartials(AtenOpInterface op, const ShardingRule *rule) {
  SmallVector<unsigned> partials;
  unsigned counted = 0;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (rule && index < rule->dontCare.size() && rule->dontCare[index])
      continue;
    ++counted;
    if (stateOf(operand).isPartial())
      partials.push_back(index);
  }
  if (partials.empty())
    return success();
  AxisState first = stateOf(op->getOperand(partials.front()));
  for (unsigned index : partials)
    if (stateOf(op->getOperand(index)) != first)
      return error(op) << "has operands that are " << first.str() << " and " << stateOf(op->getOperand(index)).str();
  bool linear = !rule; // view-like
  if (rule && rule->linearity == Linearity::additive)
    linear = partials.size() == counted;
  if (rule && rule->linearity == Linearity::multilinear)
    linear = partials.size() == 1 && llvm::is_contained(rule->multilinearOperands, partials.front());
  bool isNorm = op->getName().getStringRef() == "aten.linalg_vector_norm" &&
                AxisState::partial(getNormKind(op).value_or(ReduceKind::sum)) == first;
  if (!linear && !isNorm)
    return error(op) << "is not linear in operand " << partials.front() << ", which is " << first.str();
  for (Value result : op->getResults())
    if (stateOf(result) != first)
      return error(op) << "gives a " << stateOf(result).str() << " value, but operand " << partials.front() << " is "
                       << first.str();
  return success();
}

/// 4 and 5
LogicalResult Verifier::verifyShards(AtenOpInterface op, const ShardingRule &rule) {
  int64_t factor = ShardingRule::kNone, size = 0;
  AxisState cut;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    AxisState state = stateOf(operand);
    if (!state.isShard())
      continue;
    int64_t here = rule.operands[index].dims[state.dim];
    if (here < 0)
      return error(op) << "needs dimension " << state.dim << " of operand " << index << " whole, which is "
                       << state.str();
    if (factor >= 0 && (here != factor || state.pre != cut.pre || state.chunk != cut.chunk))
      return error(op) << "has operands that are sharded differently: " << cut.str() << " and " << state.str();
    factor = here;
    cut = state;
    size = getGlobalShape(operand.getType())[state.dim];
  }
  if (factor < 0)
    return success();
  // The rule is of local shapes: where a chunk has one row, a dimension that is
  // broadcast, or summed to one row, looks like one that carries the factor.
  auto carriesFactor = [&](const ShardingRule::Value &value, Value of) {
    auto *dim = llvm::find(value.dims, factor);
    return dim != value.dims.end() && getGlobalShape(of.getType())[dim - value.dims.begin()] == size;
  };
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (carriesFactor(rule.operands[index], operand) && !stateOf(operand).isShard() &&
        !(index < rule.dontCare.size() && rule.dontCare[index]))
      return error(op) << "has operand " << index << ", which is " << stateOf(operand).str()
                       << ", where another is sharded in the same dimension";
  }
  std::optional<ReduceKind> contracted;
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    auto *dim = llvm::find(rule.results[index].dims, factor);
    bool has = carriesFactor(rule.results[index], result);
    AxisState want =
        has ? AxisState::shard(dim - rule.results[index].dims.begin(), cut.pre, cut.chunk) : stateOf(result);
    if (stateOf(result) != want || (!has && !want.isPartial()))
      return error(op) << "gives result " << index << " as " << stateOf(result).str() << ", expected "
                       << (has ? want.str() : "partial");
    if (!has && !contracted)
      contracted = want.kind;
  }
  if (!contracted && !rule.fillsPadding)
    return success();
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    AxisState state = stateOf(operand);
    bool dontCare = index < rule.dontCare.size() && rule.dontCare[index];
    if (dontCare || !state.isShard() || !hasPadding(getGlobalShape(operand.getType()), state, ranks))
      continue;
    auto mask = operand.getDefiningOp<MaskOp>();
    if (!mask)
      return error(op) << (contracted ? "adds up" : "looks at") << " padded rows of operand " << index
                       << ", which no spmd.mask has filled";
    double neutral = contracted ? getNeutral(*contracted) : 0;
    if (index < rule.neutral.size() && rule.neutral[index])
      neutral = *rule.neutral[index];
    if (mask.getFill().convertToDouble() != neutral)
      return error(op) << "adds up padded rows of operand " << index << " that are filled with "
                       << mask.getFill().convertToDouble() << ", the neutral element is " << neutral;
  }
  return success();
}

/// 6
LogicalResult Verifier::verifyList(Operation *op) {
  auto unit = op->getAttrOfType<FlatSymbolRefAttr>("unit");
  if (!unit) {
    for (Value operand : op->getOperands())
      if (!stateOf(operand).isReplicated())
        return error(op) << "has an operand that is " << stateOf(operand).str() << ", but names no unit";
    return success();
  }
  auto unitOp = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(op, unit);
  if (!unitOp)
    return error(op) << "names unit " << unit << ", which does not exist";
  int64_t chunk = unitOp.getChunk();
  int64_t segments = unitOp.getLayout().getSegments().size();
  for (Type type : op->getOperandTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    bool isChunk = tensor.getRank() == 1 && tensor.getDimSize(0) == chunk &&
                   getGlobalShape(type) == ArrayRef<int64_t>{unitOp.getLayout().getPadded()} &&
                   getState(type)->isOwned() == unitOp.isSharded();
    bool isNumbers = tensor.getRank() == 0 || (tensor.getRank() == 1 && tensor.getDimSize(0) == segments);
    if (isNumbers && !isChunk && !getState(type)->isReplicated())
      return error(op) << "has operand " << type << ", whose numbers are " << getState(type)->str();
    if (!isChunk && !isNumbers)
      return error(op) << "has operand " << type << ", which is neither a chunk nor a table of unit " << unit;
  }
  return success();
}

/// 9
LogicalResult Verifier::verifyVarying(Operation *op) {
  for (Value operand : op->getOperands())
    if (!stateOf(operand).isVarying() && !stateOf(operand).isReplicated())
      return error(op) << "has an operand that is varying and one that is " << stateOf(operand).str();
  for (Value result : op->getResults())
    if (!stateOf(result).isVarying())
      return error(op) << "has an operand that is varying, but gives a " << stateOf(result).str() << " value";
  return success();
}

LogicalResult Verifier::verifyAten(AtenOpInterface op) {
  if (ListOp::isListOp(op))
    return verifyList(op);
  bool owned = llvm::any_of(op->getOperands(), [](Value v) { return stateOf(v).isOwned(); });
  if (owned) {
    // 6: pointwise on chunks of one size.
    for (Value operand : op->getOperands())
      if (!op.isPointwise() || (stateOf(operand).isOwned() ? operand.getType() != op->getOperand(0).getType() &&
                                                                 getGlobalShape(operand.getType()) !=
                                                                     getGlobalShape(op->getResult(0).getType())
                                                           : !stateOf(operand).isReplicated()))
        return error(op) << "cannot run on chunks of a unit";
    return success();
  }
  if (llvm::any_of(op->getOperands(), [](Value v) { return stateOf(v).isVarying(); }))
    return verifyVarying(op);
  if (op.isViewLike())
    return verifyPartials(op, nullptr);
  if (llvm::all_of(op->getOperands(), [](Value v) { return stateOf(v).isReplicated(); }))
    return success();
  if (auto parts = mapThroughParts(op, llvm::map_to_vector(op->getOperands(), stateOf))) {
    for (auto [index, want] : llvm::enumerate(*parts))
      if (stateOf(op->getResult(index)) != want)
        return error(op) << "gives result " << index << " as " << stateOf(op->getResult(index)).str() << ", expected "
                         << want.str();
    return success();
  }
  FailureOr<ShardingRule> rule = op.getShardingRule();
  if (failed(rule))
    return error(op) << "has no sharding rule, but an operand is not replicated";
  if (failed(verifyPartials(op, &*rule)))
    return failure();
  return verifyShards(op, *rule);
}

/// 7
LogicalResult Verifier::verifyReductions() {
  llvm::StringMap<PackOp> seen;
  for (auto pack : step.getBody().front().getOps<PackOp>()) {
    if (!stateOf(pack).isPartial() && !stateOf(pack).isVarying())
      continue;
    for (Operation *user : pack->getUsers()) {
      auto collective = dyn_cast<CollectiveOpInterface>(user);
      if (!collective || collective.getUnitAttr() != pack.getUnitAttr())
        return error(user) << "uses the gradients of unit " << pack.getUnitAttr() << " before they are reduced";
    }
    for (auto name : pack.getNames().getAsRange<StringAttr>()) {
      auto [entry, first] = seen.try_emplace(name.getValue(), pack);
      if (first)
        continue;
      InFlightDiagnostic diag = error(pack) << "reduces the gradient of " << name << " a second time";
      diag.attachNote(entry->second.getLoc()) << "the first time is here";
      return diag;
    }
  }
  return success();
}

/// 8
LogicalResult Verifier::verifyReturn() {
  Operation *terminator = step.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    AxisState state = stateOf(value);
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(step, index));
    bool chunk = update && isa<ShardAttr>(update.getArg());
    bool own = state.isVarying() && (!update || isa<BufferAttr>(update.getArg()));
    if (!state.isReplicated() && !(chunk && state.isOwned()) && !own)
      return step.emitError() << "result " << index << " of @step is " << state.str() << ", expected replicated";
  }
  return success();
}

LogicalResult Verifier::run() {
  Block &body = step.getBody().front();
  if (failed(verifyTypes(step, body.getArgumentTypes())))
    return failure();
  for (Operation &op : body)
    if (failed(verifyTypes(&op, op.getResultTypes())))
      return failure();
  for (auto mesh : step->getParentOfType<ModuleOp>().getOps<MeshOp>())
    ranks = mesh.getNumRanks();
  for (Operation &op : body.without_terminator()) {
    if (failed(verifyConversion(&op)))
      return failure();
    if (auto aten = dyn_cast<AtenOpInterface>(op); aten && failed(verifyAten(aten)))
      return failure();
  }
  return success(succeeded(verifyReductions()) && succeeded(verifyReturn()));
}

namespace {
struct VerifyPartitionPass : spmd::impl::VerifyPartitionBase<VerifyPartitionPass> {
  void runOnOperation() override {
    func::FuncOp step = getStep(getOperation());
    if (!step || failed(Verifier(step).run()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
