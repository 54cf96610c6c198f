//===- HostTarget.cpp - kernels for CPUs ----------------------------------===//

#include "Targets.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/Pipelines/Pipeline.h"
#include "spmd/Runtime/Core/Externals.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace spmd;

namespace {
class HostTarget : public Target {
public:
  StringRef getName() const override { return "host"; }

  void configure(PipelineOptions &options) const override {
    // Our own GEMMs of f32 add biases and sums.
    options.targetEpilogues = "bias,residual";
    options.epilogueDtypes = "f32";
    options.reductionBlocks = 64;
    options.fewerLaunches = options.sumNorms = options.clampIndices = false;
    options.gemmWorkspace = 0;
    options.collectiveBlocks = 0;
  }

  LogicalResult checkUserKernel(kernel::CustomCallOp op, const CodeOptions &options) const override {
    if (!op.getFunction())
      return emitUserKernelError(op)
             << "is for GPUs; for CPUs, declare a function by spmd.register_kernel(library=…, symbol=…)";
    if (failed(checkHasLibraries(op, options)))
      return failure();
    std::string file = ArtifactFolder(options.libraries, op).pathOf(*op.getLibrary());
    auto bytes = runtime::readFile(file);
    runtime::Status status = bytes ? runtime::checkHash(file, *bytes, op.getHash()->str()) : bytes.error();
    if (!status.ok())
      return emitUserKernelError(op) << "is called here: " << status.message;
    return success();
  }

  LogicalResult writeKernels(ModuleOp module, const CodeOptions &options, UserKernelFiles &, ArtifactFolder &folder,
                             ArtifactKernels &kernels) const override {
    if (failed(copyLibraries(module, options, folder)))
      return failure();
    return writeSharedObjects(folder, kernels, options, /*chip=*/"", [&](StringRef cpu, StringRef file) {
      kernels.hostKernels.clear();
      return kernel::emitSharedObject(module, cpu, file, &kernels.hostKernels);
    });
  }

private:
  /// The libraries whose functions kernels call: the very files that the step was captured with.
  static LogicalResult copyLibraries(ModuleOp module, const CodeOptions &options, ArtifactFolder &folder) {
    llvm::StringSet<> copied;
    WalkResult walk = module.walk([&](kernel::CustomCallOp op) -> WalkResult {
      if (!copied.insert(*op.getLibrary()).second)
        return WalkResult::advance();
      std::string from = ArtifactFolder(options.libraries, op).pathOf(*op.getLibrary());
      if (std::error_code error = folder.copyInto(runtime::kLibraryFolder, from, *op.getLibrary()))
        return op.emitOpError("cannot copy '") << from << "': " << error.message();
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }
};
} // namespace

std::shared_ptr<const Target> spmd::makeHostTarget() { return std::make_shared<HostTarget>(); }
