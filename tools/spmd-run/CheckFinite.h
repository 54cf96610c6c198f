//===- CheckFinite.h - The first number that is not finite ------*- C++ -*-===//

#ifndef SPMD_TOOLS_RUN_CHECKFINITE_H
#define SPMD_TOOLS_RUN_CHECKFINITE_H

#include "spmd/Runtime/Train/Trainer.h"

namespace spmd::runtime {

/// An error that names the first output and the first tensor of the state with an infinity or not-a-number; `when` says
/// after which step. `withOutputs`: a step has run.
Status checkFinite(const Trainer &trainer, const std::string &when, bool withOutputs);

} // namespace spmd::runtime

#endif // SPMD_TOOLS_RUN_CHECKFINITE_H
