//===- UnitChunk.h - a rank's part of a shard unit's flat buffer -*- C++ -*-===//
#ifndef SPMD_LIB_INTERPRETER_UNITCHUNK_H
#define SPMD_LIB_INTERPRETER_UNITCHUNK_H

#include "dialects/Spmd/Spmd.h"
#include "spmd/Interpreter/Evaluator.h"

namespace spmd::interp {

/// The elements of one segment that lie in a chunk: chunk-local positions
/// [begin, end), which are the segment's elements from `source` on.
struct SegmentRun {
  int64_t segment, begin, end, source;
};

/// Which segment each element of a chunk belongs to; the rest is padding.
struct UnitChunk {
  int64_t size = 0, numSegments = 0;
  llvm::SmallVector<SegmentRun> runs;

  /// Each element gets its segment's entry of `table`, padding gets 0.
  Tensor expand(const Tensor &table, DType type) const;
};

/// Row-major position of a rank on some axes of a mesh; an error at `op` if the
/// mesh or an axis does not exist.
mlir::FailureOr<int64_t> positionOnAxes(mlir::Operation *op, mlir::FlatSymbolRefAttr mesh, mlir::ArrayAttr axes,
                                        llvm::ArrayRef<int64_t> coordinates);

/// The unit that `op` names, or an error at `op`.
mlir::FailureOr<ShardUnitOp> lookupUnit(mlir::Operation *op, mlir::FlatSymbolRefAttr unit);

/// The part of `unit` that the rank at `coordinates` keeps.
mlir::FailureOr<UnitChunk> getUnitChunk(ShardUnitOp unit, llvm::ArrayRef<int64_t> coordinates, bool isWhole = false);

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_UNITCHUNK_H
