//===- PlanIterations.h - The iterations that a plan has --------*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANITERATIONS_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANITERATIONS_H

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <string>

namespace spmd {

/// Positions [begin, end) of the iteration that may stand for those that are missing (IterationFinder.h).
struct FoundIteration {
  int64_t begin = 0, end = 0;
  /// Of a plan's buffer that iterations have for themselves, that of the next one.
  llvm::MapVector<plan::BufferOp, plan::BufferOp> later;
};

/// Finds it among the commands of `program`, whose module has `spmd.iterations`. Nothing where there is none; `why`
/// says why.
std::optional<FoundIteration> findIteration(plan::ProgramOp program, std::string &why);

/// The same among the ops of `dataflow`.
std::optional<FoundIteration> findIteration(plan::DataflowOp dataflow, std::string &why);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANITERATIONS_H
