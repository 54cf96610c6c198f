//===- Join.cpp - This process as a part of a job -------------------------===//

#include "spmd/Runtime/Process/ProcessCommunicator.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace spmd::runtime {

static std::string describe(const Launch &launch) {
  return "process " + std::to_string(launch.rank) + " of " + std::to_string(launch.world);
}

Expected<Launch> joinJob(const LaunchOptions &options, TrainerOptions &trainer) {
  static std::mutex mutex;
  static std::optional<Launch> joined;
  Expected<Launch> launch = readLaunch(options);
  if (!launch || launch->isAlone())
    return launch;
  std::lock_guard<std::mutex> lock(mutex);
  if (joined && (joined->rank != launch->rank || joined->world != launch->world))
    return Status::badInput("this is " + describe(*joined) + " already, and cannot become " + describe(*launch));
  if (!joined) {
    registerProcesses(*launch);
    joined = *launch;
  }
  trainer.communicators = "process";
  int64_t threads = trainer.threads ? trainer.threads : std::max(1u, std::thread::hardware_concurrency());
  trainer.threads = std::max<int64_t>(1, threads / launch->world);
  return launch;
}

} // namespace spmd::runtime
