//===- AlongTensor.cpp - what the tensor axis has put into the step -------===//
//
// An all-reduce or a slice along the tensor axis ([Note: the tensor axis]) is done by each group of ranks with the same
// rows, of whatever these rows are in: it leaves the state on the data axes as it is, where it may.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"

using namespace mlir;

namespace spmd::partition {

/// Whether the op combines or cuts what ranks of the tensor axis have.
bool isAlongTensor(Operation *op, MeshOp mesh) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  return axes && axes == mesh.getTensorAxes() && isa<CollectiveOpInterface, SliceOp>(op);
}

bool keepsStateAlongTensor(Operation *op, unsigned operand, const AxisState &state) {
  if (auto slice = dyn_cast<SliceOp>(op))
    return !state.isOwned() && !(state.isShard() && state.dim == static_cast<int64_t>(slice.getDim()));
  // Sums of sums are sums, in whatever order; of largest values and norms the same holds.
  auto kinds = op->getAttrOfType<ArrayAttr>("kinds");
  return state.isReplicated() || state.isShard() ||
         (state.isPartial() && kinds && cast<ReduceKindAttr>(kinds[operand]).getValue() == state.kind);
}

LogicalResult Partitioner::emitAlongTensor(Operation *op) {
  SmallVector<Value> operands;
  SmallVector<AxisState> kept;
  SmallVector<Type> types;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    AxisState state = getState(operand);
    if (state.outer != AxisState::Outer::same || !keepsStateAlongTensor(op, index, state))
      state = AxisState::replicated();
    operands.push_back(get(operand, state));
    kept.push_back(state);
    types.push_back(getLocalType(typeOf(op->getResult(index)), state));
  }
  Operation *clone = cloneOnto(op, operands, types);
  for (auto [old, state, result] : llvm::zip_equal(op->getResults(), kept, clone->getResults()))
    setLocal(old, state, result);
  return success();
}

} // namespace spmd::partition
