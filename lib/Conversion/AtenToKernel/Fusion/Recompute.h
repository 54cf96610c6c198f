//===- Recompute.h - computing light values where they are used -*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_RECOMPUTE_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_RECOMPUTE_H

#include "../Graph/Graph.h"

namespace spmd::fusion {

/// Gives later readers of a light value their own copy of the scalar functions that make it, when reading what those
/// read costs no more bytes than reading the value: the log-probabilities of a cross-entropy come from the logits and
/// two numbers per row, the input of a gelu from the GEMM before its bias. What heavy ops read later exists anyway
/// and is not computed again. The arithmetic is the same, so no bit changes; values are only not kept.
void recomputeLightValues(Graph &graph);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_RECOMPUTE_H
