//===- CudaConformance.cpp - GPUs and NCCL, on the stand-ins --------------===//
//
// Each process of a job is a child with devices of its own, also where it has all
// ranks: a stand-in says at the end of its process what it has found. Settings in
// STANDIN (scripts/with-standins) are those of all.
//
//===----------------------------------------------------------------------===//

#include "Conformance.h"
#include "ForkedJob.h"
#include "lib/Runtime/Cuda/Nccl.h"
#include "spmd/Runtime/Cuda/CudaBackend.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "test/unit/Sanitized.h"

#include <cstdlib>

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

static std::string getSettings() {
  const char *given = std::getenv("STANDIN");
  return std::string("devices=8 leaks=1 ") + (given ? given : "");
}

/// Runs `body` in `world` children of this process.
static bool runProcesses(int64_t world, const std::function<void()> &body) {
  return runForked(world, [&](const Launch &launch) {
    ::setenv("SPMD_CUDA_LIBRARIES", SPMD_STANDIN_DIR, 1);
    ::setenv("SPMD_CUBLASLT_CACHE", "none", 1);
    ::setenv("STANDIN", getSettings().c_str(), 1);
    registerHost();
    registerCuda();
    registerProcesses(launch);
    body();
    if (!isSanitized)                                   // to which the libraries, which stay, are leaks
      std::exit(::testing::Test::HasFailure() ? 1 : 0); // the stand-in has something to say
  });
}

/// As the executor's watchdog does.
static void watch(CommunicatorFactory &processes, CommunicatorGroup &group, const RanksHere &here, AbortState &abort) {
  auto &nccl = static_cast<cuda::NcclGroup &>(group);
  auto raise = [&](const Status &status) {
    if (!status.ok() && !abort.isRaised() && !group.failEverywhere(status))
      abort.fail(status);
  };
  if (!abort.isRaised())
    raise(nccl.poll());
  if (!abort.isRaised())
    raise(processes.findEnded(here));
  if (abort.isRaised())
    nccl.abortAll();
}

std::vector<Setup> conformance::getSetups() {
  auto oneEach = [](int64_t ranks, const std::function<void()> &body) { return runProcesses(ranks, body); };
  auto twoEach = [](int64_t ranks, const std::function<void()> &body) {
    return runProcesses(ranks % 2 == 0 ? ranks / 2 : ranks, body);
  };
  auto allInOne = [](int64_t, const std::function<void()> &body) { return runProcesses(1, body); };
  std::string comparesNothing = "NCCL compares no calls; ranks compare their programs when they load "
                                "(Training.RefusesAProgramThatIsNotRank0s)";
  std::map<std::string, std::string> leavesOut = {
      {"MismatchInOneGroupEndsAll", comparesNothing},
      {"MismatchNamesBothCalls", comparesNothing},
      {"MismatchOfProgramsIsFound", comparesNothing},
      {"TimeOutNamesTheMissingRank", "NCCL does not know who is missing; the executor says who waits, and for what "
                                     "(Training.FaultsAreErrorsOnAllRanks)"}};
  std::vector<Setup> setups = {{"cuda_threads", "cuda", "threads", allInOne},
                               {"cuda_process", "cuda", "process", oneEach},
                               {"cuda_processOfTwo", "cuda", "process", twoEach}};
  for (Setup &setup : setups) {
    setup.leavesOut = leavesOut;
    setup.meetsAlone = setup.addsNorms = false;
    setup.watch = watch;
  }
  return setups;
}
