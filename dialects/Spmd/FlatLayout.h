//===- FlatLayout.h - arithmetic of a unit's flat buffer --------*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_FLATLAYOUT_H
#define SPMD_DIALECTS_SPMD_FLATLAYOUT_H

#include "dialects/Spmd/Spmd.h"
#include "spmd/ShardUnits/FlatLayout.h"

namespace spmd {

using units::kSegmentAlignment;

/// What a layout needs to know of one parameter.
struct FlatParameter {
  llvm::StringRef name;
  llvm::ArrayRef<int64_t> shape;
  /// Optimizer param group, -1 for none.
  int64_t group;
  bool trainable;
  /// How the parameter is cut over the tensor axis, if it is.
  ShardingAttr tensor = {};
};

/// Lays out `parameters` (registration order) for `ranks` ranks: sorted by
/// group, registration order within, aligned, padded to ranks × 128.
FlatAttr buildFlatLayout(mlir::Type dtype, llvm::ArrayRef<FlatParameter> parameters, int64_t ranks);

/// The segment of a parameter, null when the layout has none of this name.
SegmentAttr findSegment(FlatAttr layout, llvm::StringRef name);

/// Position of the parameter among the segments, -1 for none.
int64_t getSegmentIndex(FlatAttr layout, llvm::StringRef name);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_FLATLAYOUT_H
