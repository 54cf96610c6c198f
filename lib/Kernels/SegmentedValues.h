//===- SegmentedValues.h - values of a kernel.segmented ----------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_SEGMENTEDVALUES_H
#define SPMD_LIB_KERNELS_SEGMENTEDVALUES_H

#include "CodeBuilder.h"

namespace spmd::kernel {

/// Emits the values of the body of a kernel.segmented, the same for all targets: what a segment fixes (tables, scalars,
/// constants and what follows from them), and elements. The loops are the skeleton's.
class SegmentedValues {
protected:
  using Scope = llvm::DenseMap<mlir::Value, mlir::Value>;

  /// `table` places a constant array where the kernel finds it.
  SegmentedValues(CodeBuilder &b, SegmentedOp op, llvm::function_ref<mlir::Value(mlir::DenseElementsAttr)> table);

  /// Makes `segment` the current one: emits what it fixes, in program order.
  void emitSegmentValues(mlir::Value segment);
  /// For a body that reduces, in program order: `reduce` gives the result of each reduction, which later values use.
  void emitReductions(llvm::function_ref<mlir::Value(ReduceOp)> reduce);
  /// Bytes of elements that reductions read again after one before them.
  int64_t countBytesReadAgain() const;
  /// `value` of the `width` elements from element `i` of the chunk on; what the segment fixes is a scalar. `scope`
  /// holds the values of these elements that are known.
  mlir::Value getValue(mlir::Value value, mlir::Value i, int64_t width, Scope &scope);
  mlir::ValueRange getYielded() { return mlir::cast<YieldOp>(body.getTerminator()).getValues(); }

  // Bounds of a segment in the flat buffer.
  mlir::Value getStart(mlir::Value segment) { return b.load(starts, b.getI64Type(), segment); }
  mlir::Value getEnd(mlir::Value segment) { return b.load(ends, b.getI64Type(), segment); }
  /// The part of piece number `iteration` of a reduction that this rank has, as elements of the chunk.
  struct Range {
    mlir::Value segment, low, high;
  };
  Range getPiece(mlir::Value iteration);

  CodeBuilder &b;
  mutable SegmentedOp op; // accessors of ops are not const
  mlir::Block &body;
  /// Position of the chunk in the flat buffer.
  mlir::Value position;
  /// What the current segment fixes, reductions that have ended included.
  Scope fixed;

private:
  bool isElement(mlir::Value value) const { return perElement.contains(value); }

  /// Values that differ between elements of a segment.
  llvm::DenseSet<mlir::Value> perElement;
  mlir::Value starts, ends;
  llvm::DenseMap<mlir::Operation *, mlir::Value> constants;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_SEGMENTEDVALUES_H
