//===- MpiConformance.cpp - Ranks in processes of several hosts -----------===//
//
// mpirun starts this program again, once for each time that a test wants
// processes; those run the same test, and of it only what they are wanted for.
// The hosts are one: SPMD_HOST says that they are not.
//
//===----------------------------------------------------------------------===//

#include "Conformance.h"
#include "test/unit/Sanitized.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Process/Join.h"

#include <cstdlib>
#include <filesystem>

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

namespace {
constexpr char kCall[] = "SPMD_CONFORMANCE_CALL"; ///< set in a process that mpirun started: which one it is for

std::string getTestName() {
  const ::testing::TestInfo *test = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(test->test_suite_name()) + "." + test->name();
}

/// How often the test that runs has wanted processes.
int64_t countCalls() {
  static std::string test;
  static int64_t calls = 0;
  if (test != getTestName()) {
    test = getTestName();
    calls = 0;
  }
  return calls++;
}

/// This process as one of the job's, on the host that the setup has it on.
void runHere(int64_t processesOfHost, const std::function<void()> &body) {
  Expected<Launch> launch = readLaunch();
  ASSERT_TRUE(launch) << launch.error().message;
  ::setenv("SPMD_HOST", std::to_string(launch->rank / processesOfHost).c_str(), 1);
  registerHost();
  registerProcesses(*launch);
  body();
}

bool runMpi(const std::string &mpirun, int64_t world, int64_t processesOfHost, const std::function<void()> &body) {
  int64_t call = countCalls();
  if (const char *wanted = std::getenv(kCall)) {
    if (std::atoll(wanted) == call)
      runHere(processesOfHost, body);
    return true;
  }
  if (world == 1) // which is alone
    return true;
  (void)fileTag();
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " + std::string(kCall) + "=" +
                        std::to_string(call) + " env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT " + mpirun + " -n " + std::to_string(world) + " " + self +
                        " --gtest_brief=1 --gtest_filter='" + getTestName() + "' 2>&1";
  return std::system(command.c_str()) == 0;
}
} // namespace

std::vector<Setup> conformance::getSetups() {
  std::vector<Setup> setups;
  auto add = [&](const std::string &name, const std::string &mpirun, int64_t processesOfHost) {
    setups.push_back({"host_" + name, "host", "process", [=](int64_t ranks, const std::function<void()> &body) {
                        return runMpi(mpirun, ranks, processesOfHost, body);
                      },
                      /*endsAll=*/true});
  };
  struct Library {
    std::string name, mpirun;
  };
  for (const Library &library : {Library{"openmpi", SPMD_OPENMPI_RUN}, Library{"mpich", SPMD_MPICH_RUN}}) {
    if (library.mpirun.empty() || (isSanitized && library.name == "mpich")) // which has an allocator of its own
      continue;
    std::string mpirun = "SPMD_MPI=" SPMD_LIB_DIR "/spmd_mpi_" + library.name + ".so " + library.mpirun;
    add(library.name + "OneEach", mpirun, 1); // no two share memory
    if (library.name == "mpich")
      add(library.name + "TwoEach", mpirun, 2);
  }
  return setups;
}
