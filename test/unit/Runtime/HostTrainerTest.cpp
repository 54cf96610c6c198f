#include "AllocationCounter.h"
#include "test/unit/Sanitized.h"
#include "Conformance/TinyModel.h"
#include "TestSupport.h"
#include "spmd/Runtime/Host/HostBackend.h"

using namespace spmd::runtime;

static std::unique_ptr<Trainer> load(int64_t ranks, int64_t threads) {
  registerHost();
  TrainerOptions options;
  options.threads = threads;
  Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(tinyArtifact(ranks), options);
  if (trainer)
    return std::move(*trainer);
  ADD_FAILURE() << trainer.error().message;
  std::abort();
}

TEST(HostTrainer, StepsDoNotAllocate) {
  if (isSanitized)
    GTEST_SKIP() << "nothing counts allocations here";
  for (int64_t ranks : {1, 2, 4}) {
    std::unique_ptr<Trainer> trainer = load(ranks, 2 * ranks);
    TinyBatch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    int64_t before = countAllocations();
    Status second = trainer->step(batch.inputs, 2);
    Status third = trainer->step(batch.inputs, 2);
    int64_t after = countAllocations();
    EXPECT_EQ(after, before) << ranks << " ranks";
    ASSERT_TRUE(second.ok() && third.ok());
  }
  int64_t before = countAllocations();
  ::operator delete(::operator new(8)); // a call of the function: a new-expression may be optimized away
  EXPECT_GT(countAllocations(), before) << "the counter counts";
}

TEST(HostTrainer, ThreadsDoNotChangeBits) { EXPECT_EQ(trajectoryOf(*load(2, 2)), trajectoryOf(*load(2, 6))); }

TEST(HostTrainer, RefusesWhatItDoesNotHave) {
  registerHost();
  auto errorOf = [](const TrainerOptions &options) {
    Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(tinyArtifact(2), options);
    return trainer ? "" : trainer.error().message;
  };
  TrainerOptions options;
  options.device.cpu = "riscv";
  expectContains(errorOf(options), "no kernels for cpu 'riscv'");
  options = {};
  options.device.emulation = "plain";
  expectContains(errorOf(options), "was compiled for target 'host': emulation 'plain' is for target 'emulate'");
  options = {};
  options.communicators = "pigeons";
  EXPECT_EQ(errorOf(options), "no communicators are named 'pigeons'; this program has 'threads'");
}
