//===- PackGradients.h - gradients of packed projections --------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_PACKGRADIENTS_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_PACKGRADIENTS_H

#include "../Graph/Graph.h"

namespace spmd::fusion {

/// Lets an attention's backward write its three gradients where a concatenation would put them (the gradient of a
/// packed qkv projection), when nobody else reads them. Then nothing is concatenated.
void packAttentionGradients(Graph &graph);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_PACKGRADIENTS_H
