//===- FittingOptions.h - What brings a plan under its budget ---*- C++ -*-===//
#ifndef SPMD_LIB_COMPILER_FITTINGOPTIONS_H
#define SPMD_LIB_COMPILER_FITTINGOPTIONS_H

#include "spmd/Pipelines/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace spmd {

/// What other options make of the arena. Nothing is claimed that was not planned.
struct FittingOptions {
  /// Each option that was tried, the bytes of its arena, and how many are too many; empty when none was.
  std::vector<std::vector<std::string>> rows;
  /// Those of them that come under the budget: "--ranks=4".
  std::vector<std::string> fitting;

  bool anyFits() const { return !fitting.empty(); }
};

/// Plans `imported`, a module after phase `import`, again with one option changed at a time.
FittingOptions findFittingOptions(mlir::ModuleOp imported, const PipelineOptions &options, int64_t budget);

} // namespace spmd

#endif // SPMD_LIB_COMPILER_FITTINGOPTIONS_H
