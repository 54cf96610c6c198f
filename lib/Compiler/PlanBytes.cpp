//===- PlanBytes.cpp - Planning again, to compare -------------------------===//

#include "PlanBytes.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace spmd;

LogicalResult spmd::runSilently(ModuleOp module, const PipelineOptions &options, Phase from, Phase to) {
  ScopedDiagnosticHandler silence(module->getContext(), [](Diagnostic &) { return success(); });
  PassManager pm(module->getContext());
  return failure(failed(buildPipeline(pm, options, from, to, llvm::nulls())) || failed(pm.run(module)));
}

std::optional<int64_t> spmd::planBytes(ModuleOp module, const PipelineOptions &options, Phase from) {
  OwningOpRef<ModuleOp> planned = module.clone();
  if (failed(runSilently(*planned, options, from, Phase::plan)))
    return std::nullopt;
  plan::ProgramOp program = getProgram(*planned);
  if (!program)
    return std::nullopt;
  return program.getStateBytes() + program.getTransientBytes();
}
