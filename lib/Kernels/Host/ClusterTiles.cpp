//===- ClusterTiles.cpp - transposed operands of a cluster ----------------===//
//
// An operand whose elements lie side by side along another dim than the results' would be read one element per cache
// line. Blocks of 16 x 16 of it are loaded as vectors along its own dim, transposed in registers, kept on the stack,
// and read from there row by row.
//
//===----------------------------------------------------------------------===//

#include "ClusterEmitter.h"
#include "Tile.h"

using namespace mlir;

namespace spmd::kernel {

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

void ClusterEmitter::emitTiledTrips(unsigned tiledDim) {
  unsigned parallel = op.getParallel();
  if (tiledDim >= parallel) {
    b.loop(arguments.begin, arguments.end, 1, [&](Value trip) {
      setPosition(trip, parallel);
      emitTiledNest(parallel, tiledDim, /*inTile=*/false);
    });
    return;
  }
  // The tiled dim is cut among trips: whole tiles first, wherever the range begins, as every element is on its own.
  int64_t size = dims[tiledDim];
  Value first = b.floorDiv(arguments.begin, size), end = b.floorDiv(b.add(arguments.end, size - 1), size);
  b.loop(first, end, 1, [&](Value outer) {
    setPosition(outer, tiledDim);
    Value start = b.mul(outer, size);
    Value low = b.max(b.sub(arguments.begin, start), b.i64(0));
    Value high = b.min(b.sub(arguments.end, start), b.i64(size));
    Value length = b.sub(high, low);
    Value whole = b.add(low, b.sub(length, b.mod(length, kLanes)));
    b.loop(low, whole, kLanes, [&](Value i) {
      position[tiledDim] = i;
      emitTiledNest(parallel, tiledDim, /*inTile=*/true);
    });
    b.loop(whole, high, 1, [&](Value i) {
      position[tiledDim] = i;
      emitTiledNest(parallel, tiledDim, /*inTile=*/false);
    });
  });
}

/// The sequential dims from `dim` on; `inTile` when 16 positions of the tiled dim are open.
void ClusterEmitter::emitTiledNest(unsigned dim, unsigned tiledDim, bool inTile) {
  if (dim == innermostDim()) {
    if (inTile)
      return emitTiles(tiledDim);
    scopes.emplace_back();
    emitInvariantBefore(nest.size() - 1, getRoots());
    emitInnermost(getRoots(), b.i64(0), b.i64(dims[dim]));
    scopes.pop_back();
    return;
  }
  auto run = [&](int64_t low, int64_t high, int64_t step, bool tile) {
    b.loop(b.i64(low), b.i64(high), step, [&](Value i) {
      position[dim] = i;
      emitTiledNest(dim + 1, tiledDim, tile);
    });
  };
  if (dim != tiledDim)
    return run(0, dims[dim], 1, inTile);
  int64_t whole = dims[dim] - dims[dim] % kLanes;
  run(0, whole, kLanes, /*tile=*/true);
  run(whole, dims[dim], 1, /*tile=*/false);
}

/// All of the innermost dim for 16 positions of the tiled dim.
void ClusterEmitter::emitTiles(unsigned tiledDim) {
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
  SmallVector<std::pair<unsigned, Value>> tiles;
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    if (isTransposed(i, tiledDim))
      tiles.emplace_back(i, b.stack(op.getBodyBlock()->getArgument(i).getType(), kLanes * kLanes));
  b.loop(b.i64(0), b.i64(whole), kLanes, [&](Value column) {
    position[tiledDim] = first;
    for (auto [i, tile] : tiles) {
      Type element = op.getBodyBlock()->getArgument(i).getType();
      SmallVector<Value> block;
      for (int64_t l = 0; l < kLanes; ++l) {
        position[inner] = b.add(column, l);
        block.push_back(b.load(arguments.operands[i], element, emitIndex(op.getOperandMap(i)), kLanes));
      }
      for (auto [l, value] : llvm::enumerate(transpose16(b, block)))
        b.store(value, tile, b.i64(l * kLanes));
    }
    b.loop(b.i64(0), b.i64(kLanes), 1, [&](Value row) {
      Scope scope;
      for (auto [i, tile] : tiles) {
        Value argument = op.getBodyBlock()->getArgument(i);
        scope[argument] = b.load(tile, argument.getType(), b.mul(row, kLanes), kLanes);
      }
      emitRow(row, column, kLanes, scope);
    });
  });
  b.loop(b.i64(whole), b.i64(dims[inner]), 1, [&](Value column) {
    b.loop(b.i64(0), b.i64(kLanes), 1, [&](Value row) {
      Scope scope;
      emitRow(row, column, 1, scope);
    });
  });
  position[tiledDim] = first;
  position[inner] = Value();
}

} // namespace spmd::kernel
