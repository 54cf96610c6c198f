//===- PlanKinds.h - Kinds of the other dialects in plans -------*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANKINDS_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANKINDS_H

#include "dialects/Kernel/Kernel.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Spmd/Spmd.h"

namespace spmd {

inline plan::ReductionKind translateKind(ReduceKind kind) {
  switch (kind) {
#define SPMD_REDUCTION_KIND(NAME, TEXT)                                                                                \
  case ReduceKind::TEXT:                                                                                               \
    return plan::ReductionKind::TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown reduction");
}

inline plan::Activation translateActivation(kernel::Activation activation) {
  switch (activation) {
#define SPMD_ACTIVATION(NAME, TEXT)                                                                                    \
  case kernel::Activation::NAME:                                                                                       \
    return plan::Activation::TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown activation");
}

inline plan::GemmOperand translateOperand(kernel::GemmOperand operand) {
  switch (operand) {
#define SPMD_GEMM_OPERAND(NAME, TEXT)                                                                                  \
  case kernel::GemmOperand::NAME:                                                                                      \
    return plan::GemmOperand::TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown operand");
}

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANKINDS_H
