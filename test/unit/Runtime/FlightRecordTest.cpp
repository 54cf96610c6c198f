//===- FlightRecordTest.cpp -----------------------------------------------===//

#include "spmd/Runtime/Train/FlightRecord.h"
#include "TestSupport.h"
#include "spmd/Runtime/Train/Abort.h"

using namespace spmd::runtime;

namespace {

/// Stands where it is told to.
class Standing final : public Executor {
public:
  Status step() override { return Status::success(); }
  Status wait() override { return Status::success(); }
  bool shutdown() override { return true; }
  std::vector<RankPosition> positions() const override { return where; }

  std::vector<RankPosition> where;
};

class FlightRecords : public ::testing::Test {
protected:
  FlightRecords() { executor.where = {{0, {{1, 2, true}, {1, 1, false}, {0, 0, true}, {0, 0, true}}}}; }

  Artifact artifact = loadTiny(2);
  Standing executor;
  FlightRecorder recorder;
};

} // namespace

TEST_F(FlightRecords, NotesBeforeAnybodyIsToldOfTheError) {
  AbortState abort;
  recorder.follow(executor, artifact, 3, 3);
  abort.watch([&] {
    EXPECT_FALSE(abort.isRaised());
    recorder.note();
  });
  abort.onFailure([&](const Status &) { executor.where.clear(); });
  abort.fail(Status::failed("a rank ended"));
  abort.fail(Status::failed("another one, too"));
  EXPECT_EQ(recorder.report(abort.status()).message, "a rank ended");
  EXPECT_EQ(recorder.text().find("rank 0, step 3: compute: 1 of "), 0u) << recorder.text();
}

TEST_F(FlightRecords, NotesWhenAnErrorIsReportedWhereNothingElseDid) {
  recorder.follow(executor, artifact, 0, 0);
  (void)recorder.report(Status::failed("a rank ended"));
  EXPECT_NE(recorder.text(), "");
}

TEST_F(FlightRecords, HasNothingToSayOfAnExecutorThatIsGone) {
  recorder.follow(executor, artifact, 0, 0);
  recorder.note();
  recorder.forget(executor);
  EXPECT_EQ(recorder.report(Status::failed("a rank ended")).message, "a rank ended");
  EXPECT_EQ(recorder.text(), "");
}

TEST_F(FlightRecords, NamesTheStepThatARankIsIn) {
  executor.where[0].step = 5; // as the executor counts
  recorder.follow(executor, artifact, 12, 7);
  (void)recorder.report(Status::failed("a rank ended"));
  EXPECT_EQ(recorder.text().find("rank 0, step 10: compute: 1 of "), 0u) << recorder.text();
}

TEST_F(FlightRecords, SaysWhyARecordCannotBeWritten) {
  recorder.setFolder("/nowhere/at/all", RanksHere::all(1));
  recorder.follow(executor, artifact, 0, 0);
  EXPECT_EQ(
      recorder.report(Status::failed("a rank ended")).message,
      "a rank ended; what its ranks did last is lost: cannot write '/nowhere/at/all/rank-0.json': No such file or "
      "directory");
}

TEST_F(FlightRecords, TellsWhatIsKnownFromWhatMayBe) {
  recorder.follow(executor, artifact, 0, 0);
  (void)recorder.report(Status::failed("a rank ended"));
  std::string text = recorder.text();
  EXPECT_NE(text.find("compute: 1 of 28 done, in "), std::string::npos) << text;
  EXPECT_NE(text.find("; gather: at least 1 of 2 done; "), std::string::npos) << text;
}
