//===- PackGradients.h - gradients of packed projections --------*- C++ -*-===//

#ifndef SPMD_CONVERSION_ATENTOKERNEL_PACKGRADIENTS_H
#define SPMD_CONVERSION_ATENTOKERNEL_PACKGRADIENTS_H

#include "spmd/Conversion/AtenToKernel/Graph.h"

namespace spmd::fusion {

/// Lets an attention's backward write its three gradients where a concatenation would put them (the gradient of a
/// packed qkv projection), when nobody else reads them. Then nothing is concatenated.
void packAttentionGradients(Graph &graph);

} // namespace spmd::fusion

#endif // SPMD_CONVERSION_ATENTOKERNEL_PACKGRADIENTS_H
