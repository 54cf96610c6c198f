//===- ScalarFunction.h - light values inside a heavy op --------*- C++ -*-===//
//
// [Note: scalar functions]
// A heavy op may read a light value as a function instead of a tensor: the mask of an attention, computed where scores
// are. The scalar functions that make the value are copied out of the graph, as deep as each is read at positions that
// layouts over the heavy op's space can say; what is left are tensors, and each has one stride per dim of the space.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_SCALARFUNCTION_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_SCALARFUNCTION_H

#include "Clusters.h"
#include "mlir/IR/AffineMap.h"
#include <memory>

namespace spmd::fusion {

/// One light value as a scalar function over the space `dims`.
class ScalarFunction {
public:
  /// The function that gives `value`, whose shape is `dims`, or nothing when a layout on the way has no strides.
  static std::shared_ptr<const ScalarFunction> get(const Ref &value, llvm::ArrayRef<int64_t> dims);

  /// The tensors it reads: inputs for the heavy op.
  llvm::SmallVector<Ref> getInputs() const;
  /// The map from the space to the elements of each input.
  llvm::SmallVector<mlir::AffineMap> getMaps(mlir::MLIRContext *context) const;
  /// Adds a block to `region`, with an argument per input, that yields the value.
  void emit(mlir::Region &region, mlir::Location loc) const;

private:
  ScalarFunction(llvm::ArrayRef<int64_t> dims) : dims(dims) {}
  Node *copy(Node *node, const Layout &position);
  Node *copyVirtual(Node *node);
  bool canRead(const Ref &ref, const Layout &position) const;

  llvm::SmallVector<int64_t> dims;
  /// The copies are its members, in order; what it reads are the inputs and values that take no memory.
  Cluster cluster;
  std::vector<std::unique_ptr<Node>> copies;
  Node *result = nullptr;
  /// Copies by what they are of and where they lie.
  llvm::DenseMap<Node *, llvm::SmallVector<Node *, 1>> copiesOf;
};

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_SCALARFUNCTION_H
