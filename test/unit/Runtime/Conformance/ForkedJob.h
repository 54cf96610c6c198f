//===- ForkedJob.h - A job whose processes are children ---------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_FORKEDJOB_H
#define SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_FORKEDJOB_H

#include "spmd/Runtime/Process/Join.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace spmd::runtime::conformance {

/// Runs `body` in `world` children of this process, each with its place in the job. True when all of them ended well
/// and without a failed expectation.
inline bool runForked(int64_t world, const std::function<void(const Launch &)> &body) {
  static int jobs = 0;
  Launch launch;
  launch.launcher = Launcher::OpenMpi;
  launch.world = world;
  launch.job = "conformance-" + std::to_string(::getpid()) + "-" + std::to_string(jobs++);
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (launch.rank = 0; launch.rank < world; ++launch.rank) {
    pid_t child = ::fork();
    if (child == 0) {
      body(launch);
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

} // namespace spmd::runtime::conformance

#endif // SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_FORKEDJOB_H
