//===- ReadNarrow.h - widened values are read narrow ------------*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_READNARROW_H
#define SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_READNARROW_H

#include "../Graph/Graph.h"

namespace spmd::fusion {

/// Lets scalar functions that read a few widened numbers all over their space (a norm's weight, statistics of rows)
/// read the narrow ones and widen each where they use it: so there is no kernel that does nothing but widen them. The
/// same bits, as widening is exact. It is a conversion per element more, which is nothing beside a launch on a GPU, but
/// time on a CPU.
void readNarrow(Graph &graph);

} // namespace spmd::fusion

#endif // SPMD_LIB_CONVERSION_ATENTOKERNEL_FUSION_READNARROW_H
