//===- HostConformance.cpp - CPUs, and GPUs emulated on them --------------===//

#include "Conformance.h"
#include "spmd/Runtime/Host/HostBackend.h"

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

std::vector<Setup> conformance::getSetups() {
  auto inThisProcess = [](int64_t, const std::function<void()> &body) {
    registerHost();
    body();
    return !::testing::Test::HasFatalFailure();
  };
  return {{"host_threads", "host", "threads", inThisProcess}, {"emulate_threads", "emulate", "threads", inThisProcess}};
}
