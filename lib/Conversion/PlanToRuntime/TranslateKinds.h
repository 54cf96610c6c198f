//===- TranslateKinds.h - Kinds of the plan dialect in the runtime -*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEKINDS_H
#define SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEKINDS_H

#include "dialects/Plan/Plan.h"
#include "spmd/Runtime/Core/Command.h"

namespace spmd {

inline runtime::ReductionKind translateKind(plan::ReductionKind kind) {
  switch (kind) {
#define SPMD_REDUCTION_KIND(NAME, TEXT)                                                                                \
  case plan::ReductionKind::TEXT:                                                                                      \
    return runtime::ReductionKind::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown reduction");
}

inline runtime::Activation translateActivation(std::optional<plan::Activation> activation) {
  if (!activation)
    return runtime::Activation::None;
  switch (*activation) {
#define SPMD_ACTIVATION(NAME, TEXT)                                                                                    \
  case plan::Activation::TEXT:                                                                                         \
    return runtime::Activation::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown activation");
}

inline runtime::GemmOperand translateOperand(std::optional<plan::GemmOperand> operand) {
  if (!operand)
    return runtime::GemmOperand::None;
  switch (*operand) {
#define SPMD_GEMM_OPERAND(NAME, TEXT)                                                                                  \
  case plan::GemmOperand::TEXT:                                                                                        \
    return runtime::GemmOperand::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown operand");
}

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEKINDS_H
