//===- VerifyStates.cpp - every op runs in states it allows ---------------===//
//
// Numbers in comments are those of the description of spmd-verify-partition. The checks read the
// encodings only; they share the rules of the ops with the partitioner, and nothing
// else.
//
//===----------------------------------------------------------------------===//

#include "KeepSums.h"
#include "Parts.h"
#include "Propagate.h"
#include "States.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Partition/Verify.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::partition;
using spmd::aten::AtenOpInterface;
using spmd::aten::Linearity;
using spmd::aten::ShardingRule;

namespace {

/// Ranks that meet: all over which the batch is cut, or those that share units or groups of them, those of other rows,
/// or those along the tensor axis.
enum class Group { all, inner, outer, tensor };

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
  FailureOr<Group> verifyGroup(Operation *op, ArrayAttr axes);
  LogicalResult verifyAten(AtenOpInterface op);
  LogicalResult verifyPartials(AtenOpInterface op, const ShardingRule *rule);
  LogicalResult verifyShards(AtenOpInterface op, const ShardingRule &rule);
  LogicalResult verifyView(AtenOpInterface op);
  LogicalResult verifyWhole(AtenOpInterface op);
  LogicalResult verifyList(Operation *op);
  LogicalResult verifyVarying(Operation *op);
  LogicalResult verifyReturn();

  func::FuncOp step;
  int64_t ranks = 1, numAxes = 1;
  bool hasSharedUnits = false; ///< units are cut along all axes
};

AxisState stateOf(Value value) { return *getState(value.getType()); }

} // namespace

/// 1
LogicalResult Verifier::verifyTypes(Operation *op, TypeRange types) {
  for (Type type : types) {
    if (auto handle = dyn_cast<HandleType>(type)) {
      if (failed(verifyTypes(op, handle.getResults())))
        return failure();
      continue;
    }
    if (!isa<RankedTensorType>(type))
      return error(op) << "has type " << type << ", which is no tensor";
    std::optional<AxisState> state = getState(type);
    // A chunk is one axis's, so that of two axes both have to be named; but for those of all axes.
    if (!state || (numAxes == 1 && state->outer != AxisState::Outer::same) ||
        (numAxes > 1 && !hasSharedUnits && state->isOwned() && state->outer == AxisState::Outer::same))
      return error(op) << "has type " << type << ", which says no sharding for the mesh";
  }
  return success();
}

/// 3: a collective is on the axes that its operand's state is of: all, or of two the second, or the first where sums
/// are left to add up.
FailureOr<Group> Verifier::verifyGroup(Operation *op, ArrayAttr axes) {
  for (auto mesh : step->getParentOfType<ModuleOp>().getOps<MeshOp>()) {
    if (isAlongTensor(op, mesh))
      return Group::tensor;
    ArrayRef<Attribute> names = mesh.getDataAxes().getValue();
    if (axes.getValue() == names)
      return Group::all;
    for (size_t shared = 1; shared < names.size(); ++shared)
      if (axes.getValue() == names.take_back(shared))
        return Group::inner;
    if (names.size() > 1 && axes.getValue() == names.take_front())
      return Group::outer;
    return error(op) << "is on axes " << axes << ", the mesh has " << mesh.getAxisNames();
  }
  return Group::all;
}

/// How an op converts operand `index`: the state that it must come from, given what the type says, and what it becomes.
struct Conversion {
  bool fromOk, toOk;
};

/// The dimension is cut as the op says: [pre][total] into chunks.
static bool isCut(AxisState state, Type type, int64_t dim, int64_t pre, int64_t chunk, int64_t total) {
  ArrayRef<int64_t> global = getGlobalShape(type);
  if (state.isOwned())
    return dim == 0 && pre == 1 && state.chunk == chunk && global == ArrayRef<int64_t>{total};
  return state == AxisState::shard(dim, pre, chunk) && global[dim] == pre * total;
}

/// Of a collective along one axis: what the other axis says, before and after.
static bool keepsOtherAxis(Group group, AxisState from, AxisState to) {
  using Outer = AxisState::Outer;
  if (group == Group::all)
    return from.outer == Outer::same && to.outer == Outer::same;
  if (group == Group::outer)
    return from.outer == Outer::partial && to == from.within(Outer::replicated);
  // What is the same on both axes then is the same on all ranks; of sums of all ranks, those of the others are left.
  if (to.isReplicated())
    return from.outer == Outer::replicated;
  return from.outer == Outer::same ? to.outer == (from.isReplicated() ? Outer::replicated : Outer::partial)
                                   : from.outer == to.outer;
}

static Conversion getConversion(Operation *op, Group group, unsigned index, Type fromType, Type toType) {
  AxisState from = *getState(fromType), to = *getState(toType);
  if (group == Group::tensor)
    return {from.outer == AxisState::Outer::same && keepsStateAlongTensor(op, index, from), from == to};
  auto slice = dyn_cast<SliceOp>(op);
  bool isZero = slice && isPackOfZeros(slice.getInput()) && to.isOwned();
  if (!keepsOtherAxis(group, from,
                      isZero && to.outer == AxisState::Outer::partial ? to.within(AxisState::Outer::replicated) : to))
    return {false, false};
  if (group == Group::outer) {
    auto kinds = op->getAttrOfType<ArrayAttr>("kinds");
    return {kinds && cast<ReduceKindAttr>(kinds[index]).getValue() == ReduceKind::sum, true};
  }
  auto isPartial = [&](ReduceKind kind) { return (from.isPartial() && from.kind == kind) || from.isVarying(); };
  auto gather = [&](auto op) -> Conversion {
    int64_t dim = op.getDim(), chunk = cast<RankedTensorType>(fromType).getDimSize(dim) / op.getPre();
    if (from.isVarying()) // each rank's own value becomes a part of one
      return {!op.getUnitAttr(), to.isReplicated()};
    return {isCut(from, fromType, dim, op.getPre(), chunk, op.getTotal()), to.isReplicated()};
  };
  auto scatter = [&](auto op) -> Conversion {
    int64_t dim = op.getDim(), total = getGlobalShape(toType)[dim] / op.getPre();
    return {isPartial(op.getKind()), isCut(to, toType, dim, op.getPre(), op.getChunk(), total)};
  };
  auto reduce = [&](auto op) -> Conversion {
    return {isPartial(cast<ReduceKindAttr>(op.getKinds()[index]).getValue()), to.isReplicated()};
  };
  return llvm::TypeSwitch<Operation *, Conversion>(op)
      .Case<AllGatherOp, AllGatherStartOp>(gather)
      .Case<ReduceScatterOp, ReduceScatterStartOp>(scatter)
      .Case<AllReduceOp, AllReduceStartOp>(reduce)
      .Case([&](SliceOp slice) -> Conversion {
        if (to.isVarying()) // each rank's own from here on, with the rows as its whole value
          return {from.isReplicated(), true};
        int64_t total = getGlobalShape(toType)[slice.getDim()] / slice.getPre();
        return {from.isReplicated(), isCut(to, toType, slice.getDim(), slice.getPre(), slice.getChunk(), total)};
      })
      .Case([&](MaskOp mask) -> Conversion {
        return {isCut(from, fromType, mask.getDim(), mask.getPre(), mask.getChunk(), mask.getTotal()), from == to};
      })
      .Default([](Operation *) -> Conversion { return {false, false}; });
}

static int64_t getRanksAlong(Operation *op) {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, op->getAttrOfType<FlatSymbolRefAttr>("mesh"));
  return mesh ? mesh.getNumRanks(op->getAttrOfType<ArrayAttr>("axes")) : 1;
}

/// 3
LogicalResult Verifier::verifyConversion(Operation *op) {
  SmallVector<Type> received;
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (collective)
    received = collective.getReceivedTypes();
  else if (isa<SliceOp, MaskOp>(op))
    received = llvm::to_vector(op->getResultTypes());
  else
    return success();
  FailureOr<Group> group =
      verifyGroup(op, collective ? collective.getAxesAttr() : op->getAttrOfType<ArrayAttr>("axes"));
  if (failed(group))
    return failure();
  for (auto [index, to] : llvm::enumerate(received)) {
    Type from = op->getOperand(index).getType();
    Conversion conversion = getConversion(op, *group, index, from, to);
    SmallVector<int64_t> shape(getGlobalShape(from));
    if (auto slice = dyn_cast<SliceOp>(op); slice && (getState(to)->isVarying() || *group == Group::tensor))
      shape[slice.getDim()] = slice.getPre() * slice.getChunk();
    if (getState(from)->isVarying())
      llvm::TypeSwitch<Operation *>(op).Case<AllGatherOp, AllGatherStartOp>(
          [&](auto gather) { shape[gather.getDim()] = gather.getPre() * gather.getTotal(); });
    // A chunk is that of a rank along these axes, and of no more or fewer.
    bool isOfChunks = isa<SliceOp, AllGatherOp, AllGatherStartOp, ReduceScatterOp, ReduceScatterStartOp>(op);
    for (Type type : {from, to})
      if (isOfChunks && *group != Group::tensor && getState(type)->isOwned() &&
          getState(type)->chunk * getRanksAlong(op) != getGlobalShape(type).front())
        return error(op) << "has a chunk of " << getState(type)->chunk << " of " << getGlobalShape(type).front()
                         << " elements on axes of " << getRanksAlong(op) << " ranks";
    if (!conversion.fromOk || !conversion.toOk || ArrayRef<int64_t>(shape) != getGlobalShape(to))
      return error(op) << "makes " << getState(to)->str() << " from " << getState(from)->str();
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
  // Largest values and norms do not add up; what gives a part of its operand, as its schema says, adds nothing.
  bool isSum = first.kind == ReduceKind::sum;
  bool linear = !rule; // view-like
  if (rule && rule->linearity == Linearity::additive)
    linear = partials.size() == counted && (isSum || op.movesElements());
  if (rule && rule->linearity == Linearity::multilinear)
    linear = isSum && partials.size() == 1 && llvm::is_contained(rule->multilinearOperands, partials.front());
  bool isNorm = isa<aten::LinalgVectorNormOp>(op) &&
                ShapedType::getNumElements(getGlobalShape(op->getResult(0).getType())) == 1 &&
                getNormKind(op).value_or(ReduceKind::sum) == first.kind;
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
    int64_t step = rule.operands[index].getStep(state.dim);
    if (state.chunk % step != 0)
      return error(op) << "has operand " << index << ", which is " << state.str() << " and cuts through the " << step
                       << " elements that go together";
    if (factor >= 0 && (here != factor || state.pre != cut.pre || state.chunk / step != cut.chunk))
      return error(op) << "has operands that are sharded differently: " << cut.str() << " and " << state.str();
    factor = here;
    cut = AxisState::shard(state.dim, state.pre, state.chunk / step);
    size = getGlobalShape(operand.getType())[state.dim] / step;
  }
  if (factor < 0)
    return success();
  // The rule is of local shapes: where a chunk has one row, a dimension that is
  // broadcast, or summed to one row, looks like one that carries the factor.
  auto carriesFactor = [&](const ShardingRule::Value &value, Value of) {
    int64_t dim = llvm::find(value.dims, factor) - value.dims.begin();
    return dim < static_cast<int64_t>(value.dims.size()) &&
           getGlobalShape(of.getType())[dim] == size * value.getStep(dim);
  };
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (carriesFactor(rule.operands[index], operand) && !stateOf(operand).isShard() &&
        !(index < rule.dontCare.size() && rule.dontCare[index]))
      return error(op) << "has operand " << index << ", which is " << stateOf(operand).str()
                       << ", where another is sharded in the same dimension";
  }
  std::optional<ReduceKind> contracted;
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    const ShardingRule::Value &value = rule.results[index];
    int64_t dim = llvm::find(value.dims, factor) - value.dims.begin();
    bool has = carriesFactor(value, result);
    AxisState want = has ? AxisState::shard(dim, cut.pre, cut.chunk * value.getStep(dim)) : stateOf(result);
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

/// 4: a view keeps elements where they are, and so says where a shard is.
LogicalResult Verifier::verifyView(AtenOpInterface op) {
  Value from = op->getOperand(0), to = op->getResult(0);
  AxisState state = stateOf(from);
  if (state.isPartial())
    return verifyPartials(op, nullptr);
  bool isSame = state.isShard() && stateOf(to).isShard()
                    ? getFlatCut(getGlobalShape(from.getType()), state) ==
                          getFlatCut(getGlobalShape(to.getType()), stateOf(to)) && state.outer == stateOf(to).outer
                    : state == stateOf(to);
  if (!isSame)
    return error(op) << "gives a " << stateOf(to).str() << " view of a " << state.str() << " value";
  return success();
}

/// 4: what every rank computes whole is whole, unless it is filled in along new dimensions.
LogicalResult Verifier::verifyWhole(AtenOpInterface op) {
  FailureOr<ShardingRule> rule = failure();
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    AxisState state = stateOf(result);
    bool isFilled = false;
    if (state.isShard() && (succeeded(rule) || succeeded(rule = op.getShardingRule()))) {
      int64_t factor = rule->results[index].dims[state.dim];
      int64_t size = getGlobalShape(result.getType())[state.dim];
      isFilled = factor >= 0 && llvm::none_of(llvm::enumerate(rule->operands), [&](auto operand) {
                   const auto *dim = llvm::find(operand.value().dims, factor);
                   return dim != operand.value().dims.end() &&
                          getGlobalShape(
                              op->getOperand(operand.index()).getType())[dim - operand.value().dims.begin()] == size;
                 });
    }
    if (!state.isReplicated() && !isFilled)
      return error(op) << "gives result " << index << " as " << state.str() << ", but all operands are replicated";
  }
  return success();
}

LogicalResult Verifier::verifyAten(AtenOpInterface op) {
  SmallVector<unsigned> sums;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (stateOf(operand).outer == AxisState::Outer::partial)
      sums.push_back(index);
  if (!sums.empty() && !isLinearAcross(op, sums))
    return error(op) << "has operand " << sums.front() << ", which is not added up along the first axis: it is "
                     << stateOf(op->getOperand(sums.front())).str();
  for (Value result : op->getResults())
    if (sums.empty() != (stateOf(result).outer != AxisState::Outer::partial))
      return error(op) << "gives a result that is " << stateOf(result).str() << ", and "
                       << (sums.empty() ? "no operand is a sum across" : "an operand is not added up yet");
  if (isa<aten::ListOpInterface>(*op))
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
    for (auto [index, result] : llvm::enumerate(op->getResults()))
      if (!stateOf(result).isOwned())
        return error(op) << "gives result " << index << " as " << stateOf(result).str() << ", expected owned";
    return success();
  }
  if (llvm::any_of(op->getOperands(), [](Value v) { return stateOf(v).isVarying(); }))
    return verifyVarying(op);
  if (op.isViewLike())
    return verifyView(op);
  if (llvm::all_of(op->getOperands(), [](Value v) { return stateOf(v).isReplicated(); }))
    return verifyWhole(op);
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

/// 8
LogicalResult Verifier::verifyReturn() {
  Operation *terminator = step.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    AxisState state = stateOf(value);
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(step, index));
    bool chunk = update && isa<ShardAttr>(update.getArg());
    bool own = state.isVarying() && (!update || isa<BufferAttr>(update.getArg()));
    bool isDone = chunk && state.isOwned();
    // A gradient that ranks have summands of stays one, and nothing else becomes one.
    std::optional<unsigned> arg = update ? findArg(step, update.getArg()) : std::nullopt;
    bool isState = isa_and_nonnull<StateAttr>(update ? update.getArg() : Attribute());
    // Nor does a chunk become or cease to be a sum across.
    auto isAcross = [](const AxisState &s) { return s.outer == AxisState::Outer::partial; };
    if (chunk && arg && isAcross(state) != isAcross(stateOf(step.getArgument(*arg))))
      return step.emitError() << "result " << index << " of @step is " << state.str() << " of " << value.getType()
                              << ", and what it updates is " << step.getArgument(*arg).getType();
    bool hasSummands = isState && arg && stateOf(step.getArgument(*arg)).isSummand();
    if (hasSummands || (isState && state.isSummand())) {
      if (!hasSummands || state != stateOf(step.getArgument(*arg)))
        return step.emitError() << "result " << index << " of @step is " << state.str() << ", and what it updates is "
                                << (arg ? stateOf(step.getArgument(*arg)).str() : "no argument");
      continue;
    }
    if (!state.isReplicated() && !isDone && !own)
      return step.emitError() << "result " << index << " of @step is " << state.str() << ", expected replicated";
  }
  return success();
}

LogicalResult Verifier::run() {
  Block &body = step.getBody().front();
  for (auto mesh : step->getParentOfType<ModuleOp>().getOps<MeshOp>()) {
    ranks = mesh.getNumDataRanks();
    numAxes = mesh.getDataAxes().size();
    hasSharedUnits = isSharedByAll(step->getParentOfType<ModuleOp>(), mesh);
  }
  if (failed(verifyTypes(step, body.getArgumentTypes())))
    return failure();
  for (Operation &op : body)
    if (failed(verifyTypes(&op, op.getResultTypes())))
      return failure();
  for (Operation &op : body.without_terminator()) {
    if (failed(verifyConversion(&op)))
      return failure();
    if (auto aten = dyn_cast<AtenOpInterface>(op); aten && failed(verifyAten(aten)))
      return failure();
  }
  return verifyReturn();
}

bool spmd::hasStates(func::FuncOp step) {
  auto has = [](Type type) { return getState(type).has_value(); };
  return llvm::any_of(step.getArgumentTypes(), has) || llvm::any_of(step.getResultTypes(), has);
}

LogicalResult spmd::verifyStates(func::FuncOp step) { return Verifier(step).run(); }
