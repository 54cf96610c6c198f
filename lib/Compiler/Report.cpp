//===- Report.cpp - What was compiled, in tables --------------------------===//

#include "Report.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Runtime/Core/Text.h"

using namespace mlir;
using namespace spmd;
using runtime::formatCount;

FailureOr<runtime::PlanReport> spmd::makeReport(ModuleOp module, const Target &target) {
  plan::ProgramOp program = getProgram(module);
  if (!program)
    return failure();
  FailureOr<runtime::Plan> plan = translatePlan(program);
  if (failed(plan))
    return failure();
  FailureOr<runtime::Manifest> manifest = translateManifest(module, program, *plan, {});
  if (failed(manifest))
    return failure();
  manifest->outsideArena = target.findOutsideArena(*plan);
  return runtime::makePlanReport(*manifest, *plan);
}

void spmd::printReport(const runtime::PlanReport &report, bool isPlanned, raw_ostream &os) {
  os << (report.step.empty() ? "step" : report.step) << ": " << formatCount(report.ranks) << " ranks\n"
     << formatUnits(report) << formatCollectives(report) << formatArena(report);
  if (isPlanned)
    os << formatPeak(report) << formatReplicated(report);
}

std::string spmd::formatExcess(const runtime::PlanReport &report, int64_t budget) {
  return "the arena of a rank takes " + formatCount(report.arenaBytes) + " bytes, " +
         formatCount(report.arenaBytes - budget) + " more than the budget of " + formatCount(budget) + "\n" +
         formatArena(report) + formatPeak(report);
}
