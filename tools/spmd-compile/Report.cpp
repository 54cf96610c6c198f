//===- Report.cpp - What was compiled, in tables --------------------------===//

#include "Report.h"
#include "spmd/Conversion/PlanToJson/PlanToJson.h"
#include "spmd/Runtime/Core/Text.h"

using namespace mlir;
using namespace spmd;
using runtime::formatCount;

/// Through the files that the runtime reads: what is reported is what a run finds.
FailureOr<runtime::PlanReport> makeReport(ModuleOp module) {
  plan::ProgramOp program = getProgram(module);
  if (!program)
    return failure();
  std::string planText, manifestText;
  llvm::raw_string_ostream planStream(planText), manifestStream(manifestText);
  writePlanJson(program, planStream);
  if (failed(writeManifestJson(module, program, {}, manifestStream)))
    return failure();
  auto plan = runtime::parsePlan("plan", planText);
  auto manifest = runtime::parseManifest("manifest", manifestText);
  if (!plan || !manifest)
    return module.emitError(plan ? manifest.error().message : plan.error().message);
  return runtime::makePlanReport(*manifest, *plan);
}

void printReport(const runtime::PlanReport &report, bool isPlanned, raw_ostream &os) {
  os << (report.step.empty() ? "step" : report.step) << ": " << formatCount(report.ranks) << " ranks\n"
     << formatUnits(report) << formatCollectives(report) << formatArena(report);
  if (isPlanned)
    os << formatPeak(report) << formatReplicated(report);
}

std::string formatExcess(const runtime::PlanReport &report, int64_t budget) {
  return "the arena of a rank takes " + formatCount(report.arenaBytes) + " bytes, " +
         formatCount(report.arenaBytes - budget) + " more than the budget of " + formatCount(budget) + "\n" +
         formatArena(report) + formatPeak(report);
}
