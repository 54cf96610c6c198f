//===- TileSkeleton.cpp - clusters that read across their results ---------===//

#include "ClusterSkeleton.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

/// Points of a tile along each of its two dims: the lanes of a warp.
constexpr int64_t kTile = kWarpSize;
/// Warps of a block: each does every kWarps-th row of the tile.
constexpr int64_t kWarps = 8;

/// Whether operand `i` lies side by side along `dim`, and not along the last dim.
bool isAcross(ClusterOp op, unsigned i, unsigned dim) {
  if (llvm::is_contained(op.getGuarded(), i))
    return false;
  AccessMap access = AccessMap::get(op.getOperandMap(i));
  std::optional<int64_t> last = access.getStride(op.getDims().size() - 1);
  return last && *last != 0 && *last != 1 && access.getStride(dim) == 1;
}

/// The dim to tile together with the last one.
std::optional<unsigned> findTiledDim(ClusterOp op) {
  ArrayRef<int64_t> dims = op.getDims();
  if (dims.size() < 2 || !getNestDims(op).empty() || dims.back() < kTile / 4)
    return std::nullopt;
  for (unsigned r = 0; r < op.getNumResults(); ++r)
    if (AccessMap::get(op.getResultMap(r)).getStride(dims.size() - 1) != 1)
      return std::nullopt;
  for (unsigned d = 0; d + 1 < dims.size(); ++d)
    for (unsigned i = 0; i < op.getInputs().size(); ++i)
      if (dims[d] >= kTile / 4 && isAcross(op, i, d))
        return d;
  return std::nullopt;
}

class TileSkeleton : private ClusterSkeleton {
public:
  using ClusterSkeleton::ClusterSkeleton;
  FailureOr<LaunchShape> emit();

private:
  /// `body(row)` for the rows of the tile that this warp does; `tiled` and `last` say where the tile's dims are then.
  void forRows(llvm::function_ref<void(Value row)> body);
  void whenInside(llvm::function_ref<void()> body);
  Value loadReduction(ReduceOp, int64_t) override { return Value(); }

  unsigned tiledDim = 0, lastDim = 0;
};

} // namespace

void TileSkeleton::forRows(llvm::function_ref<void(Value)> body) {
  auto [warp, lane] = b.divide(b.getThread(), kTile, kTile * kWarps);
  for (int64_t row = 0; row < kTile; row += kWarps)
    body(b.add(warp, row));
}

/// `body` where the current position is inside of both dims; no question where whole tiles fill them.
void TileSkeleton::whenInside(llvm::function_ref<void()> body) {
  SmallVector<unsigned> ragged;
  for (unsigned d : {tiledDim, lastDim})
    if (dims[d] % kTile)
      ragged.push_back(d);
  std::function<void(ArrayRef<unsigned>)> nested = [&](ArrayRef<unsigned> rest) {
    if (rest.empty())
      return body();
    b.when(b.isLess(position[rest.front()], b.i64(dims[rest.front()])), [&] { nested(rest.drop_front()); });
  };
  nested(ragged);
}

FailureOr<LaunchShape> TileSkeleton::emit() {
  tiledDim = *findTiledDim(op);
  lastDim = dims.size() - 1;
  SmallVector<unsigned> outer;
  int64_t grid = 1;
  for (unsigned d : gridDims)
    if (d != tiledDim && d != lastDim) {
      outer.push_back(d);
      grid *= dims[d];
    }
  int64_t across = llvm::divideCeil(dims[tiledDim], kTile), along = llvm::divideCeil(dims[lastDim], kTile);
  grid *= across * along;
  auto [rest, lastTile] = b.divide(block, along, grid);
  auto [flat, tiledTile] = b.divide(rest, across, grid);
  setPosition(flat, outer);
  Value tiledStart = b.mul(tiledTile, kTile), lastStart = b.mul(lastTile, kTile);
  auto [warp, lane] = b.divide(b.getThread(), kTile, kTile * kWarps);
  Value column = lane;

  // One more column than is used: then neither rows nor columns of a tile meet in one bank.
  constexpr int64_t kStride = kTile + 1;
  SmallVector<std::pair<unsigned, Value>> tiles;
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    if (isAcross(op, i, tiledDim))
      tiles.emplace_back(i, b.shared(op.getBodyBlock()->getArgument(i).getType(), kTile * kStride));
  scopes.emplace_back();
  forRows([&](Value row) {
    position[tiledDim] = b.add(tiledStart, column);
    position[lastDim] = b.add(lastStart, row);
    whenInside([&] {
      for (auto [i, tile] : tiles) {
        Scope scope;
        Value element = getValue(op.getBodyBlock()->getArgument(i), 1, scope);
        b.store(element, tile, b.add(b.mul(row, kStride), column));
      }
    });
  });
  b.barrier();
  forRows([&](Value row) {
    position[tiledDim] = b.add(tiledStart, row);
    position[lastDim] = b.add(lastStart, column);
    whenInside([&] {
      Scope scope;
      for (auto [i, tile] : tiles) {
        Value argument = op.getBodyBlock()->getArgument(i);
        scope[argument] = b.load(tile, argument.getType(), b.add(b.mul(column, kStride), row));
      }
      SmallVector<Value> values;
      for (const Root *root : getRoots())
        values.push_back(getValue(root->value, 1, scope));
      for (auto [root, value] : llvm::zip_equal(getRoots(), values))
        storeResult(*root, value, 1);
    });
  });
  scopes.pop_back();
  return LaunchShape{kTile * kWarps, grid};
}

bool isTransposing(ClusterOp op) { return findTiledDim(op).has_value(); }

FailureOr<LaunchShape> emitTiles(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                 const Device &device) {
  return TileSkeleton(b, op, arguments, device).emit();
}

} // namespace spmd::kernel
