//===- PlanPass.h - A pass over the plan of a module ------------*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANPASS_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANPASS_H

#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"

namespace spmd {

/// A pass over modules with one plan.program, which it sees as the runtime does, too, without kernels; what the runtime
/// has no word for is an error. `Base` is what TableGen makes of the pass.
template <typename Base>
class PlanPass : public Base {
public:
  using Base::Base;

  void runOnOperation() final {
    plan::ProgramOp program = getProgram(this->getOperation());
    if (!program)
      return this->signalPassFailure();
    if (!isNeeded(program))
      return;
    mlir::FailureOr<runtime::Plan> plan = translatePlan(program);
    if (failed(plan))
      return this->signalPassFailure();
    mlir::FailureOr<runtime::Manifest> manifest = translateManifest(this->getOperation(), program, *plan, {});
    if (failed(manifest) || failed(runOnPlan(program, *plan, *manifest)))
      this->signalPassFailure();
  }

protected:
  /// Whether the program has what the pass is about.
  virtual bool isNeeded(plan::ProgramOp program) { return true; }

  /// Fails after an error has been emitted.
  virtual llvm::LogicalResult runOnPlan(plan::ProgramOp program, const runtime::Plan &plan,
                                        const runtime::Manifest &manifest) = 0;
};

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_PLANPASS_H
