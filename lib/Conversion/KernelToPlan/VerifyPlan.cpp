//===- VerifyPlan.cpp - The runtime's certificate, at compile time --------===//

#include "dialects/Spmd/Spmd.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
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
  FailureOr<runtime::Plan> translated = translatePlan(program);
  if (failed(translated))
    return signalPassFailure();
  FailureOr<runtime::Manifest> described = translateManifest(getOperation(), program, *translated, {});
  if (failed(described))
    return signalPassFailure();
  FailureOr<std::string> kernels = kernel::getKernelTable(getOperation());
  if (failed(kernels))
    return signalPassFailure();
  // As a run will read them, so that what the reader refuses is refused here.
  auto check = [&]() -> runtime::Status {
    auto plan = runtime::parsePlan("plan", runtime::writePlan(*translated));
    if (!plan)
      return plan.error();
    auto manifest = runtime::parseManifest("manifest", runtime::writeManifest(*described));
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
