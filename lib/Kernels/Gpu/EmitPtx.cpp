//===- EmitPtx.cpp - spmd-emit-ptx ----------------------------------------===//

#include "ConvertToNVVM.h"
#include "Ptx.h"
#include "spmd/Kernels/Cubin.h"
#include "spmd/Kernels/Passes.h"
#include "spmd/Kernels/WriteFile.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_EMITPTX
#include "spmd/Kernels/Passes.h.inc"

static LogicalResult emit(ModuleOp module, StringRef chip, StringRef path) {
  const Device *device = findDevice(chip);
  if (!device)
    return module.emitError("unknown chip '") << chip << "'; chips are " << llvm::join(getKernelChips(), ", ");
  OwningOpRef<ModuleOp> copy = module.clone();
  FailureOr<std::vector<KernelPtx>> kernels = emitPtx(*copy, *device);
  if (failed(kernels))
    return failure();
  std::string problem = writeFile(path, joinPtx(*kernels));
  return problem.empty() ? success() : LogicalResult(module.emitError(problem));
}

namespace {
struct EmitPtx : impl::EmitPtxBase<EmitPtx> {
  using EmitPtxBase::EmitPtxBase;
  void getDependentDialects(DialectRegistry &registry) const override { registerNVVMDependencies(registry); }
  void runOnOperation() override {
    if (failed(emit(getOperation(), chip, path)))
      signalPassFailure();
  }
};
} // namespace

} // namespace spmd::kernel
