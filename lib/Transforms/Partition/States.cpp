//===- States.cpp - local shapes and types of states ----------------------===//

#include "States.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::partition {

int64_t getChunk(int64_t total, int64_t ranks) { return llvm::divideCeil(total, ranks); }

SmallVector<int64_t> getLocalShape(ArrayRef<int64_t> global, const AxisState &state) {
  SmallVector<int64_t> local(global);
  if (state.isShard())
    local[state.dim] = state.pre * state.chunk;
  if (state.isOwned())
    local.assign(1, state.chunk);
  return local;
}

RankedTensorType getLocalType(RankedTensorType global, const AxisState &state) {
  // The chunk of an owned value stands in the type's shape only.
  AxisState stored = state.isOwned() ? AxisState::owned() : state.within(AxisState::Outer::same);
  SmallVector<AxisState> states;
  if (state.outer != AxisState::Outer::same)
    states.push_back(state.outer == AxisState::Outer::partial ? AxisState::partial(ReduceKind::sum)
                                                              : AxisState::replicated());
  states.push_back(stored);
  auto sharding = ShardingAttr::get(global.getContext(), global.getShape(), states);
  return RankedTensorType::get(getLocalShape(global.getShape(), state), global.getElementType(), sharding);
}

bool hasPadding(ArrayRef<int64_t> global, const AxisState &state, int64_t ranks) {
  return state.isShard() && state.chunk * ranks > global[state.dim] / state.pre;
}

/// Elements of a block of dimensions.
static int64_t product(ArrayRef<int64_t> shape) { return ShapedType::getNumElements(shape); }

FlatCut getFlatCut(ArrayRef<int64_t> shape, const AxisState &shard) {
  int64_t inner = product(shape.drop_front(shard.dim + 1));
  return {product(shape.take_front(shard.dim)) * shard.pre, shape[shard.dim] / shard.pre * inner, shard.chunk * inner};
}

std::optional<AxisState> mapThroughView(ArrayRef<int64_t> from, const AxisState &state, ArrayRef<int64_t> to) {
  auto [outer, elements, chunk] = getFlatCut(from, state);
  int64_t before = 1;
  for (auto [dim, size] : llvm::enumerate(to)) {
    if (before > outer)
      break;
    int64_t after = product(to.drop_front(dim + 1));
    // The dimension is [pre][rows] with rows * after == elements.
    if (outer % before == 0 && size % (outer / before) == 0) {
      int64_t pre = outer / before, rows = size / pre;
      if (rows > 1 && rows * after == elements && chunk % after == 0)
        return AxisState::shard(dim, pre, chunk / after);
    }
    before *= size;
  }
  return std::nullopt;
}

std::optional<AxisState> getState(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto sharding = tensor ? dyn_cast_or_null<ShardingAttr>(tensor.getEncoding()) : ShardingAttr();
  if (!sharding || sharding.getStates().empty() || sharding.getStates().size() > 3)
    return std::nullopt;
  AxisState state = sharding.getStates().back();
  AxisState first = sharding.getStates().front();
  // A piece that ranks have within their group, and each group of each row.
  if (sharding.getStates().size() == 3 &&
      (!first.isReplicated() || !sharding.getStates()[1].isReplicated() || !state.isOwned()))
    return std::nullopt;
  if (sharding.getStates().size() > 1) {
    bool isSum = first == AxisState::partial(ReduceKind::sum);
    // What all have is written as one state, and a value that is cut along one axis alone is none of ours.
    if ((!first.isReplicated() && !isSum) || !(state.isOwned() || state.isPartial()))
      return std::nullopt;
    state.outer = isSum ? AxisState::Outer::partial : AxisState::Outer::replicated;
  }
  if (state.isOwned())
    state.chunk = tensor.getDimSize(0);
  return state;
}

bool isSharedByAll(ModuleOp module, MeshOp mesh) {
  return llvm::any_of(module.getOps<ShardUnitOp>(),
                      [&](ShardUnitOp unit) { return unit.isSharded() && unit.getAxes() == mesh.getDataAxes(); });
}

ArrayRef<int64_t> getGlobalShape(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto sharding = dyn_cast_or_null<ShardingAttr>(tensor.getEncoding()))
    return sharding.getGlobalShape();
  return tensor.getShape();
}

} // namespace spmd::partition
