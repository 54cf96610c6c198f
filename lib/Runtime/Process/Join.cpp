//===- Join.cpp - This process as a part of a job -------------------------===//

#include "spmd/Runtime/Process/Join.h"

#include "ProcessFactory.h"
#include "spmd/Runtime/Train/Registry.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace spmd::runtime {

static std::string describe(const Launch &launch) {
  return "process " + std::to_string(launch.rank) + " of " + std::to_string(launch.world);
}

void registerProcesses(const Launch &launch) {
  auto kept = std::make_shared<std::shared_ptr<Job>>();
  registerCommunicators("process",
                        [launch, kept](Clock::duration timeout) -> Expected<std::shared_ptr<CommunicatorFactory>> {
                          if (!*kept) {
                            Expected<std::shared_ptr<Job>> job = Job::meet(launch, timeout);
                            if (!job)
                              return job.error();
                            *kept = std::move(*job);
                          }
                          return (*kept)->isOnOneHost() ? makeHostFactory(*kept, timeout)
                                                        : makeHostsFactory(*kept, timeout);
                        });
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
  trainer.threads = std::max<int64_t>(1, threads / launch->onThisHost());
  return launch;
}

} // namespace spmd::runtime
