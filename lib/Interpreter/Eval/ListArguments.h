//===- ListArguments.h - list ops in list form and chunk form ---*- C++ -*-===//
//
// A list op is elementwise per list position. In chunk form the only position is
// a rank's chunk of a unit's flat buffer, or a table with one entry per segment;
// entries of tables and attribute lists apply to the elements of their segment.
//===----------------------------------------------------------------------===//
#ifndef SPMD_LIB_INTERPRETER_EVAL_LISTARGUMENTS_H
#define SPMD_LIB_INTERPRETER_EVAL_LISTARGUMENTS_H

#include "../UnitChunk.h"

namespace spmd::interp {

/// The form of one list op on one rank.
struct ListForm {
  /// Present in chunk form.
  std::optional<UnitChunk> chunk;

  static mlir::FailureOr<ListForm> of(OpCall &call);

  bool isChunk(const Tensor &tensor) const { return chunk && tensor.rank() == 1 && tensor.dim(0) == chunk->size; }
  bool isTable(const Tensor &tensor) const {
    return chunk && !isChunk(tensor) && tensor.rank() == 1 && tensor.dim(0) == chunk->numSegments;
  }

  /// The entry of `list` for a position: `list` has one entry, or one per
  /// position.
  static const Tensor &entry(llvm::ArrayRef<Tensor> list, int64_t position) {
    return list.size() == 1 ? list[0] : list[position];
  }
  /// Values with one entry per list position (list form: the position's as a
  /// scalar) or per segment (chunk form: all as a table).
  Tensor perPosition(llvm::ArrayRef<double> values, int64_t position) const;
  /// `tensor` for use with chunks: a table becomes a chunk.
  Tensor spread(const Tensor &tensor) const { return isTable(tensor) ? chunk->expand(tensor, DType::f64) : tensor; }
  /// `result` with `otherwise` (or zero) in the padding, if it is a chunk.
  Tensor keepPadding(Tensor result, const Tensor &otherwise) const;
};

} // namespace spmd::interp

#endif // SPMD_LIB_INTERPRETER_EVAL_LISTARGUMENTS_H
