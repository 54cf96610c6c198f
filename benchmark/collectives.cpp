//===- collectives.cpp - Collectives of threads and of processes ----------===//
//
// All-gather and reduce-scatter of the same bytes among ranks that are threads of
// one process, and among ranks in a process each, in one run, in turns; prints the
// medians and the ratio of the speeds.
//
//   spmd-bench-collectives [RANKS] [MEGABYTES of the gathered buffer] [REPEATS]
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Host/HostMemory.h"
#include "spmd/Runtime/Process/Join.h"
#include "spmd/Runtime/Train/Registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace spmd::runtime;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kKinds = 3, kMostRepeats = 1000;
const char *const kNames[kKinds] = {"all_gather", "reduce_scatter f32", "reduce_scatter bf16"};

/// Seconds of each repetition on rank 0; shared with child processes.
struct Times {
  double threads[kKinds][kMostRepeats], processes[kKinds][kMostRepeats];
};

struct Job {
  int64_t ranks, bytes, repeats;
};

template <typename T>
T orExit(Expected<T> value) {
  if (value)
    return std::move(*value);
  std::fprintf(stderr, "%s\n", value.error().message.c_str());
  std::_Exit(1);
}

void orExit(const Status &status) {
  if (!status.ok())
    orExit(Expected<int>(status));
}

/// The ranks of this process, on threads; rank 0 notes its times.
void runRanks(const Job &job, const std::string &communicators, double times[kKinds][kMostRepeats]) {
  auto factory = orExit(makeCommunicators(communicators, std::chrono::seconds(60)));
  RanksHere here = orExit(factory->ranksHere(job.ranks));
  auto memory = orExit(HostMemory::allocate(here, 2 * job.bytes, *factory));
  AbortState abort;
  CommunicatorOptions options;
  options.threads = here.count;
  int64_t chunk = job.bytes / job.ranks;
  auto call = [&](CollectiveKind kind, DType dtype, int32_t id) {
    return Collective({{kind, dtype, {chunk / sizeOf(dtype)}, {ReductionKind::Sum}, "unit"}, {}}, id, 1, "");
  };
  const Collective calls[kKinds] = {call(CollectiveKind::AllGather, DType::F32, 0),
                                    call(CollectiveKind::ReduceScatter, DType::F32, 1),
                                    call(CollectiveKind::ReduceScatter, DType::BF16, 2)};
  auto group = orExit(factory->make("gather", here, RankGroups::all(job.ranks), abort, options));
  std::vector<std::thread> threads;
  for (int64_t rank = here.first; rank < here.end(); ++rank)
    threads.emplace_back([&, rank] {
      auto *all = static_cast<char *>(memory->addressOf(rank, 0)), *own = all + job.bytes;
      std::memset(all, 0, static_cast<size_t>(2 * job.bytes));
      Communicator &communicator = group->endpoint(rank);
      for (int64_t repeat = 0; repeat < job.repeats; ++repeat)
        for (int kind = 0; kind < kKinds; ++kind) {
          auto begin = Clock::now();
          void *buffers[] = {kind == 0 ? own : all, kind == 0 ? all : own};
          orExit(communicator.run(calls[kind], buffers, nullptr));
          if (rank == 0)
            times[kind][repeat] = std::chrono::duration<double>(Clock::now() - begin).count();
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  // A process that is ahead waits for the others, who may still read its memory.
  std::vector<int64_t> all(static_cast<size_t>(factory->numProcesses()));
  orExit(factory->gather(&job.ranks, 8, all.data(), abort, std::chrono::seconds(60)));
}

void runProcesses(const Job &job, Times &times) {
  static int number = 0;
  Launch launch;
  launch.launcher = Launcher::OpenMpi;
  launch.world = job.ranks;
  launch.job = "collectives-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
  for (launch.rank = 0; launch.rank < launch.world; ++launch.rank)
    if (::fork() == 0) {
      registerProcesses(launch);
      runRanks(job, "process", times.processes);
      ::_exit(0);
    }
  while (::wait(nullptr) > 0)
    ;
}

double median(const double *from, int64_t count) {
  std::vector<double> sorted(from, from + count);
  std::nth_element(sorted.begin(), sorted.begin() + count / 2, sorted.end());
  return sorted[static_cast<size_t>(count / 2)];
}

} // namespace

int main(int argc, char **argv) {
  auto numberOf = [&](int position, int64_t missing) { return argc > position ? std::atoll(argv[position]) : missing; };
  Job job{numberOf(1, 2), numberOf(2, 99) << 20, std::min<int64_t>(numberOf(3, 15), kMostRepeats)};
  job.bytes = job.bytes / (job.ranks * 64) * job.ranks * 64;
  void *shared = ::mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return 1;
  auto &times = *static_cast<Times *>(shared);
  constexpr int kTurns = 3; // the median of each turn's median, in turns, as machines drift
  std::vector<double> threads[kKinds], processes[kKinds];
  for (int turn = 0; turn < kTurns; ++turn) {
    if (::fork() == 0) {
      registerHost();
      runRanks(job, "threads", times.threads);
      ::_exit(0);
    }
    ::wait(nullptr);
    runProcesses(job, times);
    for (int kind = 0; kind < kKinds; ++kind) {
      threads[kind].push_back(median(times.threads[kind], job.repeats));
      processes[kind].push_back(median(times.processes[kind], job.repeats));
    }
  }
  std::printf("%lld ranks, %lld bytes in all\n%-22s %10s %10s %8s\n", static_cast<long long>(job.ranks),
              static_cast<long long>(job.bytes), "", "threads", "processes", "speed");
  for (int kind = 0; kind < kKinds; ++kind) {
    double one = median(threads[kind].data(), kTurns), other = median(processes[kind].data(), kTurns);
    std::printf("%-22s %7.1f ms %7.1f ms %7.2fx\n", kNames[kind], one * 1e3, other * 1e3, one / other);
  }
  return 0;
}
