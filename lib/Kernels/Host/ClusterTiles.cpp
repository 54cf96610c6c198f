//===- ClusterTiles.cpp - transposed operands of a cluster ----------------===//
//
// An operand whose elements lie side by side along another dim than the results' would be read one element per cache
// line. Tiles of 16 x 16 of it are loaded as vectors along its own dim and transposed in registers. Where little is
// computed from one such operand its rows stay there; else they are kept on the stack and read row by row.
//
// [Note: order of tiles] Tiles go along the operand's rows first, four of them, and then along the result's: both are
// then read and written in pieces of more than one line of the cache, which the machine prefetches. But where the
// result's rows are a multiple of 1 KB apart, the lines of 64 of them share so few sets of the first cache that they
// push each other out, with what was prefetched. There tiles go along the result's rows first, two of them (four where
// all rows share one set), for two tiles of the operand's rows, and such blocks follow each other along the result's.
//
//===----------------------------------------------------------------------===//

#include "ClusterEmitter.h"
#include "Tile.h"
#include <numeric>

using namespace mlir;

namespace spmd::kernel {

/// A block of tiles, in positions of the tiled dim and of the innermost; tiles in it go along the innermost first.
ClusterEmitter::TileBlock ClusterEmitter::getTileBlock(unsigned tiledDim) const {
  // Addresses a multiple of this apart share a set of the first cache.
  constexpr int64_t kSetBytes = 4096;
  int64_t shared = 0;
  for (const Root &root : schedule.getRoots()) {
    int64_t bytes = getStoredBytes(getElementTypeOrSelf(op.getResult(root.result).getType()));
    int64_t apart = resultAccess[root.result].getStride(tiledDim).value_or(1) * bytes;
    shared = std::max(shared, std::gcd(apart, kSetBytes));
  }
  if (shared < kSetBytes / 4)
    return {4 * kLanes, kLanes};
  return {2 * kLanes, (shared < kSetBytes ? 2 : 4) * kLanes};
}

/// Side by side along `tiledDim` but not along the innermost dim.
bool ClusterEmitter::isTransposed(unsigned operand, unsigned tiledDim) {
  std::optional<int64_t> inner = operandAccess[operand].getStride(innermostDim());
  return !llvm::is_contained(op.getGuarded(), operand) && inner && *inner != 0 && *inner != 1 &&
         operandAccess[operand].getStride(tiledDim) == 1;
}

/// The dim to tile together with the innermost: any sequential one or the last parallel one.
std::optional<unsigned> ClusterEmitter::findTiledDim() {
  if (nest.empty() || dims[innermostDim()] < kLanes)
    return std::nullopt;
  for (const Root &root : schedule.getRoots())
    if (root.reduce || !root.dims.all() || resultAccess[root.result].getStride(innermostDim()) != 1)
      return std::nullopt;
  unsigned parallel = op.getParallel();
  for (unsigned d = parallel ? parallel - 1 : 0; d < innermostDim(); ++d)
    for (unsigned i = 0; i < op.getInputs().size(); ++i)
      if (dims[d] >= kLanes && isTransposed(i, d))
        return d;
  return std::nullopt;
}

void ClusterEmitter::emitTiledIterations(unsigned tiledDim) {
  unsigned parallel = op.getParallel();
  if (tiledDim >= parallel) {
    b.loop(arguments.begin, arguments.end, 1, [&](Value iteration) {
      setPosition(iteration, parallel);
      emitTiledNest(parallel, tiledDim, /*tiled=*/0);
    });
    return;
  }
  // The tiled dim is cut among iterations: whole tiles first, wherever the range begins, as every element is on its
  // own.
  int64_t size = dims[tiledDim];
  Value first = b.floorDiv(arguments.begin, size), end = b.floorDiv(b.add(arguments.end, size - 1), size);
  b.loop(first, end, 1, [&](Value outer) {
    setPosition(outer, tiledDim);
    Value start = b.mul(outer, size);
    Value low = b.max(b.sub(arguments.begin, start), b.i64(0));
    Value high = b.min(b.sub(arguments.end, start), b.i64(size));
    auto run = [&](Value from, Value to, int64_t step) {
      Value end = b.add(from, b.sub(b.sub(to, from), b.mod(b.sub(to, from), step)));
      b.loop(from, end, step, [&](Value i) {
        position[tiledDim] = i;
        emitTiledNest(parallel, tiledDim, step >= kLanes ? step : 0);
      });
      return end;
    };
    run(run(run(low, high, getTileBlock(tiledDim).tiled), high, kLanes), high, 1);
  });
}

/// The sequential dims from `dim` on; `tiled` positions of the tiled dim are open, or one where that is 0.
void ClusterEmitter::emitTiledNest(unsigned dim, unsigned tiledDim, int64_t tiled) {
  if (dim == innermostDim()) {
    if (tiled)
      return emitTiles(tiledDim, tiled);
    scopes.emplace_back();
    emitInvariantBefore(nest.size() - 1, getRoots());
    emitInnermost(getRoots(), b.i64(0), b.i64(dims[dim]));
    scopes.pop_back();
    return;
  }
  auto run = [&](int64_t low, int64_t step, int64_t positions) {
    int64_t high = dims[dim] - (dims[dim] - low) % step;
    if (low < high)
      b.loop(b.i64(low), b.i64(high), step, [&](Value i) {
        position[dim] = i;
        emitTiledNest(dim + 1, tiledDim, positions);
      });
    return high;
  };
  if (dim != tiledDim) {
    run(0, 1, tiled);
  } else {
    int64_t block = getTileBlock(tiledDim).tiled;
    run(run(run(0, block, block), kLanes, kLanes), 1, 0);
  }
}

/// All of the innermost dim for `positions` of the tiled dim, a multiple of 16.
void ClusterEmitter::emitTiles(unsigned tiledDim, int64_t positions) {
  unsigned inner = innermostDim();
  Value first = position[tiledDim];
  int64_t whole = dims[inner] - dims[inner] % kLanes;
  Roots roots = getRoots();
  auto emitRow = [&](Value row, Value column, int64_t width, Scope &scope) {
    position[tiledDim] = b.add(first, row);
    position[inner] = column;
    SmallVector<Value> values;
    for (const Root *root : roots)
      values.push_back(b.broadcast(getValue(root->value, width, scope), width));
    for (auto [root, value] : llvm::zip_equal(roots, values))
      storeResult(root->result, value, width);
  };
  SmallVector<unsigned> operands;
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    if (isTransposed(i, tiledDim))
      operands.push_back(i);
  constexpr size_t kFewOperations = 4;
  bool staysInRegisters = operands.size() == 1 && op.getBodyBlock()->getOperations().size() <= kFewOperations;
  SmallVector<Value> memory;
  if (!staysInRegisters)
    for (unsigned i : operands)
      memory.push_back(b.stack(op.getBodyBlock()->getArgument(i).getType(), kLanes * kLanes));
  auto emitTile = [&](Value column, Value start) {
    for (auto [n, i] : llvm::enumerate(operands)) {
      Value argument = op.getBodyBlock()->getArgument(i);
      SmallVector<Value> block;
      position[tiledDim] = b.add(first, start);
      for (int64_t l = 0; l < kLanes; ++l) {
        position[inner] = b.add(column, l);
        block.push_back(b.load(arguments.operands[i], argument.getType(), emitIndex(op.getOperandMap(i)), kLanes));
      }
      for (auto [l, value] : llvm::enumerate(transpose16(b, block))) {
        if (!staysInRegisters) {
          b.store(value, memory[n], b.i64(l * kLanes));
          continue;
        }
        Scope scope;
        scope[argument] = value;
        emitRow(b.add(start, l), column, kLanes, scope);
      }
    }
    if (staysInRegisters)
      return;
    b.loop(b.i64(0), b.i64(kLanes), 1, [&](Value row) {
      Scope scope;
      for (auto [tile, i] : llvm::zip_equal(memory, operands)) {
        Value argument = op.getBodyBlock()->getArgument(i);
        scope[argument] = b.load(tile, argument.getType(), b.mul(row, kLanes), kLanes);
      }
      emitRow(b.add(start, row), column, kLanes, scope);
    });
  };
  int64_t block = positions > kLanes ? getTileBlock(tiledDim).inner : kLanes;
  b.loop(b.i64(0), b.i64(whole), block, [&](Value low) {
    Value high = b.min(b.add(low, block), b.i64(whole));
    b.loop(b.i64(0), b.i64(positions), kLanes, [&](Value start) {
      b.loop(low, high, kLanes, [&](Value column) { emitTile(column, start); });
    });
  });
  b.loop(b.i64(whole), b.i64(dims[inner]), 1, [&](Value column) {
    b.loop(b.i64(0), b.i64(positions), 1, [&](Value row) {
      Scope scope;
      emitRow(row, column, 1, scope);
    });
  });
  position[tiledDim] = first;
  position[inner] = Value();
}

} // namespace spmd::kernel
