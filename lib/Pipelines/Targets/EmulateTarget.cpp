//===- EmulateTarget.cpp - GPU kernels that run on CPUs -------------------===//

#include "Targets.h"
#include "spmd/Kernels/EmulatedObject.h"
#include "spmd/Kernels/KernelTable.h"
#include "spmd/Pipelines/Pipeline.h"

using namespace mlir;
using namespace spmd;

namespace {
class EmulateTarget : public Target {
public:
  explicit EmulateTarget(std::string chip) : chip(std::move(chip)) {}

  StringRef getName() const override { return "emulate"; }

  void configure(PipelineOptions &options) const override {
    // GEMMs are those of CPUs, kernels and collectives those of the GPU, which has no kernels for what its GEMMs give.
    options.targetEpilogues = "bias,residual";
    options.epilogueDtypes = "f32";
    options.reductionBlocks = getReductionBlocks(chip);
    options.fewerLaunches = options.sumNorms = options.clampIndices = true;
    options.gemmWorkspace = getGemmWorkspace(chip);
    options.collectiveBlocks = getCollectiveBlocks(chip);
  }

  LogicalResult checkUserKernel(kernel::CustomCallOp op, const CodeOptions &) const override {
    return emitUserKernelError(op) << "cannot be emulated, as the compiler's own kernels can; declare what the "
                                      "operator computes by spmd.register_decomposition";
  }

  LogicalResult writeKernels(ModuleOp module, const CodeOptions &options, UserKernelFiles &, ArtifactFolder &folder,
                             ArtifactKernels &kernels) const override {
    FailureOr<OwningOpRef<ModuleOp>> lowered = kernel::lowerGpuKernels(module, chip);
    if (failed(lowered))
      return failure();
    for (kernel::GpuKernel &kernel : kernel::describeGpuKernels(**lowered))
      kernels.launches.push_back({chip, std::move(kernel)});
    FailureOr<std::string> table = kernel::getKernelTable(module, getBlocks(kernels));
    if (failed(table))
      return failure();
    return writeSharedObjects(folder, kernels, options, chip, [&](StringRef cpu, StringRef file) {
      return kernel::emitEmulatedObject(**lowered, cpu, file, /*checkedOnly=*/false, *table);
    });
  }

  /// The iterations of an emulated kernel are the blocks of its grid.
  void adjustPlan(runtime::Plan &plan, const ArtifactKernels &kernels) const override {
    llvm::StringMap<int64_t> blocks = getBlocks(kernels);
    for (runtime::Command &command : plan.commands)
      if (auto *kernel = command.as<runtime::KernelCommand>()) {
        kernel->parallel = blocks.lookup(kernel->symbol);
        kernel->grain = 1;
      }
  }

private:
  std::string chip;
};
} // namespace

std::shared_ptr<const Target> spmd::makeEmulateTarget(std::string chip) {
  return std::make_shared<EmulateTarget>(std::move(chip));
}
