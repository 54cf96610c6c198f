#include "lib/Runtime/Process/Control.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

using namespace spmd::runtime;

namespace {

/// A block of one rank, and what others see in it.
struct Block {
  Block() {
    auto bytes = static_cast<size_t>(Control::sizeFor(1));
    memory = {static_cast<char *>(std::aligned_alloc(64, bytes)), std::free};
    std::memset(memory.get(), 0, bytes);
    firstError = std::make_shared<SharedError>();
    control = std::make_unique<Control>(memory, firstError, 1, std::vector<int64_t>{0}, 1, *Peers::watch({0}, 0));
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

} // namespace
