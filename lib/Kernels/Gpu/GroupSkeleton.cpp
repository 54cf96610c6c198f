//===- GroupSkeleton.cpp - clusters whose threads share rows --------------===//
//
// A group of threads runs the nest together; the last dim of it is shared out, `width` positions at a time, always in
// the same way. Where a row is short enough, a thread's part of it is spelled out (`parts` of constant number), and
// what the thread has loaded or computed for a part stays in registers for the stages to come; else it is a loop.
//
// [Note: parts that are not there]
// A row whose accesses do not divide among the threads leaves some of them without a last part. Those compute it like
// the others, in the same instructions: what it would load is zeros, sums stay as they were before it, and nothing of
// it is stored. So a sum has the bits that a loop over the thread's part would give it. A body that may not be computed
// on zeros (an integer division) takes the loop.
//
// [Note: an example of a group] For sm_90,
//
//     kernel.cluster dims [512, 1600] parallel 1 ins(%a = %x at (d0, d1) -> (d0 * 1600 + d1) : tensor<512x1600xf32>) {
//       %s = kernel.reduce <add> %a over [1]
//       yield arith.subf %a, %s }
//
// has 400 accesses of 4 elements (`width`) a row. A block of 224 threads (`group`) has a row; a thread has 2 parts, but
// 48 of them only 1. Thread t of row r runs
//
//     a0 = load r * 1600 + 4 * t                                     // vector<4xf32>
//     a1 = t < 176 ? load r * 1600 + 4 * (t + 224) : 0
//     sum = 0 + a0
//     sum = t < 176 ? sum + a1 : sum
//     s = tree over the block of (tree over the 4 lanes of sum)      // reduceBlock: shared memory and barriers
//     store a0 - s
//     if (t < 176) store a1 - s
//
// Of 40,000 elements a row, which no block has registers for, it is two loops over the thread's part of the row: one
// that sums and one that reads again.
//
// [Note: teams of a block]
// Sums of columns beside rows (a norm's backward) leave few points of the grid, each with many rows: one group for
// each would keep too little of memory's latency busy. So several groups of a block, its teams, share out the rows of a
// point: team t has rows t, t + teams, and so on. Teams have the same number of rows, as a block's barriers are for all
// of it. At the end each leaves its sums in shared memory, and all add them up in the order of the teams; what is
// outside of the loop over rows is computed by all teams alike and stored by the first.
//
//===----------------------------------------------------------------------===//

#include "BlockOps.h"
#include "ClusterSkeleton.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class GroupSkeleton : private ClusterSkeleton {
public:
  using ClusterSkeleton::ClusterSkeleton;
  FailureOr<LaunchShape> emit();

private:
  // Shape.
  void chooseShape(int64_t groups);
  bool chooseParts(int64_t items, int64_t words);
  void chooseTeams(int64_t groups, int64_t words);
  void chooseLoopThreads(int64_t items);
  bool mayOverwriteScalars() const;

  // Loops.
  void emitLevel(unsigned level, const Roots &roots);
  void emitLoop(unsigned level, const Roots &roots);
  void emitShared(const Roots &roots, const Roots &later = {});
  void countReads(const Roots &roots);
  void emitScalars(const Roots &roots);
  void emitPoint(const Roots &roots, Scope &scope, unsigned part);
  SmallVector<Value> emitAccesses(const Roots &roots, ArrayRef<ReduceOp> reduces, ValueRange inits);
  Value getOnlyPosition(const Roots &roots) const;
  void assumeElsewhere(const Roots &roots, Scope &scope);

  // Parts.
  void openPart(int64_t part);
  bool isSameForRows(Value value) const;
  void forgetColumns(Scope &scope) const;
  void loadPart(const Roots &roots, Scope &scope, bool withColumns);
  SmallVector<Value> whereThere(llvm::function_ref<SmallVector<Value>()> load);

  // Reductions.
  LogicalResult reserveMemory();
  Value loadReduction(ReduceOp reduce, int64_t width) override;
  void accumulate(ReduceOp reduce, Value value, unsigned part);
  bool isOverLanes(ReduceOp reduce) const {
    return llvm::is_contained(reduce.getOver(), static_cast<int64_t>(*laneDim));
  }
  bool hasLanes(ReduceOp reduce) const { return schedule.getVarying(reduce).test(*laneDim); }
  /// Of sums side by side in memory, of which there are a multiple of the width.
  int64_t getSumAlignment(ReduceOp reduce) const {
    int64_t bytes = getStoredBytes(reduce.getType());
    return hasLanes(reduce) ? std::min(width * bytes, kWideBytes) : bytes;
  }
  SmallVector<Value> reduceGroup(ArrayRef<ReduceOp> reduces, ArrayRef<Value> values, bool overTeams = false);
  void combineTeams(ArrayRef<ReduceOp> reduces);
  /// `store` by one team, where all have the same.
  void storeOnce(llvm::function_ref<void()> store);

  int64_t width = 1;
  /// Whether a barrier has to come before results without lanes are stored.
  bool overwritesScalars = false;
  /// Threads that share a row, and rows of a block.
  int64_t group = kWarpSize, groupsPerBlock = 1;
  /// Groups of a block that share out the rows of its point; above 1, a block has one point.
  int64_t teams = 1;
  /// Parts of a row that a thread owns, when they are spelled out; else 0.
  int64_t parts = 0;
  /// Whether a thread keeps the sums of its columns in registers, if there is one per column; else shared memory does.
  bool keepsSums = true;
  /// Whether what is the same for all rows (a norm's weight) stays in registers like the rows; else it is read and
  /// computed part by part, in every stage.
  bool keepsColumns = true;
  /// Number of the thread in its group, and of the group in its block (i64).
  Value member, groupInBlock;
  /// Number of the thread's team (i64), and null in the loop that teams share out.
  Value team, teamOutside;
  /// In a loop that is not inside of another: how often it has begun.
  Value turn;
  /// Whether the thread has the last part, and the part that is being emitted; null: all threads do.
  Value hasLastPart, isThere;
  /// What is known at each spelled-out part.
  SmallVector<Scope> partScopes;
  /// Operands that a loop over the row has read.
  llvm::SmallBitVector alreadyRead;
  /// Loops of the nest that are open.
  unsigned openLoops = 0;
  /// Sums under way, over lanes (per thread until their loop ends) or not. Those with a value per lane and part of
  /// their own have one running value per part.
  DenseMap<Operation *, SmallVector<Value>> running;
  /// Sums with one value per position, in shared memory (lanes) or the thread's own.
  DenseMap<Operation *, Value> memory;
};

} // namespace

/// Whether a result without lanes may lie where an operand does that other threads read.
bool GroupSkeleton::mayOverwriteScalars() const {
  auto kernelOp = cast<KernelOpInterface>(op.getOperation());
  for (unsigned r = 0; r < op.getNumResults(); ++r)
    if (!resultAccess[r].uses(*laneDim))
      for (unsigned i = 0; i < op.getInputs().size(); ++i)
        if (kernelOp.canAlias(i, r))
          return true;
  return false;
}

void GroupSkeleton::chooseShape(int64_t groups) {
  width = getWidth(*laneDim);
  overwritesScalars = mayOverwriteScalars();
  int64_t items = dims[*laneDim] / width;
  // A warp needs no barrier: rows of up to 8 parts a lane are its own. Longer ones take a block, about 4 parts a
  // thread.
  constexpr int64_t kPartsOfWarp = 8, kParts = 4, kThreads = 128;
  bool fillsDevice = groups >= device.sms * (kThreads / kWarpSize);
  if (items <= kWarpSize * (fillsDevice ? kPartsOfWarp : 1) && !overwritesScalars) {
    group = kWarpSize;
    groupsPerBlock = kThreads / kWarpSize;
  } else {
    group = llvm::alignTo(llvm::divideCeil(items, kParts), kWarpSize);
    group = std::clamp<int64_t>(group, 2 * kWarpSize, device.threadsPerBlock);
  }
  // Registers: what is loaded for a part, and per-part sums, in words of 32 bits.
  int64_t words = 0, columnWords = 0;
  for (BlockArgument argument : op.getBodyBlock()->getArguments())
    if (operandAccess[argument.getArgNumber()].uses(*laneDim)) {
      int64_t own = width * llvm::divideCeil(getStoredBytes(argument.getType()), 4);
      words += own;
      columnWords += isSameForRows(argument) ? own : 0;
    }
  int64_t sums = 0, sumBytes = 0;
  for (auto reduce : op.getBodyBlock()->getOps<ReduceOp>())
    if (hasLanes(reduce)) {
      sums += width * llvm::divideCeil(getElementBytes(reduce.getType()), 4);
      sumBytes += getMemoryCount(reduce) * getElementBytes(reduce.getType());
    }
  // Reductions over the block need shared memory too.
  if (chooseParts(items, words + sums))
    return chooseTeams(groups, words + sums);
  if (sumBytes > device.sharedBytesPerBlock / 4 * 3)
    return;
  // A thread meets the same columns of every row: no barrier is needed for its sums. What is the same for all rows is
  // in a cache anyway.
  keepsSums = false;
  if (chooseParts(items, words))
    return;
  keepsColumns = false;
  if (chooseParts(items, words - columnWords))
    return;
  keepsSums = keepsColumns = true;
  if (group == device.threadsPerBlock && !sums)
    chooseLoopThreads(items);
}

/// Rows of which every stage is a loop: threads of which two blocks fit the registers of an SM, so that one has work
/// while the other waits at a barrier; of these, the fewest idle in the last turn.
void GroupSkeleton::chooseLoopThreads(int64_t items) {
  // Registers that loops over accesses of 8 elements with an exponential need.
  constexpr int64_t kWords = 56;
  int64_t most = llvm::alignDown(device.registersPerSM / 2 / kWords, kWarpSize), leastIdle = items;
  for (int64_t threads = most; threads >= device.threadsPerBlock / 2; threads -= kWarpSize) {
    int64_t idle = llvm::divideCeil(items, threads) * threads - items;
    if (idle < leastIdle) {
      group = threads;
      leastIdle = idle;
      b.setResidentBlocks(2);
    }
  }
}

/// A row that stays in registers is read once, so more threads than wanted may share it, if they have room. Of the
/// fewest that have, and up to twice as many, those with the fewest parts that are not there. Half of a thread's
/// registers are for what it computes.
bool GroupSkeleton::chooseParts(int64_t items, int64_t words) {
  constexpr int64_t kWords = 64;
  bool mayBeMissing = llvm::all_of(*op.getBodyBlock(), [](Operation &inner) { return isSpeculatable(&inner); });
  int64_t chosen = 0, leastMissing = 0, most = device.threadsPerBlock;
  for (int64_t threads = group; threads <= most; threads += kWarpSize) {
    int64_t count = llvm::divideCeil(items, threads), missing = count * threads - items;
    int64_t room = std::min(kWords, device.registersPerSM / threads / 2);
    if (count * std::max(words, width) > room || (missing && !mayBeMissing))
      continue;
    if (chosen && missing >= leastMissing)
      continue;
    if (!chosen)
      most = std::min(most, 2 * threads);
    chosen = threads;
    leastMissing = missing;
  }
  if (!chosen)
    return false;
  if (chosen > group)
    groupsPerBlock = 1;
  group = chosen;
  parts = llvm::divideCeil(items, group);
  return true;
}

/// Rows of a point are shared out until the registers of an SM are used up by the blocks that it gets.
void GroupSkeleton::chooseTeams(int64_t groups, int64_t words) {
  // Registers beside what is loaded and summed up; and rows that make up for adding the sums of teams.
  constexpr int64_t kOtherWords = 24, kLeastRows = 4;
  if (nest.size() != 2)
    return;
  int64_t ofThread = std::min(parts * words + kOtherWords, device.registersPerThread);
  int64_t blocksPerSM = llvm::divideCeil(groups, device.sms), rows = dims[nest.front()], sumBytes = 1;
  for (auto reduce : op.getBodyBlock()->getOps<ReduceOp>())
    if (hasLanes(reduce))
      sumBytes += parts * group * width * getElementBytes(reduce.getType());
  int64_t threads = std::min(device.threadsPerSM, device.registersPerSM / ofThread) / blocksPerSM;
  int64_t most = std::min({threads / group, device.threadsPerBlock / group, rows / kLeastRows,
                           device.sharedBytesPerSM / 4 * 3 / blocksPerSM / sumBytes});
  while (most > 1 && rows % most)
    --most;
  if (most < 2)
    return;
  teams = most;
  groupsPerBlock = 1;
  b.setResidentBlocks(blocksPerSM);
}

FailureOr<LaunchShape> GroupSkeleton::emit() {
  laneDim = nest.back();
  alreadyRead.resize(op.getInputs().size());
  int64_t groups = 1;
  for (unsigned d : gridDims)
    groups *= dims[d];
  chooseShape(groups);
  scopes.emplace_back();
  if (teams > 1) {
    std::tie(team, member) = b.divide(b.getThread(), group, group * teams);
    teamOutside = team;
    groupInBlock = b.i64(0);
  } else if (groupsPerBlock == 1) {
    member = b.getThread();
    groupInBlock = b.i64(0);
  } else {
    std::tie(groupInBlock, member) = b.divide(b.getThread(), group, group * groupsPerBlock);
  }
  int64_t items = dims[*laneDim] / width;
  if (items < parts * group)
    hasLastPart = b.isLess(member, b.i64(items - (parts - 1) * group));
  if (failed(reserveMemory()))
    return failure();
  auto emitRow = [&](Value row) {
    setPosition(row, gridDims);
    scopes.emplace_back();
    partScopes.assign(parts, Scope());
    emitLevel(0, getRoots());
    scopes.pop_back();
  };
  if (groupsPerBlock == 1) {
    emitRow(block);
  } else {
    // Whole warps leave together.
    Value row = b.add(b.mul(block, groupsPerBlock), groupInBlock);
    if (groups % groupsPerBlock == 0)
      emitRow(row);
    else
      b.when(b.isLess(row, b.i64(groups)), [&] { emitRow(row); });
  }
  scopes.pop_back();
  return LaunchShape{group * groupsPerBlock * teams, (groups + groupsPerBlock - 1) / groupsPerBlock};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Runs `roots`, whose loops outside of `level` are open.
void GroupSkeleton::emitLevel(unsigned level, const Roots &roots) {
  if (roots.empty())
    return;
  if (level == nest.size())
    return emitScalars(roots);
  Roots inside;
  SmallVector<LevelStep> steps = getSteps(level, roots);
  for (const LevelStep &step : steps)
    llvm::append_range(inside, step.inside);
  for (const LevelStep &step : steps) {
    emitLevel(level + 1, step.before);
    if (!step.inside.empty())
      level + 1 == nest.size() ? emitShared(step.inside, inside) : emitLoop(level, step.inside);
    emitLevel(level + 1, step.after);
  }
}

/// What has no loop around it any more is the same for all threads: the first stores it.
void GroupSkeleton::emitScalars(const Roots &roots) {
  SmallVector<std::pair<const Root *, Value>> stores;
  for (const Root *root : roots) {
    Value value = getValue(root->value, 1, scopes.back());
    if (root->reduce)
      accumulate(root->reduce, value, 0);
    else
      stores.emplace_back(root, value);
  }
  if (stores.empty())
    return;
  if (overwritesScalars)
    b.barrier();
  storeOnce([&] {
    b.when(b.isEqual(member, b.i64(0)), [&] {
      for (auto [root, value] : stores)
        storeResult(*root, value, 1);
    });
  });
}

void GroupSkeleton::storeOnce(llvm::function_ref<void()> store) {
  teamOutside ? b.when(b.isEqual(teamOutside, b.i64(0)), store) : store();
}

/// A loop of the nest that all threads run alike.
void GroupSkeleton::emitLoop(unsigned level, const Roots &roots) {
  llvm::SmallBitVector changing(dims.size());
  for (unsigned d : ArrayRef(nest).drop_front(level))
    changing.set(d);
  emitInvariant(roots, changing);
  SmallVector<ReduceOp> carried;
  SmallVector<Value> inits;
  for (const Root *root : roots) {
    ReduceOp reduce = root->reduce;
    if (!reduce || getLevel(reduce) > level)
      continue;
    Value pointer = memory.lookup(reduce);
    if (getLevel(reduce) == level) {
      int64_t lanes = hasLanes(reduce) ? width : 1;
      Value neutral = b.neutral(reduce.getKind(), getWideType(reduce.getType(), lanes));
      if (pointer && hasLanes(reduce)) {
        // Each thread clears what it owns: the lanes of the last dim, at every position of the dims before it.
        int64_t rows = getMemoryCount(reduce) / dims[*laneDim];
        b.loop(b.i64(0), b.i64(rows), 1, [&](Value row) {
          b.loop(b.mul(member, width), b.i64(dims[*laneDim]), group * width, [&](Value i) {
            b.store(neutral, pointer, b.add(b.mul(row, dims[*laneDim]), i), getSumAlignment(reduce));
          });
        });
      } else if (pointer) {
        b.loop(b.i64(0), b.i64(getMemoryCount(reduce)), 1, [&](Value i) { b.store(neutral, pointer, i); });
      } else {
        running[reduce].assign(hasLanes(reduce) ? parts : 1, neutral);
      }
    }
    if (!pointer) {
      carried.push_back(reduce);
      llvm::append_range(inits, running[reduce]);
    }
  }
  auto unpack = [&](ValueRange values) {
    for (ReduceOp reduce : carried)
      for (Value &value : running[reduce]) {
        value = values.front();
        values = values.drop_front();
      }
  };
  ++openLoops;
  bool isShared = teams > 1 && level == 0;
  Value outerTurn = turn;
  int64_t turns = dims[nest[level]] / (isShared ? teams : 1);
  SmallVector<Value> sums = b.loop(b.i64(0), b.i64(turns), 1, inits, [&](Value i, ValueRange values) {
    unpack(values);
    position[nest[level]] = isShared ? b.add(b.mul(i, teams), team) : i;
    teamOutside = isShared ? Value() : teamOutside;
    turn = openLoops == 1 ? i : Value();
    scopes.emplace_back();
    SmallVector<Scope> outer = partScopes;
    emitLevel(level + 1, roots);
    partScopes = std::move(outer);
    scopes.pop_back();
    SmallVector<Value> out;
    for (ReduceOp reduce : carried)
      llvm::append_range(out, running[reduce]);
    return out;
  });
  --openLoops;
  turn = outerTurn;
  teamOutside = openLoops ? teamOutside : team;
  position[nest[level]] = Value();
  unpack(sums);
  SmallVector<ReduceOp> overLanes, ofTeams;
  SmallVector<Value> values;
  for (ReduceOp reduce : carried)
    if (getLevel(reduce) == level && !isOverLanes(reduce))
      ofTeams.push_back(reduce);
  if (isShared)
    combineTeams(ofTeams);
  for (const Root *root : roots) {
    ReduceOp reduce = root->reduce;
    if (!reduce || getLevel(reduce) != level)
      continue;
    if (Value pointer = memory.lookup(reduce)) {
      ++openLoops;
      if (isOverLanes(reduce))
        b.loop(b.i64(0), b.i64(getMemoryCount(reduce)), 1, [&](Value i) {
          b.store(reduceGroup(reduce, b.load(pointer, reduce.getType(), i)).front(), pointer, i);
        });
      --openLoops;
    } else if (isOverLanes(reduce)) {
      overLanes.push_back(reduce);
      values.push_back(running[reduce].front());
    } else if (hasLanes(reduce)) {
      for (auto [part, value] : llvm::enumerate(running[reduce]))
        partScopes[part][reduce] = value;
    } else {
      scopes.back()[reduce] = running[reduce].front();
    }
  }
  for (auto [reduce, total] : llvm::zip_equal(overLanes, reduceGroup(overLanes, values, /*overTeams=*/!level)))
    scopes.back()[reduce] = total;
}

/// The last dim, shared out. Everything of a part is read before anything of it is written: a result may lie where an
/// operand does.
void GroupSkeleton::emitPoint(const Roots &roots, Scope &scope, unsigned part) {
  SmallVector<std::pair<const Root *, Value>> sums, stores;
  for (const Root *root : roots) {
    Value value = getValue(root->value, width, scope);
    // A sum that begins with zero is what it was, to the bit, with zero added.
    bool addsNothing = root->reduce && root->reduce.getKind() == ReduceKind::Add &&
                       (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()));
    if (!addsNothing)
      (root->reduce ? sums : stores).emplace_back(root, b.broadcast(value, width));
  }
  for (auto [root, value] : sums)
    accumulate(root->reduce, value, part);
  auto store = [&] {
    for (auto [root, value] : stores)
      storeResult(*root, value, width);
  };
  if (stores.empty())
    return;
  storeOnce([&] { isThere ? b.when(isThere, store) : store(); });
}

/// The number that `roots` compare the position along the row with, where all comparisons of it ask whether it is that
/// one number of the row (the class of a cross-entropy); else null.
Value GroupSkeleton::getOnlyPosition(const Roots &roots) const {
  Value only;
  for (const Root *root : roots)
    for (Value value : schedule.getClosure(root->value)) {
      auto compare = value.getDefiningOp<arith::CmpIOp>();
      if (!compare || !isLaneNumber(compare.getLhs(), width))
        continue;
      Value other = compare.getRhs();
      bool isOfRow = isa<BlockArgument>(other) && !schedule.getVarying(other).test(*laneDim);
      if (compare.getPredicate() != arith::CmpIPredicate::eq || !other.getType().isInteger(64) || !isOfRow ||
          (only && only != other))
        return {};
      only = other;
    }
  return only;
}

/// What is known in `scope` where the position is not getOnlyPosition: comparisons fail, and selections by them are
/// what they are elsewhere.
void GroupSkeleton::assumeElsewhere(const Roots &roots, Scope &scope) {
  llvm::DenseSet<Value> isFalse;
  auto assume = [&](Value value) {
    isFalse.insert(value);
    scope[value] = b.number(getWideType(value.getType(), width), 0);
  };
  for (const Root *root : roots)
    for (Value value : schedule.getClosure(root->value)) {
      if (auto compare = value.getDefiningOp<arith::CmpIOp>(); compare && isLaneNumber(compare.getLhs(), width))
        assume(value);
      auto both = value.getDefiningOp<arith::AndIOp>();
      if (both && (isFalse.contains(both.getLhs()) || isFalse.contains(both.getRhs())))
        assume(value);
      if (auto select = value.getDefiningOp<arith::SelectOp>(); select && isFalse.contains(select.getCondition())) {
        Value elsewhere = getValue(select.getFalseValue(), width, scope);
        scope[value] = elsewhere;
      }
    }
}

/// A thread's accesses of a row that is a loop, two in flight. Most are not where the one position is that the body
/// asks for, and need not ask.
SmallVector<Value> GroupSkeleton::emitAccesses(const Roots &roots, ArrayRef<ReduceOp> reduces, ValueRange inits) {
  int64_t items = dims[*laneDim] / width, step = group * width;
  Value only = width > 1 ? getOnlyPosition(roots) : Value();
  auto emitTurn = [&](Value first, int64_t accesses, ValueRange before) {
    SmallVector<Value> places;
    SmallVector<Scope> loaded(accesses);
    Value isHere;
    for (int64_t access = 0; access < accesses; ++access) {
      places.push_back(b.add(first, access * step));
      position[*laneDim] = places.back();
      loadPart(roots, loaded[access], /*withColumns=*/true);
      if (!only)
        continue;
      Value distance = b.sub(getValue(only, 1, loaded[access]), places.back());
      Value isIn = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, distance, b.i64(width));
      isHere = isHere ? Value(arith::OrIOp::create(b, isHere, isIn)) : isIn;
    }
    auto emit = [&](bool isElsewhere) {
      for (auto [reduce, value] : llvm::zip_equal(reduces, before))
        running[reduce] = {value};
      for (int64_t access = 0; access < accesses; ++access) {
        position[*laneDim] = places[access];
        Scope known = loaded[access];
        if (isElsewhere)
          assumeElsewhere(roots, known);
        emitPoint(roots, known, 0);
      }
      SmallVector<Value> after;
      for (ReduceOp reduce : reduces)
        after.push_back(running[reduce].front());
      return after;
    };
    return only ? b.chooseValues(isHere, [&] { return emit(false); }, [&] { return emit(true); }) : emit(false);
  };
  // All threads have the first `paired` accesses, a multiple of two; some of them more.
  int64_t paired = items / group / 2 * 2;
  Value first = b.mul(member, width);
  SmallVector<Value> sums(inits);
  if (paired)
    sums = b.loop(first, b.add(first, paired * step), 2 * step, sums,
                  [&](Value i, ValueRange values) { return emitTurn(i, 2, values); });
  if (paired * group == items)
    return sums;
  return b.loop(b.add(first, paired * step), b.i64(dims[*laneDim]), step, sums,
                [&](Value i, ValueRange values) { return emitTurn(i, 1, values); });
}

/// Goes to part `part` of the row.
void GroupSkeleton::openPart(int64_t part) {
  position[*laneDim] = b.mul(b.add(member, part * group), width);
  isThere = part + 1 == parts ? hasLastPart : Value();
}

bool GroupSkeleton::isSameForRows(Value value) const {
  const llvm::SmallBitVector &varying = schedule.getVarying(value);
  return dims.size() > 1 && varying.test(*laneDim) && varying.count() == 1;
}

void GroupSkeleton::forgetColumns(Scope &scope) const {
  for (auto known = scope.begin(); known != scope.end();) {
    auto next = std::next(known);
    if (isSameForRows(known->first))
      scope.erase(known);
    known = next;
  }
}

/// Reads into `scope` what `roots` need of the operands at the open part, `withColumns` also of those that are the same
/// for all rows.
void GroupSkeleton::loadPart(const Roots &roots, Scope &scope, bool withColumns) {
  llvm::SetVector<Value> wanted;
  auto isKnown = [&](Value value) {
    return scope.contains(value) || llvm::any_of(scopes, [&](const Scope &outer) { return outer.contains(value); });
  };
  for (const Root *root : roots)
    for (Value value : schedule.getClosure(root->value))
      if (isa<BlockArgument>(value) && schedule.getVarying(value).test(*laneDim) && !isKnown(value) &&
          (withColumns || !isSameForRows(value)))
        wanted.insert(value);
  if (wanted.empty())
    return;
  SmallVector<Value> loaded = whereThere([&] {
    Scope read;
    return llvm::map_to_vector(wanted, [&](Value value) { return getValue(value, width, read); });
  });
  for (auto [value, known] : llvm::zip_equal(wanted, loaded))
    scope[value] = known;
}

/// What `load` gives where the open part is there, else zeros.
SmallVector<Value> GroupSkeleton::whereThere(llvm::function_ref<SmallVector<Value>()> load) {
  if (!isThere)
    return load();
  SmallVector<Value> loaded;
  auto choice = scf::IfOp::create(
      b, isThere,
      [&](OpBuilder &, Location) {
        loaded = load();
        scf::YieldOp::create(b, loaded);
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(
            b, llvm::map_to_vector(loaded, [&](Value value) { return b.number(value.getType(), 0); }));
      });
  return choice.getResults();
}

/// A row that is too long to be kept is read again by every pass after the first.
void GroupSkeleton::countReads(const Roots &roots) {
  llvm::SmallBitVector read(op.getInputs().size());
  for (const Root *root : roots)
    for (Value value : schedule.getClosure(root->value))
      if (auto argument = dyn_cast<BlockArgument>(value); argument && schedule.getVarying(value).test(*laneDim))
        read.set(argument.getArgNumber());
  for (unsigned i : read.set_bits()) {
    Type type = op.getInputs()[i].getType();
    if (alreadyRead.test(i))
      b.addMovedBytes(operandAccess[i].countReached(dims, getNumElements(type)) * getElementBytes(type));
    alreadyRead.set(i);
  }
}

/// The last dim for `roots`; `later` are those of all stages that go through it here.
void GroupSkeleton::emitShared(const Roots &roots, const Roots &later) {
  llvm::SmallBitVector changing(dims.size());
  changing.set(*laneDim);
  emitInvariant(roots, changing);
  // Sums over this loop alone are carried through it; those that go on outside of it as well are added at its end.
  SmallVector<ReduceOp> reduces;
  SmallVector<Value> inits;
  for (const Root *root : roots)
    if (root->reduce && isOverLanes(root->reduce)) {
      reduces.push_back(root->reduce);
      inits.push_back(b.neutral(root->reduce.getKind(), getWideType(root->reduce.getType(), width)));
    }
  SmallVector<SmallVector<Value>> outer;
  for (auto [reduce, init] : llvm::zip_equal(reduces, inits)) {
    outer.push_back(running.lookup(reduce));
    running[reduce] = {init};
  }
  SmallVector<Value> wide;
  if (parts) {
    // Everything that is read comes first, what later stages read of the row too, so that it is in flight together.
    for (int64_t part = 0; part < parts; ++part) {
      openPart(part);
      loadPart(roots, partScopes[part], keepsColumns);
      loadPart(later, partScopes[part], /*withColumns=*/false);
    }
    for (int64_t part = 0; part < parts; ++part) {
      openPart(part);
      loadPart(roots, partScopes[part], /*withColumns=*/true);
      emitPoint(roots, partScopes[part], part);
      if (!keepsColumns)
        forgetColumns(partScopes[part]);
    }
    isThere = Value();
    for (ReduceOp reduce : reduces)
      wide.push_back(running[reduce].front());
  } else {
    countReads(roots);
    wide = emitAccesses(roots, reduces, inits);
  }
  position[*laneDim] = Value();

  SmallVector<ReduceOp> ended;
  SmallVector<Value> values;
  for (auto [reduce, sum, before] : llvm::zip_equal(reduces, wide, outer)) {
    Value total = width == 1 ? sum : b.reduceLanes(reduce.getKind(), sum);
    if (getLevel(reduce) + 1 == nest.size()) {
      ended.push_back(reduce);
      values.push_back(total);
      continue;
    }
    running[reduce] = before;
    accumulate(reduce, total, 0);
  }
  for (auto [reduce, total] : llvm::zip_equal(ended, reduceGroup(ended, values)))
    scopes.back()[reduce] = total;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Sums with several values at a time: one running value per part where parts are spelled out, else shared memory of
/// which each thread meets its own lanes only; the thread's own memory where there are no lanes.
LogicalResult GroupSkeleton::reserveMemory() {
  for (const Root &root : schedule.getRoots()) {
    ReduceOp reduce = root.reduce;
    if (!reduce || memory.contains(reduce) || getMemoryDims(reduce).empty())
      continue;
    int64_t count = getMemoryCount(reduce);
    if (hasLanes(reduce) && parts && keepsSums && getMemoryDims(reduce).size() == 1)
      continue;
    if (hasLanes(reduce)) {
      if (b.getSharedBytes() + count * groupsPerBlock * getElementBytes(reduce.getType()) > device.sharedBytesPerBlock)
        return op.emitOpError("keeps ") << count << " sums of " << reduce.getType() << " at a time, more than the "
                                        << device.sharedBytesPerBlock << " bytes of shared memory of " << device.chip
                                        << "; cut the summed dim into blocks of fewer columns";
      memory[reduce] = b.address(b.shared(reduce.getType(), count * groupsPerBlock), reduce.getType(),
                                 b.mul(groupInBlock, count));
      continue;
    }
    constexpr int64_t kLimit = 256;
    if (count > kLimit)
      return op.emitOpError("keeps ") << count << " sums per thread, more than " << kLimit
                                      << "; cut the summed dim into blocks of fewer columns";
    memory[reduce] = b.local(reduce.getType(), count);
  }
  return success();
}

Value GroupSkeleton::loadReduction(ReduceOp reduce, int64_t width) {
  auto load = [&]() -> SmallVector<Value> {
    return {b.load(memory.lookup(reduce), reduce.getType(), getMemoryIndex(reduce), hasLanes(reduce) ? width : 1,
                   getSumAlignment(reduce))};
  };
  return hasLanes(reduce) ? whereThere(load).front() : load().front();
}

void GroupSkeleton::accumulate(ReduceOp reduce, Value value, unsigned part) {
  // Inside the shared loop a sum over lanes is carried, wherever it goes later.
  bool isCarried = isOverLanes(reduce) && position[*laneDim];
  if (Value pointer = memory.lookup(reduce); pointer && !isCarried) {
    auto combine = [&] { combineInMemory(reduce, pointer, value, getSumAlignment(reduce)); };
    return isThere ? b.when(isThere, combine) : combine();
  }
  Value &sum = running[reduce][hasLanes(reduce) && !isCarried ? part : 0];
  Value combined = b.combine(reduce.getKind(), sum, value);
  sum = isThere && isCarried ? arith::SelectOp::create(b, isThere, combined, sum) : combined;
}

/// Sums over the group, or over all teams.
SmallVector<Value> GroupSkeleton::reduceGroup(ArrayRef<ReduceOp> reduces, ArrayRef<Value> values, bool overTeams) {
  SmallVector<Value> totals;
  if (reduces.empty())
    return totals;
  SmallVector<ReduceKind> kinds;
  for (ReduceOp reduce : reduces)
    kinds.push_back(reduce.getKind());
  if (overTeams && teams > 1)
    return reduceBlock(b, kinds, values, group * teams, /*isInLoop=*/false);
  if (group > kWarpSize)
    return reduceBlock(b, kinds, values, group, /*isInLoop=*/openLoops > 0, teams, turn);
  for (auto [kind, value] : llvm::zip_equal(kinds, values))
    totals.push_back(b.reduceWarp(kind, value));
  return totals;
}

/// Adds up the running values of all teams, which each has of its rows. What is stored behind it may lie where teams
/// have read, so there is a barrier in any case.
void GroupSkeleton::combineTeams(ArrayRef<ReduceOp> reduces) {
  SmallVector<Value> memories;
  auto getPlace = [&](ReduceOp reduce, Value team, int64_t part) {
    return hasLanes(reduce) ? b.mul(b.add(b.mul(b.add(b.mul(team, parts), part), group), member), width) : team;
  };
  for (ReduceOp reduce : reduces) {
    SmallVector<Value> &values = running[reduce];
    Value memory = b.shared(reduce.getType(), teams * (hasLanes(reduce) ? parts * group * width : 1));
    memories.push_back(memory);
    auto store = [&] {
      for (size_t part = 0; part < values.size(); ++part)
        b.store(values[part], memory, getPlace(reduce, team, part), getSumAlignment(reduce));
    };
    hasLanes(reduce) ? store() : b.when(b.isEqual(member, b.i64(0)), store);
  }
  b.barrier();
  for (size_t i = 0; i < reduces.size(); ++i) {
    ReduceOp reduce = reduces[i];
    SmallVector<Value> &values = running[reduce];
    for (size_t part = 0; part < values.size(); ++part)
      for (int64_t t = 0; t < teams; ++t) {
        Value ofTeam = b.load(memories[i], reduce.getType(), getPlace(reduce, b.i64(t), part),
                              hasLanes(reduce) ? width : 1, getSumAlignment(reduce));
        values[part] = t ? b.combine(reduce.getKind(), values[part], ofTeam) : ofTeam;
      }
  }
}

FailureOr<LaunchShape> emitGroups(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                  const Device &device) {
  return GroupSkeleton(b, op, arguments, device).emit();
}

} // namespace spmd::kernel
