//===- ProcessConformance.cpp - Ranks in several processes of a host ------===//

#include "Conformance.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Process/Join.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

/// Runs `body` in `world` children of this process.
static bool runProcesses(int64_t world, const std::function<void()> &body) {
  static int jobs = 0;
  Launch launch;
  launch.launcher = Launcher::OpenMpi;
  launch.world = world;
  launch.job = "conformance-" + std::to_string(::getpid()) + "-" + std::to_string(jobs++);
  std::vector<pid_t> children;
  for (launch.rank = 0; launch.rank < world; ++launch.rank) {
    pid_t child = ::fork();
    if (child == 0) {
      registerHost();
      registerProcesses(launch);
      body();
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  bool isGood = true;
  for (pid_t child : children) {
    int status = 0;
    isGood &= child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  }
  return isGood;
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
