//===- ReadThroughViews.h - views of light values ---------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_READTHROUGHVIEWS_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_READTHROUGHVIEWS_H

#include "../Graph/Graph.h"

namespace spmd::fusion {

/// Gives readers of a turned or flipped light value their own copy of the scalar functions that make it, computed where
/// they read it, when what those functions read has fewer bytes than writing the value and reading it again. A cluster
/// computes each of its values in one place, so the value would be a tensor otherwise: the half of a rotary embedding
/// that is multiplied by sines, or a sum of gradients by head that the next GEMM wants by token. The arithmetic is
/// the same, so no bit changes.
void readThroughViews(Graph &graph);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_READTHROUGHVIEWS_H
