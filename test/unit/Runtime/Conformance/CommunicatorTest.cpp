#include "Conformance.h"
#include "spmd/Runtime/Train/Registry.h"

#include <cmath>
#include <mutex>
#include <random>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

namespace {

class Communicators : public Conformance {
protected:
  void onAll(int64_t ranks, const std::function<void(Rank &)> &body) { onRanks(ranks, std::chrono::seconds(20), body); }
};
SPMD_INSTANTIATE_CONFORMANCE(Communicators);

CollectiveKey keyOf(CollectiveKind kind, std::vector<int64_t> counts, std::vector<ReductionKind> kinds = {},
                    const std::string &unit = "unit0") {
  return {{kind, DType::F32, std::move(counts), std::move(kinds), unit}, {}};
}

constexpr int64_t kFloat = sizeof(float);

/// Sums of these depend on the order of the ranks.
float contribution(int64_t rank, int64_t i) {
  auto bits = static_cast<uint32_t>(rank * 7919 + i) * 2654435761u;
  bits = (bits ^ (bits >> 15)) * 2246822519u;
  return static_cast<float>(bits >> 8) / static_cast<float>(1 << 23) - 1;
}

std::vector<float> contributions(int64_t rank, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(contribution(rank, i));
  return values;
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

std::vector<float> combined(ReductionKind kind, int64_t ranks, int64_t begin, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(combined(kind, ranks, begin + i));
  return values;
}

void sleepALittle(uint32_t seed) { std::this_thread::sleep_for(std::chrono::microseconds(std::mt19937(seed)() % 300)); }
} // namespace

TEST_P(Communicators, AllGather) {
  for (int64_t ranks : kRanks)
    onAll(ranks, [](Rank &rank) {
      for (int64_t count : {1, 5, 1000})
        for (bool inPlace : {false, true}) {
          int64_t recv = 1 << 16, send = inPlace ? recv + rank.number * count * kFloat : 0;
          rank.write(send, contributions(rank.number, count));
          Status status = rank.allGather(rank.call(keyOf(CollectiveKind::AllGather, {count})), send, recv);
          ASSERT_TRUE(status.ok()) << status.message;
          // The call is over, so what was sent may change.
          if (!inPlace)
            ASSERT_TRUE(rank.memory.fill(rank.number, send, 0xff, count * kFloat).ok());
          for (int64_t other = 0; other < rank.total; ++other)
            ASSERT_EQ(rank.read(recv + other * count * kFloat, count), contributions(other, count));
        }
    });
}

TEST_P(Communicators, ReduceScatter) {
  for (int64_t ranks : kRanks)
    onAll(ranks, [](Rank &rank) {
      for (int64_t count : {1, 5, 3000})
        for (bool inPlace : {false, true}) {
          int64_t send = 1 << 16, recv = inPlace ? send + rank.number * count * kFloat : 0;
          rank.write(send, contributions(rank.number, count * rank.total));
          Status status = rank.reduceScatter(
              rank.call(keyOf(CollectiveKind::ReduceScatter, {count}, {ReductionKind::Sum})), send, recv);
          ASSERT_TRUE(status.ok()) << status.message;
          ASSERT_EQ(rank.read(recv, count), combined(ReductionKind::Sum, rank.total, rank.number * count, count));
        }
    });
}

TEST_P(Communicators, AllReduceOfABucket) {
  const std::vector<ReductionKind> kinds = {ReductionKind::Sum, ReductionKind::Max,
                                            GetParam().addsNorms ? ReductionKind::Norm2 : ReductionKind::Sum,
                                            ReductionKind::Min};
  const std::vector<int64_t> counts = {1, 100, 3, 5000}, offsets = {0, 1024, 4096, 8192};
  for (int64_t ranks : kRanks)
    onAll(ranks, [&](Rank &rank) {
      for (size_t i = 0; i < counts.size(); ++i)
        rank.write(offsets[i], contributions(rank.number, counts[i]));
      Status status = rank.allReduce(rank.call(keyOf(CollectiveKind::AllReduce, counts, kinds)), offsets);
      ASSERT_TRUE(status.ok()) << status.message;
      for (size_t i = 0; i < counts.size(); ++i)
        EXPECT_EQ(rank.read(offsets[i], counts[i]), combined(kinds[i], rank.total, 0, counts[i]));
    });
}

/// contribution(members[0], i) + contribution(members[1], i) + ...
static std::vector<float> summed(const std::vector<int64_t> &members, int64_t begin, int64_t count) {
  std::vector<float> values;
  for (int64_t i = begin; i < begin + count; ++i) {
    float value = contribution(members[0], i);
    for (size_t other = 1; other < members.size(); ++other)
      value += contribution(members[other], i);
    values.push_back(value);
  }
  return values;
}

TEST_P(Communicators, GroupsAlongAxes) {
  const std::vector<MeshAxis> mesh = {{"replicate", 2}, {"shard", 4}};
  for (const char *axis : {"replicate", "shard"})
    onGroups(mesh, {axis}, std::chrono::seconds(20), [&](Rank &rank, const RankGroups &groups) {
      const std::vector<int64_t> &members = groups.membersOf(groups.groupOf(rank.number));
      int64_t position = groups.positionOf(rank.number), send = 0, recv = 1 << 19;
      ASSERT_EQ(members[static_cast<size_t>(position)], rank.number);
      for (int64_t count : {5, 3000}) {
        rank.write(send, contributions(rank.number, count));
        Status status = rank.allGather(rank.call(keyOf(CollectiveKind::AllGather, {count})), send, recv);
        ASSERT_TRUE(status.ok()) << status.message;
        for (size_t other = 0; other < members.size(); ++other)
          ASSERT_EQ(rank.read(recv + static_cast<int64_t>(other) * count * kFloat, count),
                    contributions(members[other], count));

        rank.write(send, contributions(rank.number, count * groups.size()));
        status = rank.reduceScatter(rank.call(keyOf(CollectiveKind::ReduceScatter, {count}, {ReductionKind::Sum})),
                                    send, recv);
        ASSERT_TRUE(status.ok()) << status.message;
        ASSERT_EQ(rank.read(recv, count), summed(members, position * count, count));

        rank.write(send, contributions(rank.number, count));
        status = rank.allReduce(rank.call(keyOf(CollectiveKind::AllReduce, {count}, {ReductionKind::Sum})), {send});
        ASSERT_TRUE(status.ok()) << status.message;
        ASSERT_EQ(rank.read(send, count), summed(members, 0, count));
      }
    });
}

TEST_P(Communicators, MismatchInOneGroupEndsAll) {
  onGroups({{"replicate", 2}, {"shard", 2}}, {"shard"}, std::chrono::seconds(20), [](Rank &rank, const RankGroups &) {
    int64_t count = rank.number == 3 ? 4 : 8;
    const Collective &call = rank.call(keyOf(CollectiveKind::AllGather, {count}));
    Status status = Status::success();
    // The others go on until they hear of it.
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    while (status.ok() && std::chrono::steady_clock::now() < end)
      status = rank.allGather(call, 0, 1 << 16);
    EXPECT_NE(status.message.find("rank 2 calls"), std::string::npos) << status.message;
    EXPECT_NE(status.message.find("rank 3 calls"), std::string::npos) << status.message;
  });
}

TEST_P(Communicators, BitsDoNotDependOnTiming) {
  constexpr int64_t count = 500, data = 1 << 16, chunk = 0;
  onAll(4, [](Rank &rank) {
    std::vector<float> first;
    for (uint32_t run = 0; run < 20; ++run) {
      rank.write(data, contributions(rank.number, count * rank.total));
      // Three rounds, so that a fast rank could overtake a slow one.
      for (int32_t round = 0; round < 3; ++round) {
        sleepALittle(run * 100 + static_cast<uint32_t>(rank.number * 10 + round));
        ASSERT_TRUE(rank.reduceScatter(
                            rank.call(keyOf(CollectiveKind::ReduceScatter, {count}, {ReductionKind::Sum}), 2 * round),
                            data, chunk)
                        .ok());
        sleepALittle(run * 100 + static_cast<uint32_t>(rank.number * 10 + round + 5));
        ASSERT_TRUE(
            rank.allGather(rank.call(keyOf(CollectiveKind::AllGather, {count}), 2 * round + 1), chunk, data).ok());
      }
      std::vector<float> result = rank.read(data, count * rank.total);
      if (run == 0)
        first = result;
      ASSERT_EQ(result, first) << "run " << run;
    }
  });
}

TEST_P(Communicators, MismatchNamesBothCalls) {
  for (int64_t ranks : {2, 4})
    onAll(ranks, [](Rank &rank) {
      bool odd = rank.number == rank.total - 1;
      const Collective &call = odd ? rank.call(keyOf(CollectiveKind::AllGather, {8}, {}, "unit1"), 5, 1, "train.py:9")
                                   : rank.call(keyOf(CollectiveKind::AllGather, {4}), 4);
      Status status = rank.allGather(call, 0, 1 << 16);
      EXPECT_EQ(status.code, StatusCode::Failed);
      EXPECT_EQ(status.message, "collective mismatch on communicator 'gather': rank 0 calls all_gather of unit0 "
                                "(command 4, f32 [4], at train.py:7), rank " +
                                    std::to_string(rank.total - 1) +
                                    " calls all_gather of unit1 (command 5, f32 [8], at train.py:9)");
      EXPECT_EQ(status.rank, rank.total - 1);
      EXPECT_EQ(status.command, 5);
      EXPECT_EQ(status.location, "train.py:9");
    });
}

TEST_P(Communicators, MismatchOfProgramsIsFound) {
  onAll(2, [](Rank &rank) {
    Status status = rank.allGather(
        rank.call(keyOf(CollectiveKind::AllGather, {1}), 0, static_cast<uint64_t>(rank.number)), 0, 1 << 16);
    EXPECT_NE(status.message.find("they run different programs"), std::string::npos) << status.message;
  });
}

TEST_P(Communicators, TimeOutNamesTheMissingRank) {
  auto begin = std::chrono::steady_clock::now();
  onRanks(4, std::chrono::seconds(2), [](Rank &rank) {
    // On a loaded machine a rank may start later than the time-out of another.
    ASSERT_TRUE(rank.meet().ok());
    Status status;
    if (rank.number == 2) { // never comes, but hears of it
      while (!rank.abort.isRaised())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      status = rank.abort.status();
    } else {
      status = rank.allGather(rank.call(keyOf(CollectiveKind::AllGather, {1}), 17), 0, 1 << 16);
    }
    EXPECT_EQ(status.code, StatusCode::Failed);
    EXPECT_EQ(status.message, "time-out after 2 s on communicator 'gather': rank 2 did not come to all_gather of unit0 "
                              "(command 17, f32 [1], at train.py:7); a rank that is only slow is given more time by "
                              "spmd-run --timeout=SECONDS, or timeout=SECONDS in Python");
    EXPECT_EQ(status.rank, 2);
    EXPECT_EQ(status.location, "train.py:7");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

TEST_P(Communicators, OneFailureEndsAllWaits) {
  auto begin = std::chrono::steady_clock::now();
  onRanks(3, std::chrono::seconds(90), [](Rank &rank) {
    Status status;
    if (rank.number == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      rank.abort.fail(Status::failed("rank 1 is broken", 1, 7, "train.py:3"));
      status = rank.abort.status();
    } else {
      status = rank.allGather(rank.call(keyOf(CollectiveKind::AllGather, {1}), 0), 0, 1 << 16);
    }
    EXPECT_EQ(status.message, "rank 1 is broken");
    EXPECT_EQ(status.rank, 1);
    EXPECT_EQ(status.command, 7);
    EXPECT_EQ(status.location, "train.py:3");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

TEST_P(Communicators, AProcessThatEndsEndsAll) {
  if (GetParam().endsAll)
    return;
  auto begin = std::chrono::steady_clock::now();
  onRanks(3, std::chrono::seconds(90), [](Rank &rank) {
    if (rank.memory.ranks().areAll())
      return;
    // Whoever is slow learns of the end while it still meets.
    Status status = rank.meet();
    if (rank.number == 1) {
      ASSERT_TRUE(status.ok()) << status.message;
      ::_exit(0);
    }
    if (status.ok())
      status = rank.allGather(rank.call(keyOf(CollectiveKind::AllGather, {1}), 0), 0, 1 << 16);
    EXPECT_EQ(status.code, StatusCode::Failed);
    EXPECT_EQ(status.rank, 1) << status.message;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

TEST_P(Communicators, ProcessesHoldBlocksOfRanks) {
  for (int64_t ranks : {1, 2, 4})
    onProcesses(ranks, [&] {
      auto factory = makeCommunicators(GetParam().communicators, std::chrono::seconds(20));
      ASSERT_TRUE(factory) << factory.error().message;
      Expected<RanksHere> here = (*factory)->ranksHere(ranks);
      ASSERT_TRUE(here) << here.error().message;
      EXPECT_EQ(here->processes(), (*factory)->numProcesses());
      EXPECT_EQ(here->processOf(here->first), (*factory)->process());
      EXPECT_EQ(here->first, (*factory)->process() * here->count);
      AbortState abort;
      std::vector<int64_t> firsts(static_cast<size_t>((*factory)->numProcesses()));
      ASSERT_TRUE((*factory)->gather(&here->first, 8, firsts.data(), abort, std::chrono::seconds(20)).ok());
      for (size_t process = 0; process < firsts.size(); ++process)
        EXPECT_EQ(firsts[process], static_cast<int64_t>(process) * here->count);
    });
}

TEST_P(Communicators, GatherGivesTheBytesOfAllProcesses) {
  for (int64_t ranks : {1, 3})
    onProcesses(ranks, [&] {
      auto factory = makeCommunicators(GetParam().communicators, std::chrono::seconds(20));
      ASSERT_TRUE(factory) << factory.error().message;
      AbortState abort;
      for (int64_t count : {int64_t(1), int64_t(300'000)}) {
        auto valueAt = [&](int64_t process, int64_t i) { return static_cast<int32_t>(process * 1'000'003 + i); };
        std::vector<int32_t> mine, all(static_cast<size_t>(count * (*factory)->numProcesses()), -1);
        for (int64_t i = 0; i < count; ++i)
          mine.push_back(valueAt((*factory)->process(), i));
        ASSERT_TRUE((*factory)->gather(mine.data(), count * 4, all.data(), abort, std::chrono::seconds(20)).ok());
        for (int64_t i = 0; i < count * (*factory)->numProcesses(); ++i)
          ASSERT_EQ(all[static_cast<size_t>(i)], valueAt(i / count, i % count)) << i;
      }
    });
}

TEST_P(Communicators, ShareGivesTheBytesOfAProcess) {
  for (int64_t ranks : {1, 3})
    onProcesses(ranks, [&] {
      auto factory = makeCommunicators(GetParam().communicators, std::chrono::seconds(20));
      ASSERT_TRUE(factory) << factory.error().message;
      AbortState abort;
      for (int64_t process = (*factory)->numProcesses(); process-- > 0;) {
        int64_t values[2] = {-1, -1};
        if (process == (*factory)->process())
          values[0] = values[1] = 100 + process;
        if ((*factory)->numProcesses() > 1)
          ASSERT_TRUE((*factory)->share(process, values, sizeof values, abort).ok());
        EXPECT_EQ(values[0], 100 + process);
        EXPECT_EQ(values[1], 100 + process);
      }
    });
}
