//===- EmitCubin.cpp - spmd-emit-cubin ------------------------------------===//

#include "ConvertToNVVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "spmd/Kernels/Cubin.h"
#include "spmd/Kernels/Passes.h"
#include "spmd/Kernels/WriteFile.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_EMITCUBIN
#include "spmd/Kernels/Passes.h.inc"

static void remark(gpu::GPUFuncOp function, const GpuKernel &kernel) {
  emitRemark(function.getLoc()) << kernel.symbol << ": " << kernel.blocks << " x " << kernel.threads << " threads, "
                                << kernel.registers << " registers, " << kernel.staticSharedBytes << " + "
                                << kernel.dynamicSharedBytes << " bytes shared, " << kernel.barriers << " barriers, "
                                << kernel.localBytes << " bytes local, " << kernel.spillStoreBytes << " + "
                                << kernel.spillLoadBytes << " bytes spilled";
}

namespace {
struct EmitCubin : impl::EmitCubinBase<EmitCubin> {
  using EmitCubinBase::EmitCubinBase;
  void getDependentDialects(DialectRegistry &registry) const override { registerNVVMDependencies(registry); }
  void runOnOperation() override {
    if (path.empty()) {
      getOperation().emitError("spmd-emit-cubin needs the option path");
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    FailureOr<CubinArchive> archive = compileCubins(*copy, chip, {toolkit, cache});
    if (failed(archive))
      return signalPassFailure();
    if (std::string problem = writeFile(path, archive->code); !problem.empty()) {
      getOperation().emitError(problem);
      return signalPassFailure();
    }
    auto kernel = archive->kernels.begin();
    getOperation().walk([&](gpu::GPUFuncOp function) { remark(function, *kernel++); });
  }
};
} // namespace

} // namespace spmd::kernel
