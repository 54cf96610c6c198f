//===- RepeatIterations.cpp - spmd-repeat-iterations ----------------------===//

#include "spmd/Conversion/KernelToPlan/RepeatIterations.h"
#include "IterationFinder.h"
#include "dialects/Spmd/Iterations.h"
#include "dialects/Spmd/ResultSource.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OperationSupport.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace spmd {
#define GEN_PASS_DEF_REPEATITERATIONSPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
/// The ops of a step that are a loop's, and more of them.
class IterationRepeater {
public:
  /// `step` is that of a module with `spmd.iterations` (dialects/Spmd/Iterations.h), in kernels.
  explicit IterationRepeater(func::FuncOp step);

  /// Puts in `extra` iterations. Fails without a diagnostic and before anything is changed where the step is not such a
  /// loop, or the loop is not fed so often; `why` says what is different.
  LogicalResult repeat(int64_t extra, std::string &why);

private:
  using Range = IterationFinder::Range;
  /// Ops before the range of which there is one for each iteration, in the order of these.
  struct Chain {
    SmallVector<Operation *> ops;
  };

  static IterationFinder::Value numberOf(Value value) {
    return reinterpret_cast<IterationFinder::Value>(value.getAsOpaquePointer());
  }
  LogicalResult findChains(const Range &range, std::string &why);
  LogicalResult check(const Range &range, int64_t extra, std::string &why) const;
  /// The value that `value`, an operand in the second iteration of the range, is `by` iterations later.
  Value shift(Value value, const Range &range, int64_t by) const;
  void insert(const Range &range, int64_t extra);
  void insertChains(int64_t extra);
  int64_t segmentOf(unsigned op) const;
  void moveSegment(Operation *op, int64_t by) const;
  void extendPhases(int64_t first, int64_t extra);

  func::FuncOp step;
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> positions;
  IterationFinder finder;
  /// Of an argument that the loop is fed: its list, and its number in it.
  DenseMap<Value, std::pair<unsigned, int64_t>> fed;
  SmallVector<SmallVector<Value>> lists;
  int64_t segmentsEnd = 0; ///< the first segment behind the loop
  int64_t segmentsPerIteration = 0;
  SmallVector<Chain> chains;
  /// Of an op of a chain: the chain, and its number in it.
  DenseMap<Operation *, std::pair<unsigned, int64_t>> chained;
  SmallVector<Operation *> copies; ///< by position behind the first iteration of the range
};
} // namespace

IterationRepeater::IterationRepeater(func::FuncOp step) : step(step) {
  std::optional<FewIterations> iterations = FewIterations::of(step->getParentOfType<ModuleOp>());
  if (!iterations)
    return;
  llvm::StringMap<Value> batch;
  for (BlockArgument argument : step.getArguments()) {
    finder.addOutside(numberOf(argument));
    if (auto role = dyn_cast_or_null<BatchAttr>(getArgRole(step, argument.getArgNumber())))
      batch[role.getName()] = argument;
  }
  for (auto list : iterations->fed.getAsRange<ArrayAttr>()) {
    SmallVector<Value> &values = lists.emplace_back();
    for (auto [number, name] : llvm::enumerate(list))
      if (Value argument = isa<StringAttr>(name) ? batch.lookup(cast<StringAttr>(name).getValue()) : Value()) {
        values.push_back(argument);
        fed[argument] = {lists.size() - 1, number};
        finder.addFed(numberOf(argument), lists.size() - 1, number);
      }
  }
  segmentsEnd = iterations->segmentsEnd;
  for (Operation &op : step.getBody().front()) {
    positions[&op] = ops.size();
    ops.push_back(&op);
    SmallVector<IterationFinder::Value> touched = llvm::map_to_vector(op.getOperands(), numberOf);
    llvm::append_range(touched, llvm::map_range(op.getResults(), numberOf));
    finder.addItem(describeItem(&op), touched);
  }
}

int64_t IterationRepeater::segmentOf(unsigned op) const {
  auto segment = ops[op]->getAttrOfType<IntegerAttr>(kSegmentAttr);
  return segment ? segment.getInt() : -1;
}

void IterationRepeater::moveSegment(Operation *op, int64_t by) const {
  if (auto segment = op->getAttrOfType<IntegerAttr>(kSegmentAttr))
    op->setAttr(kSegmentAttr, IntegerAttr::get(segment.getType(), segment.getInt() + by));
}

/// The chains of ops before the range: each reads what all read, or what is fed, or the op of another chain.
LogicalResult IterationRepeater::findChains(const Range &range, std::string &why) {
  IterationFinder::Links links;
  finder.addLinks(range, links);
  // Operands of linked ops are linked, too.
  for (bool changed = true; changed;) {
    size_t before = links.size();
    for (auto [from, to] : llvm::to_vector(links)) {
      if (to >= range.begin)
        return why = "ops of the loop follow each other at different distances", failure();
      for (auto [a, b] : llvm::zip_equal(ops[from]->getOperands(), ops[to]->getOperands()))
        if (!finder.isLater(numberOf(a), numberOf(b), range.period, &links))
          return why = "an op before the loop differs between iterations", failure();
    }
    changed = links.size() != before;
  }
  llvm::DenseSet<unsigned> followers;
  for (auto [from, to] : links)
    if (!followers.insert(to).second)
      return why = "two ops before the loop are followed by one", failure();
  // In program order, whatever the order of the table.
  for (unsigned first = 0; first < ops.size(); ++first) {
    if (!links.contains(first) || followers.contains(first))
      continue;
    Chain chain;
    for (auto op = std::optional(first); op; op = links.contains(*op) ? std::optional(links.at(*op)) : std::nullopt) {
      chained[ops[*op]] = {chains.size(), chain.ops.size()};
      chain.ops.push_back(ops[*op]);
    }
    chains.push_back(std::move(chain));
  }
  return success();
}

LogicalResult IterationRepeater::check(const Range &range, int64_t extra, std::string &why) const {
  unsigned second = range.begin + range.period;
  for (unsigned i = range.begin; i + range.period < range.end; ++i)
    if (segmentOf(i + range.period) - segmentOf(i) != segmentsPerIteration)
      return why = "phases differ between iterations", failure();
  for (const Chain &chain : chains)
    for (size_t i = 1; i < chain.ops.size(); ++i)
      if (segmentOf(positions.at(chain.ops[i])) - segmentOf(positions.at(chain.ops[i - 1])) != segmentsPerIteration)
        return why = "phases differ between iterations", failure();
  for (const Chain &chain : chains)
    if (positions.at(chain.ops.back()) + 1 != positions.at(chain.ops[chain.ops.size() - 2]) + chains.size() + 1)
      return why = "ops before the loop are not in the order of iterations", failure();
  for (unsigned i = second; i < ops.size(); ++i)
    for (auto [number, value] : llvm::enumerate(ops[i]->getOperands())) {
      if (auto it = fed.find(value); it != fed.end()) {
        if (it->second.second + extra >= static_cast<int64_t>(lists[it->second.first].size()))
          return why = "the loop is fed less often", failure();
        continue;
      }
      auto result = dyn_cast<OpResult>(value);
      if (!result || chained.contains(result.getOwner()))
        continue;
      unsigned at = positions.at(result.getOwner());
      if (at >= second)
        continue;
      if (i >= range.end && at >= range.begin)
        return why = "a value of one iteration is read behind the loop", failure();
      // Of the range only what the op reads in every iteration may come from before.
      if (i < range.end && at < range.begin && ops[i - range.period]->getOperand(number) != value)
        return why = "a value from before the loop is read in one iteration", failure();
    }
  return success();
}

Value IterationRepeater::shift(Value value, const Range &range, int64_t by) const {
  if (auto it = fed.find(value); it != fed.end())
    return lists[it->second.first][it->second.second + by];
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return value;
  if (auto it = chained.find(result.getOwner()); it != chained.end())
    return chains[it->second.first].ops[it->second.second + by]->getResult(result.getResultNumber());
  unsigned at = positions.at(result.getOwner());
  if (at < range.begin)
    return value;
  int64_t later = static_cast<int64_t>(at - range.begin) + by * range.period;
  return copies[later]->getResult(result.getResultNumber());
}

void IterationRepeater::insertChains(int64_t extra) {
  SmallVector<Operation *> last;
  for (const Chain &chain : chains)
    last.push_back(chain.ops.back());
  Operation *behind = nullptr;
  for (Operation *op : last)
    if (!behind || behind->isBeforeInBlock(op))
      behind = op;
  llvm::sort(last, [&](Operation *a, Operation *b) { return positions.at(a) < positions.at(b); });
  OpBuilder builder(step.getContext());
  for (int64_t by = 1; by <= extra; ++by)
    for (Operation *op : last) {
      auto [chain, number] = chained.at(op);
      builder.setInsertionPointAfter(behind);
      behind = builder.clone(*op);
      for (OpOperand &operand : behind->getOpOperands()) {
        Value value = operand.get();
        if (auto it = fed.find(value); it != fed.end())
          operand.set(lists[it->second.first][it->second.second + by]);
        else if (auto result = dyn_cast<OpResult>(value); result && chained.contains(result.getOwner())) {
          auto [from, at] = chained.at(result.getOwner());
          operand.set(chains[from].ops[at + by]->getResult(result.getResultNumber()));
        }
      }
      moveSegment(behind, by * segmentsPerIteration);
      chains[chain].ops.push_back(behind);
    }
}

void IterationRepeater::insert(const Range &range, int64_t extra) {
  unsigned second = range.begin + range.period;
  insertChains(extra);
  copies.assign(ops.begin() + range.begin, ops.begin() + second);
  OpBuilder builder(ops[second]);
  for (int64_t by = 0; by < extra; ++by)
    for (unsigned i = second; i < second + range.period; ++i) {
      Operation *copy = builder.clone(*ops[i]);
      copies.push_back(copy);
      for (OpOperand &operand : copy->getOpOperands())
        operand.set(shift(operand.get(), range, by));
      moveSegment(copy, by * segmentsPerIteration);
    }
  for (unsigned i = second; i < ops.size(); ++i) {
    for (OpOperand &operand : ops[i]->getOpOperands()) {
      auto result = dyn_cast<OpResult>(operand.get());
      if (!result || chained.contains(result.getOwner()) || positions.at(result.getOwner()) < second)
        operand.set(shift(operand.get(), range, extra));
    }
    moveSegment(ops[i], extra * segmentsPerIteration);
  }
  for (unsigned i = 0; i < second; ++i)
    if (segmentOf(i) >= segmentsEnd)
      moveSegment(ops[i], extra * segmentsPerIteration);
}

void IterationRepeater::extendPhases(int64_t first, int64_t extra) {
  auto module = step->getParentOfType<ModuleOp>();
  auto phases = module->getAttrOfType<ArrayAttr>(kPhasesAttr);
  SmallVector<Attribute> extended(phases.begin(), phases.begin() + first);
  for (int64_t by = 0; by < extra; ++by)
    extended.append(phases.begin() + first, phases.begin() + first + segmentsPerIteration);
  extended.append(phases.begin() + first, phases.end());
  module->setAttr(kPhasesAttr, ArrayAttr::get(step.getContext(), extended));
}

LogicalResult IterationRepeater::repeat(int64_t extra, std::string &why) {
  std::optional<Range> range = finder.findRange(/*mayLink=*/true);
  if (!range)
    return why = "no ops repeat", failure();
  segmentsPerIteration = segmentOf(range->begin + range->period) - segmentOf(range->begin);
  auto phases = step->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(kPhasesAttr);
  int64_t first = segmentOf(range->begin);
  if (!phases || first < 0 || segmentsPerIteration < 0 ||
      first + segmentsPerIteration > static_cast<int64_t>(phases.size()))
    return why = "phases differ between iterations", failure();
  if (failed(findChains(*range, why)) || failed(check(*range, extra, why)))
    return failure();
  // What passes found out of an argument of the last iteration holds of those that follow.
  for (const SmallVector<Value> &list : lists) {
    Value last;
    for (Value value : list)
      if (!value.use_empty())
        last = value;
    if (!last)
      continue;
    unsigned from = cast<BlockArgument>(last).getArgNumber();
    int64_t number = fed.at(last).second;
    for (int64_t by = 1; by <= extra && number + by < static_cast<int64_t>(list.size()); ++by) {
      unsigned to = cast<BlockArgument>(list[number + by]).getArgNumber();
      NamedAttrList attrs(step.getArgAttrDict(from));
      attrs.set(kArgAttr, getArgRole(step, to));
      step.setArgAttrs(to, attrs.getDictionary(step.getContext()));
    }
  }
  insert(*range, extra);
  extendPhases(first, extra);
  auto module = step->getParentOfType<ModuleOp>();
  FewIterations iterations = *FewIterations::of(module);
  iterations.kept += extra;
  iterations.segmentsEnd += extra * segmentsPerIteration;
  Builder builder(step.getContext());
  if (iterations.missing() > 0)
    module->setAttr(kIterationsAttr, iterations.toAttr(builder));
  else
    module->removeAttr(kIterationsAttr);
  return success();
}

LogicalResult spmd::repeatIterations(ModuleOp module, int64_t extra, std::string &why) {
  return IterationRepeater(getStep(module)).repeat(extra, why);
}

/// Whether `more`, made of one iteration more, is `few` with one put in; `why` says where not. Neither is changed.
static bool isOneMore(ModuleOp few, ModuleOp more, std::string &why) {
  OwningOpRef<ModuleOp> repeated = few.clone();
  if (failed(repeatIterations(*repeated, 1, why)))
    return false;
  OwningOpRef<ModuleOp> expected = more.clone();
  for (StringRef name : {kIterationsAttr, kReplicatedAttr}) { // the latter: see extend
    (*repeated)->removeAttr(name);
    (*expected)->removeAttr(name);
  }
  if (OperationEquivalence::isEquivalentTo(*repeated, *expected, OperationEquivalence::None))
    return true;
  why = "the program of one iteration more has other ops besides";
  return false;
}

/// A list in program order, `few`, to which one iteration more adds what `more` has in one place: with what `extra`
/// iterations add. Null where they differ in another way.
static ArrayAttr extend(ArrayAttr few, ArrayAttr more, int64_t extra) {
  if (more.size() < few.size())
    return {};
  size_t added = more.size() - few.size(), at = 0;
  while (at < few.size() && few[at] == more[at])
    ++at;
  if (few.getValue().drop_front(at) != more.getValue().drop_front(at + added))
    return {};
  SmallVector<Attribute> values(few.begin(), few.begin() + at);
  for (int64_t i = 0; i < extra; ++i)
    llvm::append_range(values, more.getValue().slice(at, added));
  llvm::append_range(values, few.getValue().drop_front(at));
  return ArrayAttr::get(few.getContext(), values);
}

LogicalResult spmd::completeIterations(ModuleOp few, ModuleOp more, int64_t kept, std::string &why) {
  std::optional<FewIterations> iterations = FewIterations::of(few);
  if (!iterations)
    return why = "it is not said what is left out", failure();
  if (!isOneMore(few, more, why))
    return failure();
  auto replicated = few->getAttrOfType<ArrayAttr>(kReplicatedAttr);
  auto moreReplicated = more->getAttrOfType<ArrayAttr>(kReplicatedAttr);
  ArrayAttr allReplicated =
      replicated && moreReplicated ? extend(replicated, moreReplicated, iterations->missing()) : ArrayAttr();
  if (!allReplicated && (replicated || moreReplicated))
    return why = "what ranks have whole differs between iterations", failure();
  if (failed(repeatIterations(few, std::clamp(kept, iterations->kept, iterations->count) - iterations->kept, why)))
    return failure();
  if (allReplicated)
    few->setAttr(kReplicatedAttr, allReplicated);
  return success();
}

namespace {
struct RepeatIterationsPass : StepPass<spmd::impl::RepeatIterationsPassBase<RepeatIterationsPass>> {
  using StepPass::StepPass;

  LogicalResult runOnStep(func::FuncOp step) override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(kIterationsAttr))
      return success();
    std::optional<FewIterations> iterations = FewIterations::of(module);
    if (!iterations || iterations->missing() < 0)
      return module.emitError("'spmd.iterations' lacks the entry for the omitted iterations");
    std::string why;
    if (failed(repeatIterations(module, iterations->missing(), why)))
      return step.emitError("no iteration can be put in: ") << why;
    return success();
  }
};
} // namespace
