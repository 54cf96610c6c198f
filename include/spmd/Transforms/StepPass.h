//===- StepPass.h - A pass over the step of a module ------------*- C++ -*-===//
#ifndef SPMD_TRANSFORMS_STEPPASS_H
#define SPMD_TRANSFORMS_STEPPASS_H

#include "dialects/Spmd/Roles.h"

namespace spmd {

/// A pass over modules that is about their function @step; a module without one is an error. `Base` is what TableGen
/// makes of the pass: struct DedupCollectivesPass : StepPass<impl::DedupCollectivesBase<DedupCollectivesPass>>.
template <typename Base>
class StepPass : public Base {
public:
  using Base::Base;

  void runOnOperation() final {
    mlir::func::FuncOp step = getStep(this->getOperation());
    if (!step || failed(runOnStep(step)))
      this->signalPassFailure();
  }

protected:
  /// Fails after an error has been emitted.
  virtual llvm::LogicalResult runOnStep(mlir::func::FuncOp step) = 0;
};

} // namespace spmd

#endif // SPMD_TRANSFORMS_STEPPASS_H
