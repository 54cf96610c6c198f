//===- Communicators.h - Which ranks a collective connects ------*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_COMMUNICATORS_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_COMMUNICATORS_H

#include "dialects/Spmd/Spmd.h"

#include <string>
#include <vector>

namespace spmd {

/// The axes along which a collective connects ranks; none where it connects all.
std::vector<std::string> getPartialAxes(CollectiveOpInterface op);

/// How many ranks it connects.
int64_t getGroupSize(CollectiveOpInterface op);

/// What the collective's communicator is called: as its stream, and the axes where these are not all: "gather.shard".
std::string getCommunicatorName(CollectiveOpInterface op);

/// The elements of a rank's part, or of each value that is reduced in place.
llvm::SmallVector<int64_t> getElementCounts(CollectiveOpInterface op);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_COMMUNICATORS_H
