//===- ClusterRowsInFlight.cpp - several rows of a cluster at a time ------===//
//
// [Note: rows in flight]
// Between two passes over a row is the end of a reduction: a chain of shuffles, a division, a root, in which nothing
// else of that row can run. So where rows come from a cache, the passes over successive rows run in one loop: pass 0 of
// row r with pass 1 of row r - 1 and so on, as many rows in flight as there are passes. Each has accumulators of its
// own, so the bits are those of rows one by one. From memory it does not pay (more streams; see
// [Note: rows ahead]), nor where functions take the time, nor where an iteration also sums over rows.
//
// What a row takes along to its next pass are its sums; what follows from them is computed again.
//
//===----------------------------------------------------------------------===//

#include "ClusterEmitter.h"
#include "VectorLoop.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <map>

using namespace mlir;

namespace spmd::kernel {

/// Where a row is and what is known of it, the pass that comes next, and the sums of those before.
struct ClusterEmitter::Row {
  SmallVector<Value> position;
  SmallVector<Scope> scopes;
  size_t pass;
  SmallVector<Value> sums;
};

/// The passes over a row, when rows may be in flight; none otherwise.
SmallVector<ClusterEmitter::Pass> ClusterEmitter::findPasses() const {
  constexpr int64_t kCacheBytes = 8 << 20, kLongestRow = 4096, kVectors = 8;
  unsigned inner = innermostDim();
  if (nest.size() != 1 || op.getParallel() == 0 || kept || dims[inner] < 4 * kLanes || dims[inner] > kLongestRow ||
      b.getAccumulators() < kVectors || op.getBytesMoved() > kCacheBytes)
    return {};
  std::map<int64_t, Pass> passes;
  for (const Root &root : schedule.getRoots()) {
    if (!root.dims.test(inner))
      continue;
    if (findOnlyPlace(root) || !isVectorizable({&root}))
      return {};
    for (Value value : schedule.getClosure(root.value)) {
      Operation *def = value.getDefiningOp();
      if (def && isa<math::MathDialect>(def->getDialect()) && schedule.getVarying(value).test(inner))
        return {};
    }
    Pass &pass = passes[root.stage.back()];
    pass.roots.push_back(&root);
    if (root.reduce)
      pass.reductions.push_back(root.reduce);
  }
  SmallVector<Pass> found;
  for (auto &[stage, pass] : passes)
    found.push_back(pass);
  return found.size() > 1 ? found : SmallVector<Pass>();
}

/// Runs `body` at the place of `row`.
void ClusterEmitter::atRow(Row &row, llvm::function_ref<void()> body) {
  std::swap(position, row.position);
  std::swap(scopes, row.scopes);
  body();
  std::swap(position, row.position);
  std::swap(scopes, row.scopes);
}

/// The row of an iteration after the passes `before`, with their sums.
ClusterEmitter::Row ClusterEmitter::openRow(Value iteration, ArrayRef<Pass> before, ValueRange sums) {
  Row row = {position, scopes, before.size(), SmallVector<Value>(sums.begin(), sums.end())};
  atRow(row, [&] {
    setPosition(iteration, op.getParallel());
    scopes.emplace_back();
    auto sum = sums.begin();
    for (const Pass &pass : before)
      for (ReduceOp reduce : pass.reductions)
        scopes.back()[reduce] = *sum++;
  });
  return row;
}

/// Runs the next pass of each row in one loop over the innermost dim. After its last, what has one value per row is
/// stored: until then it may lie where an operand does that is still read.
void ClusterEmitter::emitPasses(ArrayRef<Pass> passes, MutableArrayRef<Row> flying) {
  constexpr int64_t kAheadBytes = 640;
  unsigned dim = innermostDim();
  SmallVector<Reduction> reductions;
  for (Row &row : flying)
    atRow(row, [&] {
      emitInvariantBefore(nest.size() - 1, passes[row.pass].roots);
      for (ReduceOp reduce : passes[row.pass].reductions)
        reductions.push_back({reduce.getKind(), reduce.getType()});
    });
  auto askAhead = [&] {
    for (unsigned o = 0; o < operandAccess.size(); ++o) {
      int64_t bytes = getStoredBytes(op.getBodyBlock()->getArgument(o).getType());
      if (isReadByRows(o))
        prefetchOperand(o, kAheadBytes / bytes, kLanes, /*cache=*/1);
    }
  };
  auto emitPoint = [&](Value i, int64_t width, ValueRange accumulators) {
    SmallVector<SmallVector<Value>> values(flying.size());
    SmallVector<Value> out;
    // Everything is read before anything is written: a result may lie where an operand does.
    for (auto [row, ofRow] : llvm::zip_equal(flying, values))
      atRow(row, [&, &row = row, &ofRow = ofRow] {
        Scope known;
        position[dim] = i;
        for (const Root *root : passes[row.pass].roots)
          ofRow.push_back(b.broadcast(getValue(root->value, width, known), width));
        if (row.pass == 0 && width == kLanes)
          askAhead();
      });
    for (auto [row, ofRow] : llvm::zip_equal(flying, values))
      atRow(row, [&, &row = row, &ofRow = ofRow] {
        for (auto [root, value] : llvm::zip_equal(passes[row.pass].roots, ofRow)) {
          if (root->reduce)
            out.push_back(b.combine(root->reduce.getKind(), accumulators[out.size()], value));
          else
            storeResult(root->result, value, width);
        }
        position[dim] = Value();
      });
    return out;
  };
  SmallVector<Value> totals = emitVectorLoop(b, b.i64(0), b.i64(dims[dim]), reductions, /*vectorize=*/true, emitPoint);
  auto total = totals.begin();
  for (Row &row : flying)
    atRow(row, [&] {
      for (ReduceOp reduce : passes[row.pass].reductions) {
        row.sums.push_back(*total);
        scopes.back()[reduce] = *total++;
      }
      if (++row.pass < passes.size())
        return;
      for (const Root &root : schedule.getRoots())
        if (!root.dims.test(dim))
          storeResult(root.result, getValue(root.value, 1, scopes.back()), 1);
    });
}

/// Runs all iterations, which are at least as many as passes.
void ClusterEmitter::emitRowsInFlight(ArrayRef<Pass> passes) {
  using Sums = SmallVector<SmallVector<Value>>; // of the row that takes pass p + 1 next, for each p
  size_t count = passes.size();
  /// Runs pass `from` of iteration `first`, and later passes up to `to` of those before it.
  auto advance = [&](Value first, size_t from, size_t to, const Sums &sums) {
    SmallVector<Row> flying;
    for (size_t pass = from; pass < to; ++pass)
      flying.push_back(openRow(b.sub(first, b.i64(pass - from)), passes.take_front(pass),
                               pass == 0 ? ValueRange() : ValueRange(sums[pass - 1])));
    emitPasses(passes, flying);
    Sums out(count - 1);
    for (Row &row : flying)
      if (row.pass < count)
        out[row.pass - 1] = row.sums;
    return out;
  };
  auto flatten = [](const Sums &sums) {
    SmallVector<Value> flat;
    for (const SmallVector<Value> &row : sums)
      flat.append(row);
    return flat;
  };
  Sums sums(count - 1);
  for (size_t t = 0; t + 1 < count; ++t)
    sums = advance(b.add(arguments.begin, t), 0, t + 1, sums);
  auto unflatten = [&](ValueRange flat) {
    Sums out;
    for (const SmallVector<Value> &row : sums) {
      out.emplace_back(flat.begin(), flat.begin() + row.size());
      flat = flat.drop_front(row.size());
    }
    return out;
  };
  Value second = b.add(arguments.begin, count - 1);
  sums = unflatten(b.loop(second, arguments.end, 1, flatten(sums), [&](Value iteration, ValueRange carried) {
    return flatten(advance(iteration, 0, count, unflatten(carried)));
  }));
  for (size_t from = 1; from < count; ++from)
    sums = advance(b.sub(arguments.end, b.i64(1)), from, count, sums);
}

} // namespace spmd::kernel
