//===- Conformance.cpp ----------------------------------------------------===//

#include "Conformance.h"
#include "spmd/Runtime/Train/Registry.h"

#include <atomic>
#include <cstdlib>
#include <pthread.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

std::string conformance::fileTag() {
  constexpr char kTag[] = "SPMD_CONFORMANCE_TAG";
  if (!std::getenv(kTag))
    ::setenv(kTag, std::to_string(::getpid()).c_str(), 1);
  return std::getenv(kTag);
}

bool conformance::makesFiles() { return fileTag() == std::to_string(::getpid()); }

std::string conformance::tinyArtifact(const Setup &setup, int64_t ranks) {
  return std::string(SPMD_TEST_ARTIFACTS) + "/" + setup.target + "/tiny" + std::to_string(ranks) + ".spmd";
}

void Rank::write(int64_t offset, const std::vector<float> &values) {
  EXPECT_TRUE(memory.copyIn(number, offset, values.data(), static_cast<int64_t>(values.size() * sizeof(float))).ok());
  if (stream) // which is not the one of copies
    awaitCopies();
}

void Rank::awaitCopies() const {
  char byte;
  EXPECT_TRUE(memory.copyOut(number, 0, &byte, 1).ok());
}

std::vector<float> Rank::read(int64_t offset, int64_t count) const {
  std::vector<float> values(static_cast<size_t>(count));
  EXPECT_TRUE(memory.copyOut(number, offset, values.data(), count * static_cast<int64_t>(sizeof(float))).ok());
  return values;
}

const Collective &Rank::call(CollectiveKey key, int32_t id, uint64_t traceHash, const std::string &location) {
  return calls.emplace_back(std::move(key), id, traceHash, location);
}

Status Rank::finish(Status issued) {
  if (issued.ok() && stream)
    issued = stream->wait();
  return issued.ok() ? abort.status() : issued;
}

Status Rank::allGather(const Collective &call, int64_t send, int64_t recv) { return run(call, {send, recv}); }

Status Rank::reduceScatter(const Collective &call, int64_t send, int64_t recv) { return run(call, {send, recv}); }

Status Rank::allReduce(const Collective &call, const std::vector<int64_t> &offsets) { return run(call, offsets); }

Status Rank::run(const Collective &call, const std::vector<int64_t> &offsets) {
  std::vector<void *> buffers;
  for (int64_t offset : offsets)
    buffers.push_back(memory.addressOf(number, offset));
  return finish(communicator.run(call, buffers.data(), stream.get()));
}

Status Rank::meet() {
  return allReduce(call({{CollectiveKind::AllReduce, DType::F32, {1}, {ReductionKind::Sum}, ""}, {}}, -2), {0});
}

void Conformance::SetUp() {
  std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  auto left = GetParam().leavesOut.find(test.substr(0, test.find('/')));
  if (left != GetParam().leavesOut.end())
    GTEST_SKIP() << left->first << " is not for " << GetParam().name << ": " << left->second;
}

/// A test that has another name since would run.
TEST(Setups, LeaveOutTestsThatThereAre) {
  std::set<std::string> names;
  const ::testing::UnitTest &all = *::testing::UnitTest::GetInstance();
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite)
    for (int i = 0; i < all.GetTestSuite(suite)->total_test_count(); ++i) {
      std::string name = all.GetTestSuite(suite)->GetTestInfo(i)->name();
      names.insert(name.substr(0, name.find('/')));
    }
  for (const auto &setup : getSetups())
    for (const auto &[name, reason] : setup.leavesOut)
      EXPECT_TRUE(names.count(name) && !reason.empty()) << name << " of " << setup.name;
}

void Conformance::onProcesses(int64_t ranks, const std::function<void()> &body) {
  EXPECT_TRUE(GetParam().run(ranks, body)) << "a process of " << ranks << " ranks failed";
}

/// What the ranks of one process need, in the order in which it is made.
static void runRanks(const Setup &setup, int64_t total, const RankGroups &groups, std::chrono::seconds timeout,
                     const std::function<void(Rank &)> &body) {
  Expected<Artifact> artifact = loadArtifact(tinyArtifact(setup, total));
  ASSERT_TRUE(artifact) << artifact.error().message;
  std::shared_ptr<const Backend> backend = findBackend(setup.target);
  ASSERT_TRUE(backend) << setup.target;
  Expected<std::unique_ptr<Device>> device = backend->open(*artifact, {});
  ASSERT_TRUE(device) << device.error().message;
  Expected<std::shared_ptr<CommunicatorFactory>> factory = makeCommunicators(setup.communicators, timeout);
  ASSERT_TRUE(factory) << factory.error().message;
  factory = (*device)->connect(*factory);
  ASSERT_TRUE(factory) << factory.error().message;
  Expected<RanksHere> here = (*factory)->ranksHere(total);
  ASSERT_TRUE(here) << here.error().message;
  ASSERT_EQ(here->total, total);
  Expected<std::unique_ptr<RankMemory>> memory = (*device)->allocate(*here, 1 << 20, **factory);
  ASSERT_TRUE(memory) << memory.error().message;
  AbortState abort;
  CommunicatorOptions options;
  options.timeout = timeout;
  options.threads = total;
  std::vector<std::unique_ptr<Rank>> ranks; // their calls outlive the group
  Expected<std::unique_ptr<CommunicatorGroup>> group = (*factory)->make("gather", *here, groups, abort, options);
  ASSERT_TRUE(group) << group.error().message;
  std::vector<std::thread> threads;
  for (int64_t number = here->first; number < here->end(); ++number) {
    Expected<std::unique_ptr<Stream>> stream = (*device)->makeStream(number);
    ASSERT_TRUE(stream) << stream.error().message;
    ranks.emplace_back(new Rank{number, total, **memory, abort, (*group)->endpoint(number), std::move(*stream), {}});
  }
  std::atomic<bool> isOver{false};
  std::thread watchdog([&] {
    ::pthread_setname_np(::pthread_self(), "watchdog");
    while (setup.watch && !isOver) {
      setup.watch(**factory, **group, *here, abort);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  for (std::unique_ptr<Rank> &rank : ranks)
    threads.emplace_back([&] {
      if (rank->stream)
        rank->awaitCopies(); // the arena is zero
      body(*rank);
    });
  for (std::thread &thread : threads)
    thread.join();
  isOver = true;
  watchdog.join();
  // Where ranks meet in groups, one may be done while another process still reads how to reach its own.
  std::vector<char> all(static_cast<size_t>(total / here->count));
  (void)(*factory)->gather(&all[0], 1, all.data(), abort, timeout); // an error has been seen by the body
  // Streams end before what they use.
  for (std::unique_ptr<Rank> &rank : ranks)
    rank->stream.reset();
}

void Conformance::onRanks(int64_t ranks, std::chrono::seconds timeout, const std::function<void(Rank &)> &body) {
  if (ranks > 1 || GetParam().meetsAlone)
    onProcesses(ranks, [&] { runRanks(GetParam(), ranks, RankGroups::all(ranks), timeout, body); });
}

void Conformance::onGroups(const std::vector<MeshAxis> &mesh, const std::vector<std::string> &axes,
                           std::chrono::seconds timeout, const std::function<void(Rank &, const RankGroups &)> &body) {
  RankGroups groups = RankGroups::along(mesh, axes);
  int64_t ranks = groups.size() * static_cast<int64_t>(groups.count());
  onProcesses(ranks, [&] { runRanks(GetParam(), ranks, groups, timeout, [&](Rank &rank) { body(rank, groups); }); });
}
