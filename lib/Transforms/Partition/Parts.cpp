//===- Parts.cpp - dimensions that are sharded parts side by side ---------===//
//
// [Note: parts]
// Two batches put one after the other are S(0, 2, c): each rank holds its rows of
// the first, then of the second. Nothing moves, though the rule of cat says that
// it needs the dimension whole. In the same way a slice or a split of such a value
// at the borders of its parts, and their gradients, stay sharded: contrastive
// losses and microbatches cut out of one batch do this.
//
//===----------------------------------------------------------------------===//

#include "Parts.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/TensorType.h"

using namespace mlir;

namespace spmd::partition {

namespace {

/// Rows of one part of a value that is sharded in `dim`; nothing when it is not.
std::optional<int64_t> getPartRows(Value value, const AxisState &state, int64_t dim) {
  if (!state.isShard() || state.dim != dim)
    return std::nullopt;
  return typeOf(value).getDimSize(dim) / state.pre;
}

/// The state of `rows` rows of parts of `partRows`.
std::optional<AxisState> getPartsState(const AxisState &state, int64_t rows, int64_t partRows) {
  if (rows == 0 || partRows == 0 || rows % partRows != 0)
    return std::nullopt;
  return AxisState::shard(state.dim, rows / partRows, state.chunk);
}

int64_t getRows(Value value, int64_t dim) { return typeOf(value).getDimSize(dim); }

} // namespace

std::optional<SmallVector<AxisState>> mapThroughParts(Operation *op, ArrayRef<AxisState> operands) {
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  std::optional<aten::Pieces> pieces = iface ? iface.getRowPieces() : std::nullopt;
  if (!pieces)
    return std::nullopt;
  int64_t dim = pieces->dim;
  std::optional<int64_t> rows;
  for (auto [operand, state] : llvm::zip_equal(op->getOperands(), operands)) {
    std::optional<int64_t> own = getPartRows(operand, state, dim);
    if (!own || (rows && *rows != *own) || state.chunk != operands.front().chunk)
      return std::nullopt;
    rows = own;
  }
  if (!rows)
    return std::nullopt;
  // Slices begin where a part does.
  if (pieces->step != 1 || *rows == 0 || pieces->start % *rows != 0)
    return std::nullopt;
  SmallVector<AxisState> results;
  for (Value result : op->getResults()) {
    std::optional<AxisState> state = getPartsState(operands.front(), getRows(result, dim), *rows);
    if (!state)
      return std::nullopt;
    results.push_back(*state);
  }
  return results;
}

} // namespace spmd::partition
