//===- OwnerDomain.cpp - which values live in flat buffers ----------------===//

#include "OwnerDomain.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/TensorType.h"

using namespace mlir;

namespace spmd::partition {

static ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }

static int64_t elementsOf(Value value) { return ShapedType::getNumElements(shapeOf(value)); }

static Block &getBody(const Step &step) {
  func::FuncOp func = step.func;
  return func.getBody().front();
}

bool runsOnChunks(Operation *op) {
  auto iface = dyn_cast<aten::ScalarBodyOpInterface>(op);
  if (!iface || !iface.isPointwise() || op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return shapeOf(operand) == shapeOf(op->getResult(0)) || elementsOf(operand) == 1;
  });
}

bool OwnerDomain::isFullNorm(Operation *op) {
  return isa<aten::LinalgVectorNormOp>(op) && elementsOf(op->getResult(0)) == 1;
}

/// Norms of one or of a list of values.
static bool isNorm(Operation *op) {
  auto list = dyn_cast<aten::ListOpInterface>(op);
  return list ? list.isNorm() : OwnerDomain::isFullNorm(op);
}

bool OwnerDomain::isNeutral(Operation *op) {
  if (isNorm(op))
    return true;
  bool isMap = isa<aten::ForeachMapOp>(op) ? op->getNumOperands() == op->getNumResults()
                                           : runsOnChunks(op) && op->getNumOperands() == 1;
  return isMap && !op->use_empty() && llvm::all_of(op->getUsers(), isNeutral);
}

OwnerDomain::OwnerDomain(const Step &step) {
  for (auto [value, place] : step.places)
    if (!step.tableArguments.contains(value))
      home[value] = place;
  findDerived(step);
  findKept(step);
  readReturn(step);
  wanted = home;
  Block &body = getBody(step);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    for (Value result : op.getResults())
      settle(result);
    voteOf(&op);
  }
  findGradientBound(step);
}

void OwnerDomain::findDerived(const Step &step) {
  Block &body = getBody(step);
  for (BlockArgument arg : body.getArguments())
    if ((step.places.count(arg) && !step.tableArguments.contains(arg)) || step.summands.contains(arg) ||
        getArgRole<BatchAttr>(step.func, arg.getArgNumber()))
      derived.insert(arg);
  for (Operation &op : body.without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return derived.contains(operand); }))
      derived.insert_range(op.getResults());
}

/// What becomes a gradient that ranks have summands of is added up by nobody here.
void OwnerDomain::findKept(const Step &step) {
  func::FuncOp func = step.func;
  Block &body = getBody(step);
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(func, index));
    std::optional<unsigned> arg = update ? findArg(func, update.getArg()) : std::nullopt;
    if (arg && step.summands.contains(func.getArgument(*arg)))
      kept.insert(&body.getTerminator()->getOpOperand(index));
  }
}

void OwnerDomain::readReturn(const Step &step) {
  func::FuncOp func = step.func;
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(func, index));
    std::optional<unsigned> arg = update ? findArg(func, update.getArg()) : std::nullopt;
    BlockArgument target = arg ? func.getArgument(*arg) : BlockArgument();
    if (target && home.count(target))
      home.try_emplace(value, home.lookup(target));
    else if (!target || !step.tableArguments.contains(target))
      votes[value].push_back(std::nullopt);
  }
}

void OwnerDomain::settle(Value value) {
  auto found = votes.find(value);
  if (home.count(value) || found == votes.end())
    return;
  ArrayRef<std::optional<Place>> all = found->second;
  if (all.front() && llvm::all_equal(all))
    home[value] = *all.front();
}

void OwnerDomain::vote(Value value, std::optional<Place> place) {
  votes[value].push_back(place);
  if (place)
    wanted.try_emplace(value, *place);
}

void OwnerDomain::voteOf(Operation *op) {
  if (isNeutral(op))
    return;
  if (auto list = dyn_cast<aten::ListOpInterface>(op)) {
    for (Value shared : list.getShared())
      vote(shared, std::nullopt);
    SmallVector<OperandRange> operandLists = list.getOperandLists();
    SmallVector<ResultRange> resultLists = list.getResultLists();
    for (size_t i = 0; i < list.getLength(); ++i) {
      Value at;
      for (ResultRange results : resultLists)
        if (!results.empty() && !at && home.count(results[i]))
          at = results[i];
      for (OperandRange operands : operandLists)
        if (!operands.empty())
          vote(operands[i], at && shapeOf(at) == shapeOf(operands[i]) ? getHome(at) : std::nullopt);
    }
    return;
  }
  std::optional<Place> place;
  if (runsOnChunks(op))
    place = getHome(op->getResult(0));
  for (Value operand : op->getOperands()) {
    bool belongs = derived.contains(operand) && shapeOf(operand) == shapeOf(op->getResult(0));
    vote(operand, belongs ? place : std::nullopt);
  }
}

/// The user passes a partial `value` on to its results, or takes it home.
bool OwnerDomain::keepsGradientBound(Operation *user, Value value) const {
  if (isa<aten::ListOpInterface>(user))
    return true;
  if (isNeutral(user))
    return wanted.count(value);
  if (runsOnChunks(user) && home.count(user->getResult(0)))
    return true;
  if (auto reduce = dyn_cast<AllReduceOp>(user)) // along the tensor axis
    return llvm::all_of(reduce.getKinds().getAsRange<ReduceKindAttr>(),
                        [](ReduceKindAttr kind) { return kind.getValue() == ReduceKind::sum; }) &&
           llvm::all_of(user->getResults(), [&](Value result) { return gradientBound.contains(result); });
  auto iface = dyn_cast<aten::ShardingOpInterface>(user);
  if (!iface)
    return false;
  if (!iface.isViewLike()) {
    FailureOr<aten::ShardingRule> rule = iface.getShardingRule();
    if (failed(rule) || rule->linearity == aten::Linearity::none)
      return false;
  }
  return llvm::all_of(user->getResults(), [&](Value result) { return gradientBound.contains(result); });
}

void OwnerDomain::findGradientBound(const Step &step) {
  Block &body = getBody(step);
  for (Operation &op : llvm::reverse(body.without_terminator()))
    for (Value result : op.getResults()) {
      bool bound = !result.use_empty();
      for (OpOperand &use : result.getUses()) {
        Operation *user = use.getOwner();
        if (isNorm(user))
          normed.insert(result);
        bool keeps = user == body.getTerminator() ? kept.contains(&use) : keepsGradientBound(user, result);
        bound = bound && keeps;
      }
      if (bound)
        gradientBound.insert(result);
    }
}

} // namespace spmd::partition
