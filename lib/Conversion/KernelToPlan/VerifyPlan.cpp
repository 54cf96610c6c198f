//===- VerifyPlan.cpp - The runtime's certificate, at compile time --------===//

#include "dialects/Spmd/Spmd.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Conversion/PlanToJson/PlanToJson.h"
#include "spmd/Kernels/KernelTable.h"
#include "spmd/Runtime/Core/Certificate.h"
#include "spmd/Runtime/Core/KernelTable.h"

namespace spmd {
#define GEN_PASS_DEF_VERIFYPLANPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct VerifyPlanPass : spmd::impl::VerifyPlanPassBase<VerifyPlanPass> {
  void runOnOperation() override;
};
} // namespace

/// Reports `status` at the command that it names, else at the program.
static void report(plan::ProgramOp program, const runtime::Status &status) {
  Operation *op = program;
  for (auto [id, command] : llvm::enumerate(program.getOps<plan::CommandOpInterface>()))
    if (static_cast<int64_t>(id) == status.command)
      op = command;
  op->emitError() << status.message;
}

void VerifyPlanPass::runOnOperation() {
  plan::ProgramOp program = getProgram(getOperation());
  if (!program)
    return signalPassFailure();
  std::string planText, manifestText;
  llvm::raw_string_ostream planStream(planText), manifestStream(manifestText);
  writePlanJson(program, planStream);
  if (failed(writeManifestJson(getOperation(), program, {}, manifestStream)))
    return signalPassFailure();
  FailureOr<std::string> kernels = kernel::getKernelTable(getOperation());
  if (failed(kernels))
    return signalPassFailure();
  auto check = [&]() -> runtime::Status {
    auto plan = runtime::parsePlan("plan", planText);
    if (!plan)
      return plan.error();
    auto manifest = runtime::parseManifest("manifest", manifestText);
    if (!manifest)
      return manifest.error();
    if (runtime::Status status = runtime::checkCertificate(*manifest, *plan); !status.ok())
      return status;
    // A plan that was written by hand comes without kernels.
    return kernels->empty() ? runtime::Status::success() : runtime::checkKernelTable(*plan, *kernels);
  };
  if (runtime::Status status = check(); !status.ok()) {
    report(program, status);
    signalPassFailure();
  }
}
