//===- RankGroup.h - a rank's position among others -------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_RANKGROUP_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_RANKGROUP_H

#include "dialects/Spmd/Spmd.h"
#include "llvm/ADT/STLExtras.h"

namespace spmd::fusion {

/// The ranks along `axes` of a mesh: a rank's position among them is Σ weights[i] * coordinate i.
struct RankGroup {
  llvm::SmallVector<int64_t> weights;
  int64_t size = 1;

  RankGroup(mlir::Operation *op, mlir::FlatSymbolRefAttr meshName, mlir::ArrayAttr axes) {
    auto mesh = mlir::SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, meshName);
    weights.assign(mesh.getAxisSizes().size(), 0);
    for (mlir::Attribute axis : llvm::reverse(axes)) {
      int64_t index = mesh.getAxisIndex(mlir::cast<mlir::StringAttr>(axis).getValue());
      weights[index] = size;
      size *= mesh.getAxisSizes()[index];
    }
  }
};

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_GRAPH_RANKGROUP_H
