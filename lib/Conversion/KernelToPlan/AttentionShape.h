//===- AttentionShape.h - What a plan says of an attention ------*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_ATTENTIONSHAPE_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_ATTENTIONSHAPE_H

#include "dialects/Kernel/Kernel.h"
#include "dialects/Plan/Plan.h"

namespace spmd {

plan::AttentionShapeAttr getAttentionShape(kernel::AttentionOp attention);
plan::AttentionShapeAttr getAttentionShape(kernel::AttentionBackwardOp attention);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_ATTENTIONSHAPE_H
