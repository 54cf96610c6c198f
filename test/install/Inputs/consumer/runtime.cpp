// A program over the installed runtime that brings a backend of its own.
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Train/Registry.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <cstdio>

using namespace spmd::runtime;

namespace {
class Abacus final : public Backend {
public:
  std::vector<std::string> targets() const override { return {"abacus"}; }
  Status checkPlan(const Artifact &artifact) const override { return Status::badInput("too many beads"); }
  Expected<std::unique_ptr<Device>> open(const Artifact &artifact, const DeviceOptions &options) const override {
    return checkPlan(artifact);
  }
};
} // namespace

int main(int argc, char **argv) {
  registerHost();
  registerBackend(std::make_shared<Abacus>());
  for (const std::string &target : registeredTargets())
    std::printf("%s\n", target.c_str());
  for (int i = 1; i < argc; ++i)
    if (Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(argv[i], {}))
      std::printf("%s: %d ranks\n", (*trainer)->manifest().step.c_str(), static_cast<int>((*trainer)->ranks().total));
    else
      std::printf("%s\n", trainer.error().message.c_str());
}
