//===- ToyBackend.cpp -----------------------------------------------------===//

#include "ToyBackend.h"
#include "ToyCommunicator.h"
#include "ToyMemory.h"
#include "ToyStream.h"
#include "spmd/Runtime/Train/Registry.h"

using namespace toy;
using namespace spmd::runtime;

namespace {

class ToyDevice final : public Device {
public:
  ToyDevice(const Artifact &artifact, KernelLibrary library) : artifact(artifact), library(std::move(library)) {}

  const std::string &kernels() const override { return library.cpu(); }
  std::string communicators() const override { return "sockets"; }
  Expected<std::unique_ptr<RankMemory>> allocate(const RanksHere &ranks, int64_t bytes,
                                                 CommunicatorFactory &) override {
    return ToyMemory::allocate(ranks, bytes);
  }
  Expected<std::unique_ptr<Stream>> makeStream(int64_t) override {
    return std::unique_ptr<Stream>(std::make_unique<ToyStream>());
  }
  Expected<std::unique_ptr<Executor>> makeExecutor(RankMemory &memory, CommunicatorFactory &communicators,
                                                   AbortState &abort, const ExecutorOptions &options) override {
    return makeToyExecutor(artifact, library, static_cast<ToyMemory &>(memory), communicators, abort, options);
  }

private:
  const Artifact &artifact;
  KernelLibrary library;
};

class ToyBackend final : public Backend {
public:
  std::vector<std::string> targets() const override { return {"toy"}; }
  /// Its kernels and products are the host's.
  Status checkPlan(const Artifact &artifact) const override { return findBackend("host")->checkPlan(artifact); }
  Expected<std::unique_ptr<Device>> open(const Artifact &artifact, const DeviceOptions &options) const override {
    Expected<KernelLibrary> library = KernelLibrary::open(artifact, options.cpu);
    if (!library)
      return library.error();
    return std::unique_ptr<Device>(std::make_unique<ToyDevice>(artifact, std::move(*library)));
  }
};

} // namespace

void toy::registerToy(std::shared_ptr<Mail> mail) {
  registerBackend(std::make_shared<ToyBackend>());
  registerCommunicators("sockets", [mail](Clock::duration timeout) -> Expected<std::shared_ptr<CommunicatorFactory>> {
    return std::shared_ptr<CommunicatorFactory>(std::make_shared<ToyFactory>(mail, timeout));
  });
}
