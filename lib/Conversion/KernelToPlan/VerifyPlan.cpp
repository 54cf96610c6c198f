//===- VerifyPlan.cpp - The runtime's certificate, at compile time --------===//

#include "PlanPass.h"
#include "dialects/Spmd/Iterations.h"
#include "dialects/Spmd/Spmd.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
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
struct VerifyPlanPass : PlanPass<spmd::impl::VerifyPlanPassBase<VerifyPlanPass>> {
  using PlanPass::PlanPass;

  LogicalResult runOnPlan(plan::ProgramOp program, const runtime::Plan &translated,
                          const runtime::Manifest &described) override;
};
} // namespace

/// Reports `status` at the command that it names, else at the program.
static void report(plan::ProgramOp program, const runtime::Status &status) {
  Operation *op = program;
  int64_t number = status.command;
  if (DenseI64ArrayAttr iteration = program.getIterationAttr(); iteration && number >= 0)
    if (std::optional<FewIterations> iterations = FewIterations::of(program->getParentOfType<ModuleOp>()))
      number = runtime::Repeats{iteration[0], iteration[1], iterations->missing(), {}}.originOf(number);
  for (auto [id, command] : llvm::enumerate(program.getOps<plan::CommandOpInterface>()))
    if (static_cast<int64_t>(id) == number)
      op = command;
  op->emitError() << status.message;
}

LogicalResult VerifyPlanPass::runOnPlan(plan::ProgramOp program, const runtime::Plan &translated,
                                        const runtime::Manifest &described) {
  if (failed(checkIterations(program)))
    return failure();
  FailureOr<std::string> kernels = kernel::getKernelTable(getOperation());
  if (failed(kernels))
    return failure();
  auto check = [&](const runtime::Manifest &manifest, const runtime::Plan &plan) -> runtime::Status {
    if (runtime::Status status = runtime::checkCertificate(manifest, plan); !status.ok())
      return status;
    // A plan that was written by hand comes without kernels.
    return kernels->empty() ? runtime::Status::success() : runtime::checkKernelTable(plan, *kernels);
  };
  // As a run will read them, so that what the reader refuses is refused here.
  auto checkReadBack = [&]() -> runtime::Status {
    auto plan = runtime::parsePlan("plan", runtime::writePlan(translated));
    if (!plan)
      return plan.error();
    auto manifest = runtime::parseManifest("manifest", runtime::writeManifest(described));
    return manifest ? check(*manifest, *plan) : manifest.error();
  };
  runtime::Status status = readBack ? checkReadBack() : check(described, translated);
  if (!status.ok())
    report(program, status);
  return success(status.ok());
}
