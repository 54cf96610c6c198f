//===- MaskEmitter.h - the mask of an attention, a row at a time -*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_MASKEMITTER_H
#define SPMD_LIB_KERNELS_MASKEMITTER_H

#include "CodeBuilder.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/AttentionMask.h"
#include "llvm/ADT/SmallBitVector.h"

namespace spmd::kernel {

/// Emits the body of a mask for rows of scores, `width` keys at a time.
class MaskEmitter {
public:
  /// Operands of the mask are those of the kernel from number `firstOperand`.
  template <typename OpT>
  MaskEmitter(CodeBuilder &b, OpT op, unsigned firstOperand, int64_t width)
      : b(b), width(width), mask(op.getMask()), sizes(op.getSizes()), window(getKeyWindow(mask, sizes)),
        firstOperand(firstOperand) {
    for (mlir::Attribute map : op.getMaskMaps())
      maps.push_back(mlir::cast<mlir::AffineMapAttr>(map).getValue());
    if (!window.isExact)
      findVaryingDims();
  }

  /// The keys that matter.
  const KeyWindow &getWindow() const { return window; }
  /// Whether a mask is left that `apply` has to compute.
  bool isComputed() const { return !window.isExact; }

  /// Emits what is the same for all keys of a query, where the row begins.
  void beginRow(mlir::Value batch, mlir::Value head, mlir::Value query);
  /// `score`, `width` of them from `key`, masked. Keys outside of the tensor count as the last.
  mlir::Value apply(mlir::Value score, mlir::Value key);

private:
  void findVaryingDims();
  mlir::Value emit(mlir::Value value, mlir::Value key);
  mlir::Value loadOperand(unsigned i, mlir::Value key);

  CodeBuilder &b;
  int64_t width;
  mlir::Region &mask;
  AttentionSizesAttr sizes;
  KeyWindow window;
  unsigned firstOperand;
  mlir::SmallVector<mlir::AffineMap> maps;
  /// Looked up only.
  llvm::DenseMap<mlir::Value, llvm::SmallBitVector> varying;
  mlir::SmallVector<mlir::Value, 3> row;
  /// Values of the row and, during `apply`, of its keys.
  llvm::DenseMap<mlir::Value, mlir::Value> known;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_MASKEMITTER_H
