//===- States.h - local shapes and types of states --------------*- C++ -*-===//
//
// [Note: states]
// A value is in exactly one state per mesh axis (spmd::AxisState):
//   R        replicated
//   S(d,p,c) dimension d is [p][total], total is cut into chunks of c rows
//   P(kind)  the combination of all ranks' values is the value
//   owned    a chunk of a unit's flat buffer
//   varying  each rank's own, with view=local ([Note: local view])
// Of two axes over which the batch is cut a value's state is one of all ranks together, or one of the
// second axis alone, where units are cut, while the first has the same everywhere
// (or sums that are still to be added up): AxisState::outer.
// Units that are cut along groups and what these are of count as cut along one axis, of both.
// What it is on a tensor axis no state says: [Note: the tensor axis].
// `p`, the place of the rank inside the dimension, is what keeps a batch dimension
// sharded through views that merge it with a dimension before it ([T,B,C] to
// [T*B,C]). Chunks have the same size on all ranks; the last ones are padded. What
// is in padded rows is undefined, so whatever adds rows up masks them first.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_STATES_H
#define SPMD_LIB_TRANSFORMS_PARTITION_STATES_H

#include "dialects/Spmd/Spmd.h"
#include "dialects/Spmd/TensorBytes.h"

namespace spmd::partition {

/// Rows of a chunk when `total` rows are cut for `ranks` ranks.
int64_t getChunk(int64_t total, int64_t ranks);

/// Shape a rank computes on.
llvm::SmallVector<int64_t> getLocalShape(llvm::ArrayRef<int64_t> global, const AxisState &state);

/// Local type, with the sharding as encoding, of a value of type `global`.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType global, const AxisState &state);

/// True when some rank's chunk has padded rows.
bool hasPadding(llvm::ArrayRef<int64_t> global, const AxisState &state, int64_t ranks);

/// Where a shard lies in memory: `outer` runs of `elements`, and of each run a rank has `chunk` elements. Two states that
/// differ only in dimensions of size 1 have equal cuts.
struct FlatCut {
  int64_t outer, elements, chunk;
  bool operator==(const FlatCut &other) const {
    return outer == other.outer && elements == other.elements && chunk == other.chunk;
  }
};
FlatCut getFlatCut(llvm::ArrayRef<int64_t> shape, const AxisState &shard);

/// Where the shard of a value of shape `from` lands when the same elements, in the
/// same order, have shape `to`; nothing when it is no shard of one dimension.
std::optional<AxisState> mapThroughView(llvm::ArrayRef<int64_t> from, const AxisState &state,
                                        llvm::ArrayRef<int64_t> to);

/// The state of an encoded type, on all axes of the mesh; nothing when the type has no
/// #spmd.sharding, or one that is no such state.
std::optional<AxisState> getState(mlir::Type type);
/// Whether the op combines or cuts what ranks along the tensor axis of the mesh have ([Note: the tensor axis]).
bool isAlongTensor(mlir::Operation *op, MeshOp mesh);
/// Whether such an op leaves an operand of this state in it.
bool keepsStateAlongTensor(mlir::Operation *op, unsigned operand, const AxisState &state);
/// Whether units are cut along all data axes of the mesh, of which the last are groups of ranks then.
bool isSharedByAll(mlir::ModuleOp module, MeshOp mesh);
/// The global shape of an encoded type, or its own shape.
llvm::ArrayRef<int64_t> getGlobalShape(mlir::Type type);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_STATES_H
