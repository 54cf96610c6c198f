//===- ProcessConformance.cpp - Ranks in several processes of a host ------===//

#include "Conformance.h"
#include "ForkedJob.h"
#include "spmd/Runtime/Host/HostBackend.h"

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

/// Runs `body` in `world` children of this process.
static bool runProcesses(int64_t world, const std::function<void()> &body) {
  return runForked(world, [&](const Launch &launch) {
    registerHost();
    registerProcesses(launch);
    body();
  });
}

std::vector<Setup> conformance::getSetups() {
  auto oneEach = [](int64_t ranks, const std::function<void()> &body) { return runProcesses(ranks, body); };
  auto twoEach = [](int64_t ranks, const std::function<void()> &body) {
    return runProcesses(ranks % 2 == 0 ? ranks / 2 : ranks, body);
  };
  // All in one: threads over memory that processes would share.
  auto allInOne = [](int64_t, const std::function<void()> &body) { return runProcesses(1, body); };
  return {{"host_process", "host", "process", oneEach},
          {"host_processOfTwo", "host", "process", twoEach},
          {"host_processOfAll", "host", "process", allInOne}};
}
