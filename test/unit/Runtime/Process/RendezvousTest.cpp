#include "lib/Runtime/Process/Rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <unistd.h>

using namespace spmd::runtime;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// Processes of one job, as threads.
struct Job {
  explicit Job(int64_t world) : world(world) {
    static std::atomic<int> count = 0;
    name = "job-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  }
  Launch launch(int64_t rank) const {
    Launch launch;
    launch.launcher = Launcher::OpenMpi;
    launch.rank = rank;
    launch.world = world;
    launch.job = name;
    launch.secret = "secret";
    return launch;
  }
  void run(const std::vector<Launch> &launches, const std::function<void(size_t, Expected<std::unique_ptr<Rendezvous>>)> &body,
           milliseconds timeout = seconds(20)) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < launches.size(); ++i)
      threads.emplace_back([&, i] { body(i, Rendezvous::meet(launches[i], timeout)); });
    for (std::thread &thread : threads)
      thread.join();
  }
  int64_t world;
  std::string name;
};

TEST(Rendezvous, ExchangesByRank) {
  for (int64_t world : {1, 2, 5, 8}) {
    Job job(world);
    std::vector<Launch> launches;
    for (int64_t rank = world - 1; rank >= 0; --rank)
      launches.push_back(job.launch(rank));
    job.run(launches, [&](size_t, Expected<std::unique_ptr<Rendezvous>> met) {
      ASSERT_TRUE(met) << met.error().message;
      for (const char *name : {"hash", "version"}) {
        auto values = (*met)->exchange(name, name + std::to_string((*met)->rank()));
        ASSERT_TRUE(values) << values.error().message;
        ASSERT_EQ(values->size(), static_cast<size_t>(world));
        for (int64_t rank = 0; rank < world; ++rank)
          EXPECT_EQ((*values)[static_cast<size_t>(rank)], name + std::to_string(rank));
      }
    });
  }
}

TEST(Rendezvous, ARankThatIsStartedTwiceIsAnErrorOnAll) {
  Job job(3);
  std::atomic<int> faults = 0;
  job.run({job.launch(0), job.launch(1), job.launch(1)}, [&](size_t, Expected<std::unique_ptr<Rendezvous>> met) {
    Status status = met ? Status::success() : met.error();
    if (met) {
      auto values = (*met)->exchange("hash", "x");
      ASSERT_FALSE(values);
      status = values.error();
    }
    EXPECT_EQ(status.message, "rank 1 was started twice");
    ++faults;
  });
  EXPECT_EQ(faults, 3);
}

TEST(Rendezvous, AnotherNumberOfRanksIsAnErrorOnAll) {
  Job job(2);
  Launch odd = job.launch(1);
  odd.world = 4;
  job.run({job.launch(0), odd}, [&](size_t, Expected<std::unique_ptr<Rendezvous>> met) {
    Status status = met ? Status::success() : met.error();
    if (met) {
      auto values = (*met)->exchange("hash", "x");
      ASSERT_FALSE(values);
      status = values.error();
    }
    EXPECT_EQ(status.message, "rank 1 was started as one of 4 processes, rank 0 as one of 2");
  });
}

TEST(Rendezvous, NamesWhoIsMissing) {
  Job job(4);
  job.run({job.launch(0), job.launch(2)},
          [&](size_t, Expected<std::unique_ptr<Rendezvous>> met) {
            ASSERT_TRUE(met) << met.error().message;
            auto values = (*met)->exchange("hash", "x");
            ASSERT_FALSE(values);
            EXPECT_EQ(values.error().message, "nothing was heard of rank 1, 3 of 4 within 0.3 s");
          },
          milliseconds(300));
}

TEST(Rendezvous, WithoutRankZeroItEnds) {
  Job job(2);
  auto met = Rendezvous::meet(job.launch(1), milliseconds(200));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().message.rfind("rank 1 did not meet rank 0: nobody could be met at this host, ", 0), 0u)
      << met.error().message;
}

TEST(Rendezvous, ASecondRankZeroIsTold) {
  Job job(2);
  Launch zero = job.launch(0);
  auto first = StoreServer::start({"", 0, "spmd-" + std::to_string(::geteuid()) + "-" + zero.job + "-0"}, "secret");
  ASSERT_TRUE(first);
  auto met = Rendezvous::meet(zero, milliseconds(200));
  ASSERT_FALSE(met);
  EXPECT_NE(met.error().message.find("is another rank 0 of this job running?"), std::string::npos);
}

} // namespace
