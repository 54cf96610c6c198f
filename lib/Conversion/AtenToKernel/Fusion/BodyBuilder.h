//===- BodyBuilder.h - the scalar code of a cluster -------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_BODYBUILDER_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_BODYBUILDER_H

#include "Clusters.h"

namespace spmd::fusion {

/// Builds the body of one kernel: scalars of members from scalars of what they read.
class BodyBuilder {
public:
  /// `dims`: the kernel's iteration space.
  BodyBuilder(mlir::ImplicitLocOpBuilder builder, const Cluster &cluster, llvm::ArrayRef<int64_t> dims)
      : b(std::move(builder)), cluster(cluster), dims(dims) {}

  /// Says that `read` is the body argument `argument`.
  void bind(const Read &read, mlir::Value argument);
  /// Computes all members, in order.
  void computeMembers();
  /// The value of a member, as its tensor holds it.
  mlir::Value get(Node *member);

private:
  mlir::Value read(const Ref &ref, const Layout &position);
  mlir::Value makeConstant(mlir::Attribute value, mlir::Type type);
  mlir::Value makeTable(mlir::DenseElementsAttr table, const Layout &layout, mlir::Type type);
  mlir::Value makeIota(Node *iota, const Layout &layout);
  mlir::Value makeIndex(const Layout &layout);
  mlir::Value reduce(Node *node);

  mlir::ImplicitLocOpBuilder b;
  const Cluster &cluster;
  llvm::SmallVector<int64_t> dims;
  llvm::SmallVector<std::pair<Read, mlir::Value>> arguments;
  /// Constants and positions already computed.
  llvm::SmallVector<std::pair<Read, mlir::Value>> computed;
  llvm::DenseMap<Node *, mlir::Value> scalars;
};

/// Element index of `layout` as a map from `dims`, with a symbol per mesh coordinate when it depends on one.
mlir::AffineMap getAccessMap(mlir::MLIRContext *context, const Layout &layout, llvm::ArrayRef<int64_t> dims);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_BODYBUILDER_H
