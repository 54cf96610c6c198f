//===- BiasGradient.h - sums of columns that a GEMM can give ----*- C++ -*-===//
//
// [Note: bias gradients]
// The gradient of a linear layer's weight is a GEMM over the rows of dY, the gradient of its result, and the bias's
// gradient is the sum of these rows. Clusters compute it in one step or in several: the first sums blocks of rows and
// gives a smaller matrix, the *partial* sums, whose rows the next one sums. Every matrix of such a *chain* has the same
// sums of columns; its last one has one row. A GEMM that reads dY as the operand that is k x columns can give the last
// one in place of the chain, so that nobody else reads dY for it. So can the GEMM that gives dY itself, where it takes
// the gradient of gelu on the way ([Note: gradients of gelu]). Sums are in f32; where the GEMM is of a narrower
// type, its sums are rounded once, so whoever reads the chain's must round them to that type first.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_BIASGRADIENT_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_BIASGRADIENT_H

#include "dialects/Kernel/Kernel.h"

namespace spmd::epilogue {

/// Sums of a matrix of a GEMM that clusters compute and it could give.
struct BiasGradient {
  kernel::GemmOperand of;
  /// The results of the chain, the sums last.
  llvm::SmallVector<mlir::OpResult> chain;
  /// Clusters that only round the sums.
  llvm::SmallVector<kernel::ClusterOp> roundings;
  /// Clusters that read the sums before the GEMM gives them, and can wait for that.
  llvm::SmallVector<kernel::ClusterOp> waiting;
};

/// What `gemm` can give; nothing when it can give nothing, or when a reader of it comes before and cannot come later.
std::optional<BiasGradient> findBiasGradient(kernel::GemmOp gemm);

/// Lets the GEMM give it. Returns the GEMM in place of `gemm`, and in `saved` the bytes that clusters need not move any
/// more.
kernel::GemmOp giveBiasGradient(kernel::GemmOp gemm, const BiasGradient &gradient, int64_t &saved);

} // namespace spmd::epilogue

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_BIASGRADIENT_H
