#include "TestSupport.h"
#include "spmd/Runtime/Host/ThreadsCommunicator.h"

#include <atomic>
#include <deque>
#include <functional>
#include <random>
#include <thread>

using namespace spmd::runtime;

namespace {

constexpr int64_t kRanks[] = {1, 2, 3, 4, 8};

Command makeCommand(CommandKind kind, std::vector<int64_t> counts, std::vector<ReductionKind> kinds = {}) {
  Command command;
  command.kind = kind;
  command.dtype = DType::F32;
  command.counts = std::move(counts);
  command.kinds = std::move(kinds);
  command.unit = "unit0";
  command.location = "train.py:7";
  return command;
}

/// The description of a call, which outlives all communicators.
const Collective *callOf(const Command &command, int32_t id, uint64_t traceHash) {
  static std::mutex mutex;
  static std::deque<Collective> calls;
  std::lock_guard<std::mutex> lock(mutex);
  return &calls.emplace_back(command, id, traceHash);
}

/// N ranks with one communicator; statuses by rank.
struct Group {
  explicit Group(int64_t ranks, Clock::duration timeout = std::chrono::seconds(20))
      : ranks(ranks), group("gather", ranks, abort, timeout, 50), statuses(static_cast<size_t>(ranks)) {}

  void run(const std::function<Status(Communicator &, int64_t)> &body) {
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] { statuses[static_cast<size_t>(rank)] = body(group.endpoint(rank), rank); });
    for (std::thread &thread : threads)
      thread.join();
  }

  void expectSuccess() const {
    for (const Status &status : statuses)
      EXPECT_TRUE(status.ok()) << status.message;
  }

  int64_t ranks;
  AbortState abort;
  ThreadsGroup group;
  std::vector<Status> statuses;
};

/// Sums of these depend on the order of the ranks.
float contribution(int64_t rank, int64_t i) {
  auto bits = static_cast<uint32_t>(rank * 7919 + i) * 2654435761u;
  bits = (bits ^ (bits >> 15)) * 2246822519u;
  return static_cast<float>(bits >> 8) / static_cast<float>(1 << 23) - 1;
}

/// contribution(0, i) ∘ contribution(1, i) ∘ ...
float combined(ReductionKind kind, int64_t ranks, int64_t i) {
  float value = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    float x = contribution(rank, i);
    switch (kind) {
    case ReductionKind::Sum:
      value = rank == 0 ? x : value + x;
      break;
    case ReductionKind::Max:
      value = rank == 0 ? x : std::max(value, x);
      break;
    case ReductionKind::Min:
      value = rank == 0 ? x : std::min(value, x);
      break;
    case ReductionKind::Norm2:
      value += x * x;
      break;
    }
  }
  if (kind == ReductionKind::Norm2)
    return ranks == 1 ? contribution(0, i) : std::sqrt(value);
  return value;
}

void sleepALittle(uint32_t seed) { std::this_thread::sleep_for(std::chrono::microseconds(std::mt19937(seed)() % 300)); }
} // namespace

TEST(Communicator, AllGather) {
  for (int64_t ranks : kRanks)
    for (int64_t count : {1, 5, 1000})
      for (bool inPlace : {false, true}) {
        Command command = makeCommand(CommandKind::AllGather, {count});
        Group group(ranks);
        std::vector<std::vector<float>> results(static_cast<size_t>(ranks));
        group.run([&](Communicator &communicator, int64_t rank) {
          std::vector<float> send(static_cast<size_t>(count));
          std::vector<float> &recv = results[static_cast<size_t>(rank)];
          recv.assign(static_cast<size_t>(count * ranks), -9);
          float *from = inPlace ? recv.data() + rank * count : send.data();
          for (int64_t i = 0; i < count; ++i)
            from[i] = contribution(rank, i);
          Status status = communicator.allGather(*callOf(command, 3, 1), from, recv.data(), nullptr);
          // The call is over, so what was sent may change.
          std::fill(send.begin(), send.end(), -7.0f);
          return status;
        });
        group.expectSuccess();
        for (const std::vector<float> &recv : results)
          for (int64_t i = 0; i < count * ranks; ++i)
            ASSERT_EQ(recv[static_cast<size_t>(i)], contribution(i / count, i % count));
      }
}

TEST(Communicator, ReduceScatter) {
  for (int64_t ranks : kRanks)
    for (int64_t count : {1, 5, 3000})
      for (bool inPlace : {false, true}) {
        Command command = makeCommand(CommandKind::ReduceScatter, {count}, {ReductionKind::Sum});
        Group group(ranks);
        group.run([&](Communicator &communicator, int64_t rank) {
          std::vector<float> send(static_cast<size_t>(count * ranks));
          std::vector<float> recv(static_cast<size_t>(count));
          for (size_t i = 0; i < send.size(); ++i)
            send[i] = contribution(rank, static_cast<int64_t>(i));
          float *to = inPlace ? send.data() + rank * count : recv.data();
          Status status = communicator.reduceScatter(*callOf(command, 3, 1), send.data(), to, nullptr);
          for (int64_t i = 0; i < count; ++i)
            EXPECT_EQ(to[i], combined(ReductionKind::Sum, ranks, rank * count + i));
          return status;
        });
        group.expectSuccess();
      }
}

TEST(Communicator, AllReduceOfABucket) {
  const std::vector<ReductionKind> kinds = {ReductionKind::Sum, ReductionKind::Max, ReductionKind::Norm2,
                                            ReductionKind::Min};
  const std::vector<int64_t> counts = {1, 100, 3, 5000};
  for (int64_t ranks : kRanks) {
    Command command = makeCommand(CommandKind::AllReduce, counts, kinds);
    Group group(ranks);
    group.run([&](Communicator &communicator, int64_t rank) {
      std::vector<std::vector<float>> storage;
      std::vector<void *> buffers;
      for (int64_t count : counts) {
        storage.emplace_back(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i)
          storage.back()[static_cast<size_t>(i)] = contribution(rank, i);
      }
      for (std::vector<float> &values : storage)
        buffers.push_back(values.data());
      Status status = communicator.allReduce(*callOf(command, 3, 1), buffers.data(), nullptr);
      for (size_t b = 0; b < counts.size(); ++b)
        for (int64_t i = 0; i < counts[b]; ++i)
          EXPECT_EQ(storage[b][static_cast<size_t>(i)], combined(kinds[b], ranks, i));
      return status;
    });
    group.expectSuccess();
  }
}

TEST(Communicator, BitsDoNotDependOnTiming) {
  constexpr int64_t ranks = 4, count = 500;
  Command scatter = makeCommand(CommandKind::ReduceScatter, {count}, {ReductionKind::Sum});
  Command gather = makeCommand(CommandKind::AllGather, {count});
  std::vector<float> first;
  for (uint32_t run = 0; run < 20; ++run) {
    std::vector<std::vector<float>> results(ranks);
    Group group(ranks);
    group.run([&](Communicator &communicator, int64_t rank) {
      std::vector<float> data(count * ranks), chunk(count);
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = contribution(rank, static_cast<int64_t>(i));
      // Three rounds, so that a fast rank could overtake a slow one.
      for (int32_t round = 0; round < 3; ++round) {
        sleepALittle(run * 100 + static_cast<uint32_t>(rank * 10 + round));
        if (Status status =
                communicator.reduceScatter(*callOf(scatter, 2 * round, 1), data.data(), chunk.data(), nullptr);
            !status.ok())
          return status;
        sleepALittle(run * 100 + static_cast<uint32_t>(rank * 10 + round + 5));
        if (Status status =
                communicator.allGather(*callOf(gather, 2 * round + 1, 1), chunk.data(), data.data(), nullptr);
            !status.ok())
          return status;
      }
      results[static_cast<size_t>(rank)] = data;
      return Status::success();
    });
    group.expectSuccess();
    if (run == 0)
      first = results[0];
    for (const std::vector<float> &result : results)
      ASSERT_EQ(result, first) << "run " << run;
  }
}

TEST(Communicator, MismatchNamesBothCalls) {
  for (int64_t ranks : {2, 4}) {
    Command gather = makeCommand(CommandKind::AllGather, {4});
    Command other = makeCommand(CommandKind::AllGather, {8});
    other.unit = "unit1";
    other.location = "train.py:9";
    Group group(ranks);
    std::vector<float> buffers(1000);
    group.run([&](Communicator &communicator, int64_t rank) {
      bool odd = rank == ranks - 1;
      std::vector<float> send(8), recv(64);
      return communicator.allGather(*callOf(odd ? other : gather, odd ? 5 : 4, 1), send.data(), recv.data(), nullptr);
    });
    std::string last = std::to_string(ranks - 1);
    for (const Status &status : group.statuses) {
      EXPECT_EQ(status.code, StatusCode::Failed);
      EXPECT_EQ(status.message, "collective mismatch on communicator 'gather': rank 0 calls "
                                "all_gather of unit0 (command 4, f32 [4], at train.py:7), "
                                "rank " +
                                    last +
                                    " calls all_gather of unit1 (command 5, f32 [8], at "
                                    "train.py:9)");
      EXPECT_EQ(status.rank, ranks - 1);
      EXPECT_EQ(status.command, 5);
      EXPECT_EQ(status.location, "train.py:9");
    }
  }
}

TEST(Communicator, MismatchOfProgramsIsFound) {
  Command gather = makeCommand(CommandKind::AllGather, {1});
  Group group(2);
  group.run([&](Communicator &communicator, int64_t rank) {
    float send = 1, recv[2];
    return communicator.allGather(*callOf(gather, 0, static_cast<uint64_t>(rank)), &send, recv, nullptr);
  });
  expectContains(group.statuses[0].message, "they run different programs");
}

TEST(Communicator, TimeOutNamesTheMissingRank) {
  Command gather = makeCommand(CommandKind::AllGather, {1});
  Group group(4, std::chrono::seconds(1));
  std::atomic<int> started = 0;
  auto begin = Clock::now();
  group.run([&](Communicator &communicator, int64_t rank) {
    float send = 1, recv[4];
    if (rank == 2)
      return Status::success(); // never comes
    // On a loaded machine a thread may start later than the time-out of another.
    for (++started; started < 3;)
      std::this_thread::yield();
    return communicator.allGather(*callOf(gather, 17, 1), &send, recv, nullptr);
  });
  EXPECT_LT(Clock::now() - begin, std::chrono::minutes(1));
  for (int64_t rank : {0, 1, 3}) {
    const Status &status = group.statuses[static_cast<size_t>(rank)];
    EXPECT_EQ(status.code, StatusCode::Failed);
    EXPECT_EQ(status.message, "time-out after 1 s on communicator 'gather': rank 2 did not "
                              "come to all_gather of unit0 (command 17, f32 [1], at "
                              "train.py:7); a rank that is only slow is given more time by spmd-run "
                              "--timeout=SECONDS, or timeout=SECONDS in Python");
    EXPECT_EQ(status.rank, 2);
    EXPECT_EQ(status.location, "train.py:7");
  }
}

TEST(Communicator, OneFailureEndsAllWaits) {
  Command gather = makeCommand(CommandKind::AllGather, {1});
  Group group(3, std::chrono::minutes(10));
  auto begin = Clock::now();
  group.run([&](Communicator &communicator, int64_t rank) {
    float send = 1, recv[3];
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      Status status = Status::failed("rank 1 is broken", 1);
      group.abort.fail(status);
      return status;
    }
    return communicator.allGather(*callOf(gather, 0, 1), &send, recv, nullptr);
  });
  EXPECT_LT(Clock::now() - begin, std::chrono::minutes(1));
  for (const Status &status : group.statuses)
    EXPECT_EQ(status.message, "rank 1 is broken");
}
