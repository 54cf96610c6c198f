//===- Propagate.cpp - the states one op runs in --------------------------===//
//
// [Note: propagation]
// 1. Each sharded operand proposes its factor, weighted by its elements; the best
//    one wins. Operands with that factor are wanted sharded on it, others whole.
// 2. A result with the factor is sharded on it; one without is partial, because
//    the factor is contracted there. Then padded rows need a neutral element.
// 3. With no sharded operand, a partial one passes if the op is linear in it and
//    nothing is lost by reducing later; else it is reduced first.
//
// [Note: an example of propagation] aten.mm of a (8x6) and b (6x5) on 2 ranks. Its factors are m = 8, k = 6 and n = 5:
// operands (m, k) and (k, n), result (m, n), multilinear.
//
//     a                b                  a, b are wanted        result
//     shard<0, 1, 4>   replicated         as they are            shard<0, 1, 4>  m is cut, b does not have it
//     shard<1, 1, 3>   shard<0, 1, 3>     as they are            partial<sum>    k is cut, and contracted
//     shard<0, 1, 4>   shard<0, 1, 3>     as it is, replicated   shard<0, 1, 4>  m is proposed by 48 elements, k by 30
//     partial<sum>     replicated         both replicated        replicated      or partial<sum>, if it stays partial
//
// With k = 5 the ranks' 3 rows each are one more than there are: in the second line both operands are filled with 0 in
// the last row, the neutral element of a sum.
//
//===----------------------------------------------------------------------===//

#include "Propagate.h"
#include "Parts.h"

#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/ReduceKinds.h"
#include "dialects/Spmd/Source.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using spmd::aten::Linearity;
using spmd::aten::ShardingOpInterface;
using spmd::aten::ShardingRule;

namespace spmd::partition {

namespace {

ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }

int64_t elementsOf(Value value) { return ShapedType::getNumElements(shapeOf(value)); }

/// A loop of the op and how the mesh axis cuts it: `chunk` counts steps of the loop.
struct Choice {
  int64_t factor, pre, chunk;
  bool operator==(const Choice &o) const { return factor == o.factor && pre == o.pre && chunk == o.chunk; }
};

/// Position of the factor among a value's dimensions; nothing when it is not
/// there, or there twice.
std::optional<int64_t> findFactor(const ShardingRule::Value &value, int64_t factor) {
  if (llvm::count(value.dims, factor) != 1)
    return std::nullopt;
  return llvm::find(value.dims, factor) - value.dims.begin();
}

bool isContracted(const ShardingRule &rule, int64_t factor) {
  return llvm::any_of(rule.results, [&](const ShardingRule::Value &value) { return !findFactor(value, factor); });
}

/// A norm over everything of partial norms of the same kind is one, too.
bool combinesNorms(Operation *op, ReduceKind kind) {
  if (!isa<aten::LinalgVectorNormOp>(op) || elementsOf(op->getResult(0)) != 1)
    return false;
  std::optional<ReduceKind> ord = getNormKind(op);
  return ord == kind;
}

class Propagation {
public:
  Propagation(Operation *op, ArrayRef<AxisState> states, bool staysPartial, int64_t ranks)
      : op(op), states(states), staysPartial(staysPartial), ranks(ranks) {
    out.operands.assign(states.size(), AxisState::replicated());
    out.results.assign(op->getNumResults(), AxisState::replicated());
    out.fill.resize(states.size());
  }

  FailureOr<OpStates> run();

private:
  bool isDontCare(unsigned operand) const { return rule && operand < rule->dontCare.size() && rule->dontCare[operand]; }
  std::optional<Choice> choose() const;
  void shardOn(const Choice &choice);
  bool runView();
  std::optional<AxisState> getPassingState() const;
  bool isLinear(ReduceKind kind, unsigned partials) const;
  void passPartials();

  Operation *op;
  ArrayRef<AxisState> states;
  bool staysPartial;
  int64_t ranks;
  std::optional<ShardingRule> rule;
  OpStates out;
};

} // namespace

double getNeutral(ReduceKind kind) {
  if (kind == ReduceKind::max)
    return -std::numeric_limits<double>::infinity();
  if (kind == ReduceKind::min)
    return std::numeric_limits<double>::infinity();
  return 0;
}

std::optional<ReduceKind> getNormKind(Operation *op) {
  Attribute ord = op->getAttr("ord");
  double value = ord ? aten::getScalarValue(ord) : 2;
  if (value == 2)
    return ReduceKind::norm2;
  if (value == std::numeric_limits<double>::infinity())
    return ReduceKind::max;
  return std::nullopt;
}

std::optional<Choice> Propagation::choose() const {
  SmallVector<std::pair<Choice, int64_t>> proposals;
  for (auto [index, state] : llvm::enumerate(states)) {
    if (!state.isShard() || isDontCare(index))
      continue;
    const ShardingRule::Value &value = rule->operands[index];
    int64_t factor = value.dims[state.dim];
    if (factor < 0 || !findFactor(value, factor))
      continue;
    if (rule->contractsNoPadding && isContracted(*rule, factor) &&
        hasPadding(shapeOf(op->getOperand(index)), state, ranks))
      continue;
    int64_t step = value.getStep(state.dim);
    if (state.chunk % step != 0 || shapeOf(op->getOperand(index))[state.dim] / state.pre % step != 0)
      continue;
    Choice choice{factor, state.pre, state.chunk / step};
    auto *known = llvm::find_if(proposals, [&](auto &p) { return p.first == choice; });
    if (known == proposals.end())
      known = &proposals.emplace_back(choice, 0);
    known->second += elementsOf(op->getOperand(index));
  }
  if (proposals.empty())
    return std::nullopt;
  // The first of the heaviest: program order decides ties.
  return std::max_element(proposals.begin(), proposals.end(), [](auto &a, auto &b) { return a.second < b.second; })
      ->first;
}

void Propagation::shardOn(const Choice &choice) {
  std::optional<ReduceKind> contracted;
  for (auto [index, value] : llvm::enumerate(rule->results)) {
    if (std::optional<int64_t> dim = findFactor(value, choice.factor)) {
      out.results[index] = AxisState::shard(*dim, choice.pre, choice.chunk * value.getStep(*dim));
      continue;
    }
    ReduceKind kind = toReduceKind(rule->resultReduction[index]);
    out.results[index] = AxisState::partial(kind);
    if (!contracted)
      contracted = kind;
  }
  for (auto [index, value] : llvm::enumerate(rule->operands)) {
    if (isDontCare(index) && states[index].isPartial()) {
      out.operands[index] = states[index];
      continue;
    }
    std::optional<int64_t> dim = findFactor(value, choice.factor);
    if (!dim)
      continue;
    AxisState want = AxisState::shard(*dim, choice.pre, choice.chunk * value.getStep(*dim));
    out.operands[index] = want;
    if (!(contracted || rule->fillsPadding) || isDontCare(index) ||
        !hasPadding(shapeOf(op->getOperand(index)), want, ranks))
      continue;
    std::optional<double> own = index < rule->neutral.size() ? rule->neutral[index] : std::nullopt;
    out.fill[index] = own.value_or(contracted ? getNeutral(*contracted) : 0);
  }
}

/// A view of a sharded value whose shard stays one.
bool Propagation::runView() {
  if (!states[0].isShard())
    return false;
  std::optional<AxisState> mapped = mapThroughView(shapeOf(op->getOperand(0)), states[0], shapeOf(op->getResult(0)));
  if (!mapped)
    return false;
  out.operands[0] = states[0];
  out.results[0] = *mapped;
  return true;
}

/// True when partial operands of this kind make a partial result.
bool Propagation::isLinear(ReduceKind kind, unsigned partials) const {
  if (!rule) // view-like
    return true;
  unsigned counted = 0;
  for (unsigned i = 0; i < states.size(); ++i)
    counted += !isDontCare(i);
  if (rule->linearity == Linearity::additive)
    return partials == counted && (kind == ReduceKind::sum || cast<ShardingOpInterface>(op).movesElements());
  if (rule->linearity != Linearity::multilinear || partials != 1 || kind != ReduceKind::sum)
    return false;
  return llvm::any_of(rule->multilinearOperands, [&](unsigned i) { return states[i].isPartial() && !isDontCare(i); });
}

/// The state of the partial operands, if they may pass through.
std::optional<AxisState> Propagation::getPassingState() const {
  std::optional<AxisState> passing;
  unsigned partials = 0;
  int64_t in = 0, outElements = 0;
  for (auto [index, state] : llvm::enumerate(states)) {
    if (!state.isPartial() || isDontCare(index))
      continue;
    if (passing && *passing != state)
      return std::nullopt;
    passing = state;
    ++partials;
    in += elementsOf(op->getOperand(index));
  }
  if (!passing)
    return std::nullopt;
  if (combinesNorms(op, passing->kind))
    return passing;
  if (!isLinear(passing->kind, partials))
    return std::nullopt;
  if (staysPartial)
    return passing;
  // Reduce at the root: one reduction serves all uses, of the smaller value.
  for (Value result : op->getResults())
    outElements += elementsOf(result);
  if (outElements > in || (rule && rule->linearity == Linearity::multilinear))
    return std::nullopt;
  return passing;
}

void Propagation::passPartials() {
  std::optional<AxisState> passing = getPassingState();
  for (auto [index, state] : llvm::enumerate(states))
    if (state.isPartial() && (passing || isDontCare(index)))
      out.operands[index] = state;
  if (passing)
    out.results.assign(op->getNumResults(), *passing);
}

FailureOr<OpStates> Propagation::run() {
  if (llvm::all_of(states, [](AxisState s) { return s.isReplicated(); }))
    return out;
  auto iface = dyn_cast<ShardingOpInterface>(op);
  if (iface && iface.isViewLike()) {
    if (!runView())
      passPartials();
    return out;
  }
  if (std::optional<SmallVector<AxisState>> parts = mapThroughParts(op, states)) {
    out.operands.assign(states.begin(), states.end());
    out.results.assign(parts->begin(), parts->end());
    return out;
  }
  FailureOr<ShardingRule> found = iface ? iface.getShardingRule() : FailureOr<ShardingRule>(failure());
  if (failed(found)) {
    InFlightDiagnostic diag = op->emitError() << "'" << op->getName()
                                              << "' has no sharding rule, but an operand is "
                                                 "not replicated ("
                                              << describeSource(op->getLoc()) << ")";
    for (auto [index, state] : llvm::enumerate(states))
      if (!state.isReplicated())
        diag.attachNote(op->getOperand(index).getLoc())
            << "operand " << index << " of type " << op->getOperand(index).getType() << " is " << state.str();
    diag.attachNote() << "add a sharding rule to the op, or use an op that has one";
    return diag;
  }
  rule = *found;
  if (std::optional<Choice> choice = choose())
    shardOn(*choice);
  else
    passPartials();
  return out;
}

FailureOr<OpStates> propagate(Operation *op, ArrayRef<AxisState> operands, bool staysPartial, int64_t ranks) {
  return Propagation(op, operands, staysPartial, ranks).run();
}

} // namespace spmd::partition
