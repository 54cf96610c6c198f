//===- ToyConformance.cpp - The project's suite on the toy ----------------===//

#include "Conformance.h"
#include "ToyBackend.h"
#include "spmd/Runtime/Host/HostBackend.h"

using namespace spmd::runtime::conformance;

std::vector<Setup> spmd::runtime::conformance::getSetups() {
  auto inProcesses = [](int64_t ranks, const std::function<void()> &body) {
    return toy::runProcesses(ranks, [&](std::shared_ptr<toy::Mail> mail) {
      spmd::runtime::registerHost();
      toy::registerToy(mail);
      body();
      return ::testing::Test::HasFailure() ? 1 : 0;
    });
  };
  return {{"toy_sockets", "toy", "sockets", inProcesses}};
}
