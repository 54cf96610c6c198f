//===- PlanBytes.cpp - Planning again, to compare -------------------------===//

#include "PlanBytes.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Cost/MachineFile.h"
#include "spmd/Cost/Simulation.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace spmd;

LogicalResult spmd::runSilently(ModuleOp module, const PipelineOptions &options, Phase from, Phase to, bool verifies) {
  ScopedDiagnosticHandler silence(module->getContext(), [](Diagnostic &) { return success(); });
  PassManager pm(module->getContext());
  pm.enableVerifier(verifies);
  return failure(failed(buildPipeline(pm, options, from, to, llvm::nulls(), verifies)) || failed(pm.run(module)));
}

static int64_t getArenaBytes(plan::ProgramOp program) { return program.getStateBytes() + program.getTransientBytes(); }

/// A copy of `module`, which is after phase `from`, with its plan; null when it cannot be planned.
static OwningOpRef<ModuleOp> planCopy(ModuleOp module, const PipelineOptions &options, Phase from, bool verifies) {
  OwningOpRef<ModuleOp> planned = module.clone();
  if (failed(runSilently(*planned, options, from, Phase::plan, verifies)) || !getProgram(*planned))
    return {};
  return planned;
}

std::optional<int64_t> spmd::planBytes(ModuleOp module, const PipelineOptions &options, Phase from) {
  OwningOpRef<ModuleOp> planned = planCopy(module, options, from, /*verifies=*/true);
  return planned ? std::optional(getArenaBytes(getProgram(*planned))) : std::nullopt;
}

static std::optional<double> modelSeconds(ModuleOp planned, plan::ProgramOp program) {
  ScopedDiagnosticHandler silence(planned->getContext(), [](Diagnostic &) { return success(); });
  FailureOr<runtime::Plan> plan = translatePlan(program);
  if (failed(plan))
    return std::nullopt;
  FailureOr<runtime::Manifest> manifest = translateManifest(planned, program, *plan, {});
  if (failed(manifest))
    return std::nullopt;
  cost::CommandList commands = cost::makeCommandList(*manifest, *plan);
  runtime::Expected<cost::Prices> prices = cost::priceCommands(commands, cost::referenceMachine());
  if (!prices)
    return std::nullopt;
  return cost::simulate(commands, *prices).step;
}

std::optional<ComparedPlan> spmd::comparePlan(ModuleOp module, const PipelineOptions &options, Phase from,
                                              bool withTime) {
  OwningOpRef<ModuleOp> planned = planCopy(module, options, from, /*verifies=*/false);
  if (!planned)
    return std::nullopt;
  plan::ProgramOp program = getProgram(*planned);
  ComparedPlan plan{getArenaBytes(program), 0};
  if (!withTime)
    return plan;
  std::optional<double> seconds = modelSeconds(*planned, program);
  if (!seconds)
    return std::nullopt;
  plan.seconds = *seconds;
  return plan;
}
