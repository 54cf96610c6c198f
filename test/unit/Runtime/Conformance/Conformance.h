//===- Conformance.h - What every backend and communicator must do -*- C++ -*-===//
//
// The suite runs on each backend with each communicator that getSetups() names:
// a program that links the suite, registers its own and passes is one that the
// trainer can use. spmd_add_conformance_tests (CMakeLists.txt) builds one.
//
// Tests run a body in every process of a job. Where a job has several, they are
// children of the test: expectations work in them, changes of variables do not
// come back.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_CONFORMANCE_H
#define SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_CONFORMANCE_H

#include "spmd/Runtime/Train/Abort.h"
#include "spmd/Runtime/Train/Backend.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace spmd::runtime::conformance {

/// A backend with communicators, by the names they are registered under.
struct Setup {
  std::string name; ///< for people: "host_threads"
  std::string target;
  std::string communicators;
  /// Calls `body` in each process of a job of `ranks` ranks, where both are registered. True when all of them ended
  /// well and without a failed expectation.
  std::function<bool(int64_t ranks, const std::function<void()> &body)> run;
  /// The launcher ends all processes when one has ended.
  bool endsAll = false;
  /// Tests that are not for it, and why: they are skipped in these words.
  std::map<std::string, std::string> leavesOut = {};
  /// One rank has communicators, too; else a device gets them with an artifact that has collectives.
  bool meetsAlone = true;
  /// Its collectives add up norms; else plans for it have sums of squares.
  bool addsNorms = true;
  /// What executors of its device do beside collectives that run, again and again: that a failure, also of a process
  /// that has ended, ends them.
  std::function<void(CommunicatorFactory &, CommunicatorGroup &, const RanksHere &, AbortState &)> watch = {};
};

/// Names the files of a test, also in processes that a launcher has started for it.
std::string fileTag();
/// Whether this is the process that makes the files of tests, and removes them.
bool makesFiles();

inline void PrintTo(const Setup &setup, std::ostream *stream) { *stream << setup.name; }

/// What this program brings; defined by it.
std::vector<Setup> getSetups();

/// The hand-written artifact for this many ranks (1, 2, 3, 4 or 8).
std::string tinyArtifact(const Setup &setup, int64_t ranks);

inline constexpr int64_t kRanks[] = {1, 2, 3, 4, 8};

/// One rank of a job that runs no program: it has an arena, and an end of the communicator "gather".
struct Rank {
  int64_t number, total;
  RankMemory &memory;
  AbortState &abort;
  Communicator &communicator;
  std::unique_ptr<Stream> stream;
  std::deque<Collective> calls = {};

  /// What is written is there for collectives when it comes back.
  void write(int64_t offset, const std::vector<float> &values);
  std::vector<float> read(int64_t offset, int64_t count) const;

  /// The description of a call, which outlives the communicator.
  const Collective &call(CollectiveKey key, int32_t id = 3, uint64_t traceHash = 1,
                         const std::string &location = "train.py:7");

  // Collectives on offsets of the arena, until they are done.
  Status allGather(const Collective &call, int64_t send, int64_t recv);
  Status reduceScatter(const Collective &call, int64_t send, int64_t recv);
  Status allReduce(const Collective &call, const std::vector<int64_t> &offsets);

  /// Comes back when all ranks are here.
  Status meet();
  /// Comes back when what was written to the arena is there.
  void awaitCopies() const;

private:
  Status run(const Collective &call, const std::vector<int64_t> &offsets);
  Status finish(Status issued);
};

class Conformance : public ::testing::TestWithParam<Setup> {
protected:
  void SetUp() override;

  /// Runs `body` in every process of a job.
  void onProcesses(int64_t ranks, const std::function<void()> &body);

  /// Runs `body` on a thread for each rank of a job.
  void onRanks(int64_t ranks, std::chrono::seconds timeout, const std::function<void(Rank &)> &body);

  /// The same for ranks that meet in groups along some axes of a mesh.
  void onGroups(const std::vector<MeshAxis> &mesh, const std::vector<std::string> &axes, std::chrono::seconds timeout,
                const std::function<void(Rank &, const RankGroups &)> &body);
};

} // namespace spmd::runtime::conformance

/// Runs the tests of a suite on all setups.
#define SPMD_INSTANTIATE_CONFORMANCE(Suite)                                                                            \
  INSTANTIATE_TEST_SUITE_P(Conformance, Suite, ::testing::ValuesIn(::spmd::runtime::conformance::getSetups()),         \
                           [](const auto &info) { return info.param.name; })

#endif // SPMD_TEST_UNIT_RUNTIME_CONFORMANCE_CONFORMANCE_H
