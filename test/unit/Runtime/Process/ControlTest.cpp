#include "lib/Runtime/Process/Control.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;

namespace {

/// A block of the first rank, in this process, of which others see what they do.
struct Block {
  explicit Block(std::vector<int64_t> members = {0}, const std::vector<int32_t> &processes = {0}) {
    auto bytes = static_cast<size_t>(Control::sizeFor(static_cast<int64_t>(processes.size())));
    memory = {static_cast<char *>(std::aligned_alloc(64, bytes)), std::free};
    std::memset(memory.get(), 0, bytes);
    firstError = std::make_shared<SharedError>();
    control = std::make_unique<Control>(memory, firstError, static_cast<int64_t>(processes.size()), std::move(members),
                                        1, *Peers::watch(processes, 0));
  }
  SharedError &error() { return *firstError; }

  std::shared_ptr<char> memory;
  std::shared_ptr<SharedError> firstError;
  std::unique_ptr<Control> control;
};

TEST(Control, TheFirstErrorStays) {
  Block block;
  EXPECT_TRUE(block.control->error().ok());
  block.control->fail(Status::failed("first", 3, 4, "train.py:1"));
  block.control->fail(Status::failed("second"));
  Status status = block.control->error();
  EXPECT_EQ(status.message, "first");
  EXPECT_EQ(status.rank, 3);
  EXPECT_EQ(status.command, 4);
  EXPECT_EQ(status.location, "train.py:1");
  EXPECT_FALSE(status.isElsewhere);
}

/// Two processes time out at once: the second finds the error of the first half written.
TEST(Control, WaitsForAnErrorThatIsBeingWritten) {
  Block block;
  block.error().state = 1;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    block.error().code = static_cast<int32_t>(StatusCode::Failed);
    block.error().message.set("written late");
    block.error().state = 2;
  });
  block.control->fail(Status::failed("second"));
  Status status = block.control->error();
  EXPECT_EQ(status.message, "written late");
  EXPECT_TRUE(status.isElsewhere);
  other.join();
}

TEST(Control, AnErrorThatIsNeverWrittenIsOneAllTheSame) {
  Block block;
  block.error().state = 1;
  EXPECT_EQ(block.control->error().message, "another process has failed, and ended before it said why");
}

/// Ranks 0 and 1 meet in one group and rank 2 in another: one that is done with its group may end, and is missed by those
/// who wait for it alone.
TEST(Control, OnlyMembersAreMissed) {
  int32_t alive = ::fork();
  if (alive == 0)
    for (;;)
      ::pause();
  int32_t ended = ::fork();
  if (ended == 0)
    ::_exit(0);
  Block own({0, 1}, {0, alive, ended}), of2({0, 2}, {0, alive, ended});
  siginfo_t unused;
  ::waitid(P_PID, static_cast<id_t>(ended), &unused, WEXITED | WNOWAIT);
  AbortState abort;
  auto soon = Clock::now() + std::chrono::milliseconds(200);
  EXPECT_EQ(own.control->meet(0, 0, abort, soon), WaitResult::TimedOut);
  EXPECT_EQ(of2.control->meet(0, 0, abort, Clock::now() + std::chrono::seconds(20)), WaitResult::Aborted);
  EXPECT_EQ(of2.control->error().message, "rank 2 ended without a word: process " + std::to_string(ended) + " is gone");
  ::kill(alive, SIGKILL);
  ::waitpid(alive, nullptr, 0);
  ::waitpid(ended, nullptr, 0);
}

/// A process reads behind its writes when the others have done as many since they met, or are where they meet next.
TEST(Control, WritesAreWaitedForUntilAllMeet) {
  Block block({0, 1}, {0, 0}); // as seen by the first of two, of which the other is this thread, too
  Control &control = *block.control;
  AbortState abort;
  auto awaitOf = [&](int64_t rank) {
    return control.awaitWrites(rank, abort, Clock::now() + std::chrono::milliseconds(30));
  };
  EXPECT_EQ(awaitOf(0), WaitResult::Reached);
  control.finishWrite(0);
  EXPECT_EQ(awaitOf(0), WaitResult::TimedOut);
  EXPECT_EQ(control.listBehind(0), "1");
  EXPECT_EQ(awaitOf(1), WaitResult::Reached);
  control.finishWrite(1);
  EXPECT_EQ(awaitOf(0), WaitResult::Reached);
  control.finishWrite(0);
  EXPECT_EQ(awaitOf(0), WaitResult::TimedOut);
  EXPECT_EQ(control.meet(1, 0, abort, Clock::now()), WaitResult::TimedOut);
  EXPECT_EQ(awaitOf(0), WaitResult::Reached) << "the other has left a write out";
  EXPECT_EQ(control.meet(0, 0, abort, Clock::now()), WaitResult::Reached);
  control.finishWrite(1);
  EXPECT_EQ(awaitOf(1), WaitResult::TimedOut) << "counted anew";
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    control.finishWrite(0);
  });
  EXPECT_EQ(control.awaitWrites(1, abort, Clock::now() + std::chrono::seconds(20)), WaitResult::Reached);
  other.join();
}

} // namespace
