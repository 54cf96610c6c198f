//===- Epilogue.h - what clusters do with a GEMM ----------------*- C++ -*-===//
//
// [Note: epilogues]
// A GEMM may take over what follows it when every reader is a cluster that does the same with it first: adds a bias,
// then a tensor of its own size, then applies an activation. A *site* is one operand of a cluster that reads the
// GEMM; `values` are the values in its body that are the GEMM after the steps so far, at the point where it is
// read. A step is possible when all of them have it. Then the GEMM is never in memory: sites read the result of the
// epilogue (or, where an activation's gradient wants it, what the activation is applied to), values that clusters
// yielded become results of the GEMM, and clusters that yield nothing else disappear.
//
// [Note: gradients of gelu]
// Where y = gelu(h), dH = dY gelu'(h). So a GEMM whose readers multiply its result, dY, by gelu'(h) can give dH instead
// and read h, which lies as dY would. Libraries have gelu by tanh only.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_EPILOGUE_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_EPILOGUE_H

#include "dialects/Kernel/Kernel.h"
#include "llvm/ADT/SmallBitVector.h"
#include <optional>

namespace spmd::epilogue {

/// One operand of a cluster that reads a GEMM.
struct Site {
  kernel::ClusterOp cluster;
  unsigned operand;
  llvm::SmallVector<mlir::Value> values;
  /// `values` before the activation; empty without one.
  llvm::SmallVector<mlir::Value> preActivation;
};

/// Whether the cluster reads the operand only where that has an element.
inline bool isGuarded(kernel::ClusterOp cluster, unsigned operand) {
  return llvm::is_contained(cluster.getGuarded(), static_cast<int64_t>(operand));
}

/// The sites of a GEMM; nothing when something else reads it.
std::optional<llvm::SmallVector<Site>> findSites(mlir::Value gemm);

/// What all sites add to the GEMM next, one element per column or one per element; null when they do not. A parameter
/// that was gathered once more for some of them is the same if it is `acrossGathers`.
mlir::Value addBias(llvm::SmallVector<Site> &sites, int64_t columns, bool acrossGathers = false);
mlir::Value addMatrix(llvm::SmallVector<Site> &sites);

/// True when some site applies the activation; others may read what it is applied to.
bool applyActivation(llvm::SmallVector<Site> &sites, kernel::Activation activation);

/// What all sites multiply the GEMM by the derivative of gelu_tanh at: `matrix`, which lies as the GEMM, or that and a
/// bias, of which the sum is in no memory.
struct DerivativeAt {
  mlir::Value matrix;
  bool addsBias = false;
};
std::optional<DerivativeAt> multiplyByGeluDerivative(llvm::SmallVector<Site> &sites);

/// What is left of a cluster when its GEMMs have been through their epilogue.
struct Remains {
  kernel::ClusterOp cluster;
  /// Of its operands and results, those it keeps.
  llvm::SmallBitVector operands, results;
  /// Results that are a GEMM's result, or what its activation is applied to.
  llvm::SmallBitVector activated, preActivated;
  /// The operands at sites that read what the activation is applied to.
  llvm::SmallBitVector readsPreActivation;
  /// The operations of the body that it keeps, and what of them is a site's operand now.
  llvm::DenseSet<mlir::Operation *> operations;
  llvm::DenseMap<mlir::Value, unsigned> replaced;

  bool isErased() const { return results.none(); }
  bool usesPreActivation() const { return readsPreActivation.any() || preActivated.any(); }
  /// Bytes that the cluster need not read and write any more.
  int64_t getSavedBytes();
};

/// The remains of `cluster` with these sites, which are all of it.
Remains findRemains(kernel::ClusterOp cluster, llvm::ArrayRef<Site> sites);
/// The remains of a cluster one of whose results nobody reads.
Remains findRemains(kernel::ClusterOp cluster, unsigned unread);

/// Replaces the cluster by what is left of it. Sites read `result` and `preActivation`, and so do the users of results
/// that are gone.
void replaceCluster(const Remains &remains, mlir::Value gemm, mlir::Value result, mlir::Value preActivation);

/// Gives an op its number in the order of its block. Where neighbours have none, asking for the order numbers the whole
/// block anew, which for every GEMM of a long step takes a time that grows with the square of its length.
inline void numberInBlock(mlir::Operation *added) {
  if (mlir::Operation *next = added->getNextNode())
    (void)added->isBeforeInBlock(next);
}

} // namespace spmd::epilogue

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_EPILOGUE_H
