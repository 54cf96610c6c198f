//===- HostBackend.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Runtime/Host/HostExecutor.h"
#include "spmd/Runtime/Host/HostMemory.h"
#include "spmd/Runtime/Host/ThreadsCommunicator.h"
#include "spmd/Runtime/Train/Registry.h"

using namespace spmd::runtime;

namespace {

class HostDevice final : public Device {
public:
  HostDevice(const Artifact &artifact, KernelLibrary library) : artifact(artifact), library(std::move(library)) {}

  const std::string &kernels() const override { return library.cpu(); }
  std::string communicators() const override { return "threads"; }

  Expected<std::shared_ptr<CommunicatorFactory>> connect(std::shared_ptr<CommunicatorFactory> processes) override {
    Status status = processes->checkHostCollectives();
    return status.ok() ? Expected<std::shared_ptr<CommunicatorFactory>>(std::move(processes)) : status;
  }

  Expected<std::unique_ptr<RankMemory>> allocate(const RanksHere &ranks, int64_t bytes,
                                                 CommunicatorFactory &communicators) override {
    return HostMemory::allocate(ranks, bytes, communicators);
  }

  Expected<std::unique_ptr<Stream>> makeStream(int64_t) override { return std::unique_ptr<Stream>(); }

  Expected<std::unique_ptr<Executor>> makeExecutor(RankMemory &memory, CommunicatorFactory &communicators,
                                                   AbortState &abort, const ExecutorOptions &options) override {
    return makeHostExecutor(artifact, library, memory, communicators, abort, options);
  }

  std::string formatRun() const override {
    const Emulation *emulation = library.emulation();
    if (!emulation)
      return "";
    SpmdEmulationCounts counts = emulation->counts();
    return std::string("emulated, ") + (emulation->isChecked() ? "every access checked" : "accesses unchecked") + ": " +
           formatCount(counts.kernels) + " kernels, " + formatCount(counts.launches) + " launches, " +
           formatCount(counts.blocks) + " blocks, " + formatCount(counts.threads) + " threads\n";
  }

private:
  const Artifact &artifact;
  KernelLibrary library;
};

/// CPUs, and GPUs emulated on them.
class HostBackend final : public Backend {
public:
  std::vector<std::string> targets() const override { return {"host", "emulate"}; }
  Status checkPlan(const Artifact &artifact) const override;
  Expected<std::unique_ptr<Device>> open(const Artifact &artifact, const DeviceOptions &options) const override;
};

} // namespace

/// GEMMs here add, in f32, and take the gradient of gelu_tanh, but not of f64; whatever else a plan asks of them is
/// another target's.
Status HostBackend::checkPlan(const Artifact &artifact) const {
  const Plan &plan = artifact.plan;
  for (const Command &command : plan.commands) {
    const auto *gemm = command.as<GemmCommand>();
    if (!gemm)
      continue;
    const GemmShape &shape = gemm->shape;
    bool adds = shape.bias >= 0 || shape.residual >= 0;
    if (shape.activation == Activation::None && (!adds || gemm->dtype == DType::F32))
      continue;
    if (shape.readsPreActivation() && gemm->dtype != DType::F64)
      continue;
    Status status =
        Status::badInput("command " + std::to_string(&command - plan.commands.data()) + " (" + command.describe() +
                         "): on CPUs GEMMs of " + nameOf(gemm->dtype) +
                         (shape.activation == Activation::None ? " add no bias or residual" : " apply no activation") +
                         "\n  hint: compile without --epilogues, which then are those of the target");
    status.command = static_cast<int32_t>(&command - plan.commands.data());
    status.location = command.location;
    return status;
  }
  return Status::success();
}

Expected<std::unique_ptr<Device>> HostBackend::open(const Artifact &artifact, const DeviceOptions &options) const {
  Expected<KernelLibrary> kernels = KernelLibrary::open(artifact, options.cpu);
  if (!kernels)
    return kernels.error();
  if (Emulation *emulation = kernels->emulation()) {
    if (Status status = emulation->configure(options.emulation); !status.ok())
      return status;
  } else if (!options.emulation.empty()) {
    return Status::badInput("'" + artifact.folder + "' was compiled for target '" + artifact.manifest.target +
                            "': emulation '" + options.emulation + "' is for target 'emulate'");
  }
  return std::unique_ptr<Device>(std::make_unique<HostDevice>(artifact, std::move(*kernels)));
}

void spmd::runtime::registerHost() {
  registerBackend(std::make_shared<HostBackend>());
  registerCommunicators("threads", [](Clock::duration) -> Expected<std::shared_ptr<CommunicatorFactory>> {
    return std::shared_ptr<CommunicatorFactory>(std::make_shared<ThreadsFactory>());
  });
}
