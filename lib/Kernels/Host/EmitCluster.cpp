//===- EmitCluster.cpp - loops of kernel.cluster --------------------------===//
//
// The iteration of the parallel loop runs the nest of sequential dims once per stage (see [Note: stages of a cluster]).
// A value is emitted in the outermost loop where everything it depends on is known, as a scalar; in the innermost loop
// it is a vector of 16 lanes. A reduction over the innermost dim has the shape of [Note: shape of reductions]; one over
// outer dims adds in their order, into stack memory.
//
//===----------------------------------------------------------------------===//

#include "../SimplifyCluster.h"
#include "ClusterEmitter.h"
#include "VectorLoop.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace spmd::kernel {

ClusterEmitter::ClusterEmitter(KernelBuilder &b, ClusterOp op, const ClusterArguments &arguments)
    : ClusterValues(b, op, arguments.operands, arguments.results), b(b), arguments(arguments),
      pastCaches(op.getNumResults()) {}

LogicalResult ClusterEmitter::emit() {
  unsigned parallel = op.getParallel();
  for (unsigned d = parallel; d < dims.size(); ++d)
    nest.push_back(d);
  if (!nest.empty())
    laneDim = innermostDim();
  for (const Root &root : schedule.getRoots())
    if (root.reduce && needsMemory(root.reduce) && !memory.contains(root.reduce)) {
      int64_t count = getMemoryCount(root.reduce);
      Type element = root.reduce.getType();
      constexpr int64_t kLimit = 1 << 20;
      if (b.getStackBytes() + count * getElementBytes(element) > kLimit)
        return op.emitOpError("keeps ") << count << " sums of " << element << " at a time, more than " << kLimit
                                        << " bytes of stack; cut the summed dim into blocks of fewer columns";
      memory[root.reduce] = b.stack(element, count);
    }
  scopes.emplace_back();
  if (parallel == dims.size() && !dims.empty()) {
    emitRange();
  } else if (std::optional<unsigned> tiledDim = findTiledDim()) {
    emitTiledIterations(*tiledDim);
  } else {
    findKept();
    emitIterations();
  }
  countMoved();
  return success();
}

void ClusterEmitter::emitInvariantBefore(unsigned level, const Roots &roots) {
  llvm::SmallBitVector changing(dims.size());
  for (unsigned l = level; l < nest.size(); ++l)
    changing.set(nest[l]);
  emitInvariant(roots, changing);
}

void ClusterEmitter::setPosition(Value iteration, unsigned numDims) {
  for (unsigned d = numDims; d-- > 0;) {
    position[d] = d == 0 ? iteration : b.mod(iteration, dims[d]);
    iteration = b.floorDiv(iteration, dims[d]);
  }
}

//===----------------------------------------------------------------------===//
// [Note: kept values]
// A softmax needs exp(x - max) for its sum, and again for its results, when the sum is known. Computing it once is
// worth a store and a load in the cache: the value waits where the result will be, in the same row, whose memory nobody
// reads before. That a result may lie where an operand does stays true, if the later stages do not read that operand.
// Only functions (exp, log, ...) are worth it.
//===----------------------------------------------------------------------===//

/// Finds a value to keep, for rows along one sequential dim.
void ClusterEmitter::findKept() {
  if (nest.size() != 1)
    return;
  for (const Root &store : schedule.getRoots()) {
    const AccessMap &access = resultAccess[store.reduce ? 0 : store.result];
    if (store.reduce || access.getStride(innermostDim()) != 1 || !access.isLinear())
      continue;
    for (const Root &use : schedule.getRoots()) {
      if (!use.reduce || !(use.stage < store.stage) || !use.dims.test(innermostDim()))
        continue;
      SmallVector<Value> early = schedule.getClosure(use.value), later = schedule.getClosure(store.value);
      for (Value value : llvm::reverse(early)) {
        Operation *def = value.getDefiningOp();
        if (!def || !isa<math::MathDialect>(def->getDialect()) || !llvm::is_contained(later, value) ||
            !schedule.getVarying(value).test(innermostDim()) ||
            value.getType() != cast<RankedTensorType>(op.getResult(store.result).getType()).getElementType() ||
            !mayKeep(value, store, use.stage))
          continue;
        kept = value;
        keptResult = store.result;
        keptStage = use.stage;
        keptUntil = store.stage;
        return;
      }
    }
  }
}

Value ClusterEmitter::loadKept(Value value, int64_t width) {
  if (!readsKept || value != kept)
    return {};
  return b.load(results[keptResult], value.getType(), emitIndex(op.getResultMap(keptResult)), width);
}

/// Whether no stage after `stage` reads an operand whose place the result of `store` may have taken.
bool ClusterEmitter::mayKeep(Value value, const Root &store, const ClusterSchedule::Stage &stage) {
  Block *body = op.getBodyBlock();
  for (const Root &root : schedule.getRoots()) {
    // What runs in the same stage reads before it writes.
    if (!(stage < root.stage))
      continue;
    bool isWaiting = !(store.stage < root.stage);
    for (Value leaf : schedule.getClosure(root.value, isWaiting ? value : Value()))
      if (auto argument = dyn_cast<BlockArgument>(leaf); argument && argument.getOwner() == body)
        if (op.getOperandMap(argument.getArgNumber()) == op.getResultMap(store.result))
          return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// One iteration per point of the parallel dims; the nest is made of the sequential dims.
void ClusterEmitter::emitIterations() {
  auto emitAlone = [&] {
    b.loop(arguments.begin, arguments.end, 1, [&](Value iteration) {
      setPosition(iteration, op.getParallel());
      scopes.emplace_back();
      emitLevel(0, getRoots());
      scopes.pop_back();
    });
  };
  if (SmallVector<Pass> passes = findPasses(); !passes.empty()) {
    Value iterations = b.sub(arguments.end, arguments.begin), least = b.i64(passes.size());
    Value areEnough = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, iterations, least);
    return b.choose(areEnough, [&] { emitRowsInFlight(passes); }, emitAlone);
  }
  emitPastCaches(emitAlone);
}

/// All dims are parallel: the range is cut along the last dim, which makes the innermost loop.
void ClusterEmitter::emitRange() {
  unsigned last = dims.size() - 1;
  nest = {last};
  laneDim = last;
  Roots roots = getRoots();
  auto emitRow = [&](Value low, Value high) {
    scopes.emplace_back();
    emitInvariantBefore(0, roots);
    emitInnermost(roots, low, high);
    scopes.pop_back();
  };
  if (last == 0)
    return emitRow(arguments.begin, arguments.end);
  int64_t size = dims[last];
  Value firstRow = b.floorDiv(arguments.begin, size);
  Value endRow = b.floorDiv(b.add(arguments.end, size - 1), size);
  b.loop(firstRow, endRow, 1, [&](Value row) {
    Value start = b.mul(row, size);
    setPosition(row, last);
    emitRow(b.max(b.sub(arguments.begin, start), b.i64(0)), b.min(b.sub(arguments.end, start), b.i64(size)));
  });
}

/// Runs `roots`, whose loops outside of `level` are open.
void ClusterEmitter::emitLevel(unsigned level, const Roots &roots) {
  if (roots.empty())
    return;
  if (level == nest.size()) {
    // Everything is read before anything is written: a result may lie where an operand does.
    SmallVector<Value> values;
    for (const Root *root : roots)
      values.push_back(getValue(root->value, 1, scopes.back()));
    for (auto [root, value] : llvm::zip_equal(roots, values)) {
      if (!root->reduce)
        storeResult(root->result, value, 1);
      else
        accumulate(root->reduce, value);
    }
    return;
  }
  SmallVector<int64_t> steps;
  for (const Root *root : roots)
    steps.push_back(root->stage.empty() ? 0 : root->stage[level]);
  llvm::sort(steps);
  steps.erase(llvm::unique(steps), steps.end());
  for (int64_t step : steps) {
    // Reductions that do not need this loop come before it, as it may use them; stores after it, as it may still read
    // what they overwrite.
    Roots before, inside, after;
    for (const Root *root : roots) {
      if (!root->stage.empty() && root->stage[level] != step)
        continue;
      bool needsLoop = root->dims.test(nest[level]);
      (needsLoop ? inside : root->reduce ? before : after).push_back(root);
    }
    emitLevel(level + 1, before);
    if (!inside.empty())
      emitLoop(level, inside);
    emitLevel(level + 1, after);
  }
}

void ClusterEmitter::emitLoop(unsigned level, const Roots &roots) {
  emitInvariantBefore(level, roots);
  for (const Root *root : roots)
    if (root->reduce && needsMemory(root->reduce) &&
        *llvm::min_element(root->reduce.getOver()) == static_cast<int64_t>(nest[level]))
      clearMemory(root->reduce);
  Value low = b.i64(0), high = b.i64(dims[nest[level]]);
  if (level + 1 == nest.size())
    return emitInnermost(roots, low, high);
  b.loop(low, high, 1, [&](Value i) {
    position[nest[level]] = i;
    scopes.emplace_back();
    emitLevel(level + 1, roots);
    scopes.pop_back();
  });
  position[nest[level]] = Value();
}

bool ClusterEmitter::isVectorizable(const Roots &roots) const {
  unsigned d = innermostDim();
  if (dims[d] < kLanes)
    return false;
  // Without a reduction vectors pay when what is written lies side by side.
  return llvm::all_of(roots,
                      [&](const Root *root) { return root->reduce || resultAccess[root->result].getStride(d) == 1; });
}

/// The place along the innermost dim of the only element that the sum `root` adds up, others being zero: a class's
/// logit. Null for other reductions.
Value ClusterEmitter::findOnlyPlace(const Root &root) const {
  if (!root.reduce || root.reduce.getKind() != ReduceKind::Add || !isInnermost(root.reduce) || needsMemory(root.reduce))
    return {};
  auto select = root.value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
      !matchPattern(select.getFalseValue(), m_PosZeroFloat()))
    return {};
  Value number = compare.getLhs(), place = compare.getRhs();
  if (auto cast = number.getDefiningOp<arith::IndexCastOp>())
    number = cast.getIn();
  auto index = number.getDefiningOp<IndexOp>();
  bool isPlace = index && index.getDim() == innermostDim() && !schedule.getVarying(place).test(innermostDim());
  return isPlace && getWideType(place.getType(), 1).isInteger(64) ? place : Value();
}

/// Such a sum without its loop: the bits are the same.
void ClusterEmitter::emitOnlyElement(const Root &root, Value place) {
  unsigned dim = innermostDim();
  Value at = getValue(place, 1, scopes.back());
  Value inside = b.min(b.max(at, b.i64(0)), b.i64(dims[dim] - 1));
  Scope known;
  position[dim] = inside;
  readsKept = isAfterKept(root);
  Value element = getValue(root.value.getDefiningOp<arith::SelectOp>().getTrueValue(), 1, known);
  readsKept = false;
  position[dim] = Value();
  Value zero = b.number(element.getType(), 0);
  Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at, inside);
  scopes.back()[root.reduce] =
      arith::AddFOp::create(b, zero, arith::SelectOp::create(b, isInside, element, zero));
}

/// Whether `roots` compute functions along the innermost dim, beside what is known.
bool ClusterEmitter::hasFunctions(const Roots &roots) const {
  return llvm::any_of(roots, [&](const Root *root) {
    Value known = isAfterKept(*root) ? kept : Value();
    return llvm::any_of(schedule.getClosure(root->value, known), [&](Value value) {
      Operation *def = value == known ? nullptr : value.getDefiningOp();
      return def && isa<math::MathDialect>(def->getDialect()) && schedule.getVarying(value).test(innermostDim());
    });
  });
}

/// The innermost loop over [low, high). Reductions over it end here.
void ClusterEmitter::emitInnermost(const Roots &all, Value low, Value high) {
  Roots roots;
  for (const Root *root : all) {
    if (Value place = findOnlyPlace(*root))
      emitOnlyElement(*root, place);
    else
      roots.push_back(root);
  }
  if (roots.empty())
    return;
  unsigned dim = innermostDim();
  SmallVector<ReduceOp> reduceOps;
  for (const Root *root : roots)
    if (root->reduce && isInnermost(root->reduce))
      reduceOps.push_back(root->reduce);
  SmallVector<Reduction> reductions;
  for (ReduceOp reduce : reduceOps)
    reductions.push_back({reduce.getKind(), reduce.getType()});
  auto emitPoint = [&](Value i, int64_t width, ValueRange accumulators) {
    Scope known;
    SmallVector<Value> values, out;
    // Everything is read before anything is written: a result may lie where an operand does.
    readsKept = isAfterKept(*roots.front());
    position[dim] = i;
    for (const Root *root : roots)
      values.push_back(b.broadcast(getValue(root->value, width, known), width));
    readsKept = false;
    prefetch(roots, width);
    if (isKeeping(roots))
      storeResult(keptResult, b.broadcast(known.lookup(kept), width), width);
    for (auto [root, value] : llvm::zip_equal(roots, values)) {
      if (!root->reduce)
        storeResult(root->result, value, width);
      else if (isInnermost(root->reduce))
        out.push_back(b.combine(root->reduce.getKind(), accumulators[out.size()], value));
      else
        accumulate(root->reduce, value);
    }
    position[dim] = Value();
    return out;
  };
  // Functions are long chains of dependent operations: where registers allow it, two vectors run side by side.
  constexpr int64_t kVectors = 8;
  int64_t together = b.getAccumulators() >= kVectors && hasFunctions(roots) ? 2 : 1;
  SmallVector<Value> totals = emitVectorLoop(b, low, high, reductions, isVectorizable(roots), emitPoint, together);
  for (auto [reduce, total] : llvm::zip_equal(reduceOps, totals)) {
    if (needsMemory(reduce))
      accumulate(reduce, total);
    else
      scopes.back()[reduce] = total;
  }
}

static LogicalResult emitCluster(KernelBuilder &b, ClusterOp op) {
  ClusterArguments arguments = {{}, {}, b.getBegin(), b.getEnd()};
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    arguments.operands.push_back(b.getPointer(i));
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    arguments.results.push_back(b.getResultPointer(i));
  return emitClusterLoops(b, *simplifyCluster(op), arguments);
}

LogicalResult emitClusterLoops(KernelBuilder &b, ClusterOp op, const ClusterArguments &arguments) {
  return ClusterEmitter(b, op, arguments).emit();
}

void addClusterEmitters(HostEmitters &emitters) { emitters.add(emitCluster); }

} // namespace spmd::kernel
