#include "spmd/Runtime/Process/Join.h"
#include "lib/Runtime/Process/Job.h"
#include "lib/Runtime/Process/Rendezvous.h"
#include "spmd/Runtime/Train/Registry.h"
#include "spmd/Version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;
using std::chrono::seconds;

/// What joining says to rank 0, a process of its own as a process joins once, when rank 1 says `line` of itself.
static std::string joinBeside(const std::string &line, Launcher launcher) {
  static int count = 0;
  Launch launch;
  launch.launcher = launcher;
  launch.world = 2;
  launch.job = "join-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  int said[2];
  EXPECT_EQ(::pipe(said), 0);
  pid_t child = ::fork();
  if (child == 0) {
    registerProcesses(launch);
    Expected<std::shared_ptr<CommunicatorFactory>> made = makeCommunicators("process", seconds(20));
    std::string text = made ? "joined" : made.error().message;
    ::_exit(::write(said[1], text.data(), text.size()) < 0);
  }
  ::close(said[1]);
  launch.rank = 1;
  Expected<std::unique_ptr<Rendezvous>> met = Rendezvous::meet(launch, seconds(20));
  EXPECT_TRUE(met) << met.error().message;
  if (met)
    EXPECT_TRUE((*met)->exchange("host", line));
  char text[1024];
  ssize_t length = ::read(said[0], text, sizeof text);
  ::close(said[0]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return std::string(text, static_cast<size_t>(std::max<ssize_t>(length, 0)));
}

TEST(Join, AnotherVersionIsRefused) {
  EXPECT_EQ(joinBeside("0.0.9\nhost", Launcher::OpenMpi),
            "rank 1 runs version 0.0.9 of the runtime, rank 0 version " SPMD_VERSION);
}

TEST(Join, HostsNeedAnAddress) {
  EXPECT_EQ(
      joinBeside(SPMD_VERSION "\nelsewhere", Launcher::Environment),
      "the processes are on several hosts (or in several containers), and met without an address; set MASTER_ADDR and "
      "MASTER_PORT, or --address=HOST:PORT");
}

/// Of what processes have alike one is the first to say that something is wrong.
TEST(Join, OneIsFirst) {
  Launch launch;
  launch.launcher = Launcher::Environment;
  launch.world = 2;
  launch.job = "first-" + std::to_string(::getpid());
  std::shared_ptr<Job> jobs[2];
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&jobs, rank, launch]() mutable {
      launch.rank = rank;
      Expected<std::shared_ptr<Job>> job = Job::meet(launch, seconds(20));
      ASSERT_TRUE(job) << job.error().message;
      jobs[rank] = std::move(*job);
    });
  for (std::thread &thread : threads)
    thread.join();
  ASSERT_TRUE(jobs[0] && jobs[1]);
  EXPECT_TRUE(jobs[1]->claimFirst(3));
  EXPECT_FALSE(jobs[0]->claimFirst(3));
  EXPECT_FALSE(jobs[1]->claimFirst(3));
  EXPECT_TRUE(jobs[0]->claimFirst(4));
  jobs[1].reset(); // the first serves the store
  jobs[0].reset();
}
