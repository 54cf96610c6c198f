//===- ReshardOpen.h - units that may keep what is gathered -----*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_RESHARDOPEN_H
#define SPMD_DIALECTS_SPMD_RESHARDOPEN_H

#include "llvm/ADT/StringRef.h"

namespace spmd {

/// On a shard unit of mode `default`: whether it reshards after forward is for the compiler to choose, within the
/// memory budget. Until then it does.
constexpr llvm::StringLiteral kReshardOpenAttr = "spmd.reshard_open";

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_RESHARDOPEN_H
