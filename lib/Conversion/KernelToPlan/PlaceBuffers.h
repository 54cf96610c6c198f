//===- PlaceBuffers.h - Arena offsets for the buffers of a program -*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_PLACEBUFFERS_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_PLACEBUFFERS_H

#include "dialects/Plan/Plan.h"

namespace spmd {

/// Sets the offset of every buffer of `program`, and the program's sizes. State comes first, in order; the transient
/// part begins with blocks of inputs and outputs, and the rest is shared by buffers that the commands' order proves
/// never to be alive together. Buffers that nothing uses are removed.
void placeBuffers(plan::ProgramOp program);

/// Sets what the program says of its peak: the largest set of buffers of which no two may share bytes, by its commands'
/// order as it is now.
void setPeak(plan::ProgramOp program);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_PLACEBUFFERS_H
