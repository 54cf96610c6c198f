//===- CudaTarget.cpp - cubins and PTX for GPUs ---------------------------===//

#include "Targets.h"
#include "spmd/Kernels/EmulatedObject.h"
#include "spmd/Kernels/KernelTable.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/Pipelines/Pipeline.h"

using namespace mlir;
using namespace spmd;

namespace {
class CudaTarget : public Target {
public:
  explicit CudaTarget(std::vector<std::string> chips) : chips(std::move(chips)) {}

  StringRef getName() const override { return "cuda"; }

  void configure(PipelineOptions &options) const override {
    // cuBLASLt: BIAS, RELU_BIAS and GELU_AUX_BIAS (by tanh), and C beside D. BGRADA and BGRADB, bias_gradient, make
    // GEMMs slower than what they save (GPT-2 124M in bf16 on an H200: 16.9 for 16.8 ms). DGELU, gelu_tanh_backward,
    // was not measured.
    options.targetEpilogues = "bias,residual,relu,gelu_tanh";
    options.epilogueDtypes = "f32,bf16";
    options.reductionBlocks = getReductionBlocks(chips);
    options.fewerLaunches = options.sumNorms = options.clampIndices = true;
    options.gemmWorkspace = getGemmWorkspace(chips);
    options.collectiveBlocks = getCollectiveBlocks(chips);
  }

  std::string findBadOption(const CodeOptions &options, StringRef text) const override {
    return options.cpus.empty() ? "" : "--cpu chooses code of targets host and emulate, not of --target=" + text.str();
  }

  std::string findMissingTool(const CodeOptions &options) const override {
    return kernel::findCudaProblem(options.cuda);
  }

  LogicalResult checkUserKernel(kernel::CustomCallOp op, const CodeOptions &options) const override {
    if (!op.getLaunch())
      return emitUserKernelError(op) << "runs on CPUs; for GPUs, declare a kernel by spmd.register_kernel(cubins=…, "
                                        "launch=…), or what the operator computes by spmd.register_decomposition";
    return checkHasLibraries(op, options);
  }

  LogicalResult readUserKernels(ModuleOp module, const CodeOptions &options, UserKernelFiles &files) const override {
    if (failed(Target::readUserKernels(module, options, files)))
      return failure();
    for (const std::string &chip : chips) {
      FailureOr<kernel::UserKernels> read = kernel::readUserKernels(module, chip, options.libraries);
      if (failed(read))
        return failure();
      files[chip] = std::move(*read);
    }
    return success();
  }

  LogicalResult writeKernels(ModuleOp module, const CodeOptions &options, UserKernelFiles &files,
                             ArtifactFolder &folder, ArtifactKernels &kernels) const override {
    for (const std::string &chip : chips)
      if (failed(writeCubins(chip, module, options, std::move(files[chip]), folder, kernels)))
        return failure();
    return success();
  }

  /// Whose functions the runtime calls: cuFuncLoad and priorities in graphs, windows of NCCL's. Drivers before 12.8 do
  /// not know Blackwell.
  std::optional<runtime::NeededLibraries> findNeeds(const runtime::Plan &plan) const override {
    auto isBlackwell = [](StringRef chip) { return kernel::getCapability(chip) >= 100; };
    runtime::NeededLibraries needs;
    needs.driver = llvm::all_of(chips, isBlackwell) ? runtime::LibraryVersion{12, 8} : runtime::LibraryVersion{12, 4};
    if (hasGemms(plan))
      needs.cublasLt = runtime::LibraryVersion{12, 0};
    if (llvm::any_of(plan.commands,
                     [](const runtime::Command &command) { return command.is<runtime::CollectiveCommand>(); }))
      needs.nccl = runtime::LibraryVersion{2, 27};
    return needs;
  }

  std::vector<runtime::OutsideArena> findOutsideArena(const runtime::Plan &) const override {
    return {{"CUDA context and code", std::nullopt}, {"thread stacks", std::nullopt}};
  }

private:
  LogicalResult writeCubins(StringRef chip, ModuleOp module, const CodeOptions &options, kernel::UserKernels user,
                            ArtifactFolder &folder, ArtifactKernels &kernels) const;
  LogicalResult writeEmulation(ModuleOp code, ModuleOp module, StringRef file, const ArtifactKernels &kernels) const;

  std::vector<std::string> chips;
};
} // namespace

/// Cubins for one chip, and the PTX they were made from, which newer chips run.
LogicalResult CudaTarget::writeCubins(StringRef chip, ModuleOp module, const CodeOptions &options,
                                      kernel::UserKernels user, ArtifactFolder &folder,
                                      ArtifactKernels &kernels) const {
  FailureOr<OwningOpRef<ModuleOp>> lowered = kernel::lowerGpuKernels(module, chip);
  if (failed(lowered))
    return failure();
  std::string stem = ("kernels." + chip).str();
  OwningOpRef<ModuleOp> emulated;
  if (options.emulation)
    emulated = (*lowered)->clone();
  FailureOr<kernel::CubinArchive> archive = kernel::compileCubins(**lowered, chip, options.cuda, std::move(user));
  if (failed(archive))
    return failure();
  FailureOr<std::string> table = kernel::getKernelTable(module, {});
  if (failed(table))
    return failure();
  for (const kernel::GpuKernel &kernel : archive->kernels)
    *table += formatLaunch(chip, kernel);
  kernel::addKernelTable(*archive, *table);
  runtime::KernelFile entry{"", chip.str(), stem + ".a", "", stem + ".ptx", ""};
  if (failed(folder.writeCode(entry.file, archive->code, entry.hash)) ||
      failed(folder.writeCode(entry.ptx, archive->ptx, entry.ptxHash)))
    return failure();
  kernels.files.push_back(std::move(entry));
  for (kernel::GpuKernel &kernel : archive->kernels)
    kernels.launches.push_back({chip.str(), std::move(kernel)});
  return emulated ? writeEmulation(*emulated, module, folder.pathOf(stem + ".emulated.so"), kernels) : success();
}

/// What stands in for the cubins on a machine without a GPU (test/StandIn). The manifest does not know of it.
LogicalResult CudaTarget::writeEmulation(ModuleOp code, ModuleOp module, StringRef file,
                                         const ArtifactKernels &kernels) const {
  FailureOr<std::string> table = kernel::getKernelTable(module, getBlocks(kernels));
  if (failed(table))
    return failure();
  return kernel::emitEmulatedObject(code, kernel::getKernelCpus().front(), file, /*checkedOnly=*/false, *table);
}

std::shared_ptr<const Target> spmd::makeCudaTarget(std::vector<std::string> chips) {
  return std::make_shared<CudaTarget>(std::move(chips));
}
