//===- EmitCluster.cpp - loops of kernel.cluster --------------------------===//
//
// The trip of the parallel loop runs the nest of sequential dims once per stage (see [Note: stages of a cluster]). A
// value is emitted in the outermost loop where everything it depends on is known, as a scalar; in the innermost loop it
// is a vector of 16 lanes. A reduction over the innermost dim has the shape of [Note: shape of reductions]; one over
// outer dims adds in their order, into stack memory.
//
//===----------------------------------------------------------------------===//

#include "ElementEmitter.h"
#include "Emitters.h"
#include "VectorLoop.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/ClusterSchedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

using Root = ClusterSchedule::Root;
using Roots = SmallVector<const Root *>;
using Scope = DenseMap<Value, Value>;

class ClusterEmitter {
public:
  ClusterEmitter(KernelBuilder &b, ClusterOp op);
  LogicalResult emit();

private:
  // Loops.
  void emitTrips();
  void emitRange();
  void emitLevel(unsigned level, const Roots &roots);
  void emitLoop(unsigned level, const Roots &roots);
  void emitInnermost(const Roots &roots, Value low, Value high);
  bool isVectorizable(const Roots &roots) const;

  // Values.
  void emitInvariant(const Roots &roots, unsigned level);
  Value getValue(Value value, int64_t width, Scope &scope);
  Value loadOperand(unsigned i, int64_t width);
  Value loadGuarded(unsigned i, Value index);
  void storeResult(const Root &root, Value value, int64_t width);
  Value emitIndex(AffineMap map);

  // Reductions that end outside the innermost loop live on the stack.
  bool isInnermost(ReduceOp reduce) const;
  bool needsMemory(ReduceOp reduce) const;
  SmallVector<unsigned> getMemoryDims(ReduceOp reduce) const;
  Value getMemoryIndex(ReduceOp reduce);
  void clearMemory(ReduceOp reduce);
  void accumulate(ReduceOp reduce, Value value);

  unsigned innermostDim() const { return nest.back(); }

  KernelBuilder &b;
  ClusterOp op;
  ClusterSchedule schedule;
  ArrayRef<int64_t> dims;
  /// Dims looped over inside a trip, outermost first.
  SmallVector<unsigned> nest;
  /// Current position along each dim.
  SmallVector<Value> position;
  SmallVector<AccessMap> operandAccess, resultAccess;
  /// What is known in each open loop, as scalars.
  SmallVector<Scope> scopes;
  DenseMap<Operation *, Value> memory;
};

} // namespace

ClusterEmitter::ClusterEmitter(KernelBuilder &b, ClusterOp op) : b(b), op(op), schedule(op), dims(op.getDims()) {
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    operandAccess.push_back(AccessMap::get(op.getOperandMap(i)));
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    resultAccess.push_back(AccessMap::get(op.getResultMap(i)));
  position.assign(dims.size(), Value());
}

LogicalResult ClusterEmitter::emit() {
  for (const Root &root : schedule.getRoots())
    if (root.reduce && needsMemory(root.reduce) && !memory.contains(root.reduce)) {
      int64_t count = 1;
      for (unsigned d : getMemoryDims(root.reduce))
        count *= dims[d];
      Type element = root.reduce.getType();
      constexpr int64_t kLimit = 1 << 20;
      if (b.getStackBytes() + count * getElementBytes(element) > kLimit)
        return op.emitOpError("keeps ") << count << " sums of " << element << " at a time, more than " << kLimit
                                        << " bytes of stack; cut the summed dim into blocks of fewer columns";
      memory[root.reduce] = b.stack(element, count);
    }
  scopes.emplace_back();
  if (op.getParallel() == dims.size() && !dims.empty())
    emitRange();
  else
    emitTrips();
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// One trip per point of the parallel dims; the nest is made of the sequential dims.
void ClusterEmitter::emitTrips() {
  unsigned parallel = op.getParallel();
  for (unsigned d = parallel; d < dims.size(); ++d)
    nest.push_back(d);
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value trip) {
    for (unsigned d = parallel; d-- > 0;) {
      position[d] = d == 0 ? trip : b.mod(trip, dims[d]);
      trip = b.floorDiv(trip, dims[d]);
    }
    Roots roots;
    for (const Root &root : schedule.getRoots())
      roots.push_back(&root);
    scopes.emplace_back();
    emitLevel(0, roots);
    scopes.pop_back();
  });
}

/// All dims are parallel: the range is cut along the last dim, which makes the innermost loop.
void ClusterEmitter::emitRange() {
  unsigned last = dims.size() - 1;
  nest = {last};
  Roots roots;
  for (const Root &root : schedule.getRoots())
    roots.push_back(&root);
  auto emitRow = [&](Value low, Value high) {
    scopes.emplace_back();
    emitInvariant(roots, 0);
    emitInnermost(roots, low, high);
    scopes.pop_back();
  };
  if (last == 0)
    return emitRow(b.getBegin(), b.getEnd());
  int64_t size = dims[last];
  Value firstRow = b.floorDiv(b.getBegin(), size);
  Value endRow = b.floorDiv(b.add(b.getEnd(), size - 1), size);
  b.loop(firstRow, endRow, 1, [&](Value row) {
    Value start = b.mul(row, size);
    Value rest = row;
    for (unsigned d = last; d-- > 0;) {
      position[d] = d == 0 ? rest : b.mod(rest, dims[d]);
      rest = b.floorDiv(rest, dims[d]);
    }
    emitRow(b.max(b.sub(b.getBegin(), start), b.i64(0)), b.min(b.sub(b.getEnd(), start), b.i64(size)));
  });
}

/// Runs `roots`, whose loops outside of `level` are open.
void ClusterEmitter::emitLevel(unsigned level, const Roots &roots) {
  if (roots.empty())
    return;
  if (level == nest.size()) {
    for (const Root *root : roots) {
      Value value = getValue(root->value, 1, scopes.back());
      if (!root->reduce)
        storeResult(*root, value, 1);
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
  emitInvariant(roots, level);
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

/// The innermost loop over [low, high). Reductions over it end here.
void ClusterEmitter::emitInnermost(const Roots &roots, Value low, Value high) {
  unsigned dim = innermostDim();
  SmallVector<ReduceOp> reduceOps;
  SmallVector<Reduction> reductions;
  for (const Root *root : roots)
    if (root->reduce && isInnermost(root->reduce)) {
      reduceOps.push_back(root->reduce);
      reductions.push_back({root->reduce.getKind(), root->reduce.getType()});
    }
  auto emitPoint = [&](Value i, int64_t width, ValueRange accumulators) {
    position[dim] = i;
    Scope scope;
    SmallVector<Value> values, out;
    // Everything is read before anything is written: a result may lie where an operand does.
    for (const Root *root : roots)
      values.push_back(b.broadcast(getValue(root->value, width, scope), width));
    for (auto [root, value] : llvm::zip_equal(roots, values)) {
      if (!root->reduce)
        storeResult(*root, value, width);
      else if (isInnermost(root->reduce))
        out.push_back(b.combine(root->reduce.getKind(), accumulators[out.size()], value));
      else
        accumulate(root->reduce, value);
    }
    position[dim] = Value();
    return out;
  };
  SmallVector<Value> totals = emitVectorLoop(b, low, high, reductions, isVectorizable(roots), emitPoint);
  for (auto [reduce, total] : llvm::zip_equal(reduceOps, totals)) {
    if (needsMemory(reduce))
      accumulate(reduce, total);
    else
      scopes.back()[reduce] = total;
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Emits, before the loop of nest level `level`, what `roots` need and that loop and those inside it do not change.
void ClusterEmitter::emitInvariant(const Roots &roots, unsigned level) {
  llvm::SmallBitVector changing(dims.size());
  for (unsigned l = level; l < nest.size(); ++l)
    changing.set(nest[l]);
  for (const Root *root : roots)
    for (Value value : schedule.getClosure(root->value))
      if (!schedule.getVarying(value).anyCommon(changing))
        getValue(value, 1, scopes.back());
}

/// `value` at the current position: known already, or emitted and kept in `scope`.
Value ClusterEmitter::getValue(Value value, int64_t width, Scope &scope) {
  if (Value known = scope.lookup(value))
    return known;
  for (Scope &outer : llvm::reverse(scopes))
    if (Value known = outer.lookup(value))
      return known;
  Value emitted;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    emitted = loadOperand(argument.getArgNumber(), width);
  } else if (auto reduce = value.getDefiningOp<ReduceOp>()) {
    SmallVector<unsigned> memoryDims = getMemoryDims(reduce);
    bool wide = !memoryDims.empty() && memoryDims.back() == innermostDim();
    emitted = b.load(memory.lookup(reduce), reduce.getType(), getMemoryIndex(reduce), wide ? width : 1);
  } else if (auto index = value.getDefiningOp<IndexOp>()) {
    Value i = position[index.getDim()];
    emitted = index.getDim() == innermostDim() ? emitIota(b, i, width) : i;
  } else if (auto coord = value.getDefiningOp<CoordOp>()) {
    emitted = b.getCoordinate(coord.getAxis());
  } else {
    Operation *def = value.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : def->getOperands())
      operands.push_back(getValue(operand, width, scope));
    emitted = emitElementOp(b, *def, operands);
  }
  scope[value] = emitted;
  return emitted;
}

/// Index of `map` at the current position; dims that are not open are not used by what is asked for.
Value ClusterEmitter::emitIndex(AffineMap map) {
  SmallVector<Value> known;
  for (Value p : position)
    known.push_back(p ? p : b.i64(0));
  return b.affine(map.getResult(0), known);
}

/// An element where `index` is inside the tensor, else 0. The load itself is always inside.
Value ClusterEmitter::loadGuarded(unsigned i, Value index) {
  auto type = cast<RankedTensorType>(op.getInputs()[i].getType());
  Value last = b.i64(type.getNumElements() - 1);
  Value clamped = b.min(b.max(index, b.i64(0)), last);
  Value value = b.load(b.getPointer(i), type.getElementType(), clamped);
  Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, clamped, index);
  return arith::SelectOp::create(b, inside, value, b.number(value.getType(), 0));
}

Value ClusterEmitter::loadOperand(unsigned i, int64_t width) {
  auto type = cast<RankedTensorType>(op.getInputs()[i].getType());
  Type element = type.getElementType();
  AffineMap map = op.getOperandMap(i);
  bool guarded = llvm::is_contained(op.getGuarded(), i);
  std::optional<int64_t> stride;
  if (!nest.empty())
    stride = operandAccess[i].getStride(innermostDim());
  auto loadOne = [&] {
    Value index = emitIndex(map);
    return guarded ? loadGuarded(i, index) : b.load(b.getPointer(i), element, index);
  };
  // What does not vary along the innermost dim is loaded as a scalar.
  if (width == 1 || !position[innermostDim()] || stride == 0)
    return loadOne();
  auto loadLanes = [&] {
    Value start = position[innermostDim()];
    SmallVector<Value> lanes;
    for (int64_t l = 0; l < width; ++l) {
      position[innermostDim()] = b.add(start, l);
      lanes.push_back(loadOne());
    }
    position[innermostDim()] = start;
    return b.pack(lanes);
  };
  if (stride != 1)
    return loadLanes();
  Value index = emitIndex(map);
  if (!guarded)
    return b.load(b.getPointer(i), element, index, width);
  // All lanes inside: one vector; else lane by lane.
  Value above = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, index, b.i64(0));
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, index, b.i64(type.getNumElements() - width));
  Value inside = arith::AndIOp::create(b, above, below);
  auto choice = scf::IfOp::create(b, getWideType(element, width), inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, b.load(b.getPointer(i), element, index, width));
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, loadLanes());
  return choice.getResult(0);
}

void ClusterEmitter::storeResult(const Root &root, Value value, int64_t width) {
  Value pointer = b.getResultPointer(root.result);
  AffineMap map = op.getResultMap(root.result);
  if (width == 1 || resultAccess[root.result].getStride(innermostDim()) == 1) {
    b.store(value, pointer, emitIndex(map));
    return;
  }
  Value start = position[innermostDim()];
  for (int64_t l = 0; l < width; ++l) {
    position[innermostDim()] = b.add(start, l);
    b.store(b.lane(value, l), pointer, emitIndex(map));
  }
  position[innermostDim()] = start;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

bool ClusterEmitter::isInnermost(ReduceOp reduce) const {
  return llvm::is_contained(reduce.getOver(), static_cast<int64_t>(innermostDim()));
}

bool ClusterEmitter::needsMemory(ReduceOp reduce) const {
  return reduce.getOver().size() > 1 || reduce.getOver().front() != static_cast<int64_t>(dims.size() - 1);
}

/// Dims inside the outermost loop of the reduction along which its result varies.
SmallVector<unsigned> ClusterEmitter::getMemoryDims(ReduceOp reduce) const {
  SmallVector<unsigned> out;
  for (unsigned d = *llvm::min_element(reduce.getOver()) + 1; d < dims.size(); ++d)
    if (schedule.getVarying(reduce).test(d))
      out.push_back(d);
  return out;
}

Value ClusterEmitter::getMemoryIndex(ReduceOp reduce) {
  Value index = b.i64(0);
  for (unsigned d : getMemoryDims(reduce))
    index = b.add(b.mul(index, dims[d]), position[d]);
  return index;
}

void ClusterEmitter::clearMemory(ReduceOp reduce) {
  int64_t count = 1;
  for (unsigned d : getMemoryDims(reduce))
    count *= dims[d];
  Value pointer = memory.lookup(reduce);
  auto fill = [&](Value from, Value to, int64_t width) {
    Value neutral = b.neutral(reduce.getKind(), getWideType(reduce.getType(), width));
    b.loop(from, to, width, [&](Value i) { b.store(neutral, pointer, i); });
  };
  Value whole = b.i64(count - count % kLanes);
  fill(b.i64(0), whole, kLanes);
  fill(whole, b.i64(count), 1);
}

void ClusterEmitter::accumulate(ReduceOp reduce, Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  Value pointer = memory.lookup(reduce), index = getMemoryIndex(reduce);
  Value old = b.load(pointer, reduce.getType(), index, vector ? vector.getNumElements() : 1);
  b.store(b.combine(reduce.getKind(), old, value), pointer, index);
}

LogicalResult emitCluster(KernelBuilder &b, ClusterOp op) { return ClusterEmitter(b, op).emit(); }

} // namespace spmd::kernel
