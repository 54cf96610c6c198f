#include "spmd/Runtime/Train/Trainer.h"
#include "AllocationCounter.h"
#include "TestSupport.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Host/Progress.h"

#include <cstring>
#include <fstream>

using namespace spmd::runtime;

namespace {
std::unique_ptr<Trainer> load(int64_t ranks, TrainerOptions options = {}) {
  registerHost();
  Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(tinyArtifact(ranks), options);
  if (trainer)
    return std::move(*trainer);
  ADD_FAILURE() << trainer.error().message;
  std::abort();
}

std::string loadError(int64_t ranks, const TrainerOptions &options) {
  registerHost();
  Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(tinyArtifact(ranks), options);
  EXPECT_FALSE(trainer);
  if (trainer)
    return "";
  EXPECT_EQ(trainer.error().code, StatusCode::BadInput);
  return trainer.error().message;
}

/// A batch of 7 rows for the tiny model.
struct Batch {
  std::vector<int64_t> ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2};
  std::vector<float> target = std::vector<float>(21, 0.25f);
  int64_t idShape[2] = {7, 2}, targetShape[2] = {7, 3};
  HostTensor inputs[2] = {{ids.data(), DType::I64, 2, idShape}, {target.data(), DType::F32, 2, targetShape}};
};

float lossOf(const Trainer &trainer) {
  float loss = 0;
  EXPECT_TRUE(trainer.readOutput(0, &loss, sizeof loss).ok());
  return loss;
}

std::vector<float> parameter(const Trainer &trainer, const std::string &name) {
  const StateTensor *tensor = trainer.state().find("param", name);
  std::vector<float> values(static_cast<size_t>(tensor->numel()));
  EXPECT_TRUE(trainer.readTensor("param", name, values.data(), values.size() * sizeof(float)).ok());
  return values;
}

/// The losses of ten steps and the final embedding.
std::vector<float> trajectory(int64_t ranks, const TrainerOptions &options) {
  std::unique_ptr<Trainer> trainer = load(ranks, options);
  Batch batch;
  std::vector<float> values;
  for (int step = 0; step < 10; ++step) {
    EXPECT_TRUE(trainer->step(batch.inputs, 2).ok());
    values.push_back(lossOf(*trainer));
  }
  for (float value : parameter(*trainer, "emb.weight"))
    values.push_back(value);
  return values;
}
} // namespace

TEST(Trainer, StepsDoNotAllocate) {
  for (int64_t ranks : {1, 2, 4}) {
    TrainerOptions options;
    options.threads = 2 * ranks;
    std::unique_ptr<Trainer> trainer = load(ranks, options);
    Batch batch;
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

TEST(Trainer, RunsRepeatBitwise) {
  TrainerOptions options;
  options.threads = 4;
  std::vector<float> first = trajectory(4, options);
  for (int run = 1; run < 20; ++run)
    ASSERT_EQ(trajectory(4, options), first) << "run " << run;
}

TEST(Trainer, ThreadsDoNotChangeBits) {
  TrainerOptions one, many;
  one.threads = 2;
  many.threads = 6;
  EXPECT_EQ(trajectory(2, one), trajectory(2, many));
}

TEST(Trainer, ReadsAndWritesFullTensors) {
  for (int64_t ranks : {1, 3}) {
    std::unique_ptr<Trainer> trainer = load(ranks);
    std::vector<float> values(66);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i);
    ASSERT_TRUE(trainer->writeTensor("param", "tied.weight", values.data(), 264).ok());
    EXPECT_EQ(parameter(*trainer, "emb.weight"), values);
    float step = -1;
    Batch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    ASSERT_TRUE(trainer->readTensor("step", "fc1.bias", &step, sizeof step).ok());
    EXPECT_EQ(step, 1);
    EXPECT_EQ(trainer->readTensor("param", "nope", &step, 4).message, "no param is named 'nope'");
    EXPECT_EQ(trainer->readTensor("param", "fc1.bias", &step, 4).message,
              "param 'fc1.bias' has 20 bytes, the caller's buffer 4");
    EXPECT_EQ(trainer->state().find("momentum_buffer", "scale"), nullptr)
        << "frozen parameters have no optimizer state";
  }
}

TEST(Trainer, FrozenParametersStay) {
  std::unique_ptr<Trainer> trainer = load(2);
  std::vector<float> before = parameter(*trainer, "scale");
  Batch batch;
  ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
  EXPECT_EQ(parameter(*trainer, "scale"), before);
}

TEST(Trainer, SavedStateContinuesBitwise) {
  std::string path = temporaryPath("safetensors");
  std::unique_ptr<Trainer> trainer = load(4);
  Batch batch;
  ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
  ASSERT_TRUE(trainer->save(path, true).ok());
  ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());

  // Another number of ranks reads the same file.
  for (int64_t ranks : {4, 1}) {
    TrainerOptions options;
    options.weights = path;
    std::unique_ptr<Trainer> resumed = load(ranks, options);
    ASSERT_TRUE(resumed->step(batch.inputs, 2).ok());
    std::vector<float> a = parameter(*trainer, "fc1.weight");
    std::vector<float> b = parameter(*resumed, "fc1.weight");
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], ranks == 4 ? 0 : 1e-6);
  }
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_NE(file->find("tied.weight"), nullptr);
  EXPECT_NE(file->find("optimizer/momentum_buffer/tied.weight"), nullptr);
  std::remove(path.c_str());
}

TEST(Trainer, HyperParametersTakeEffect) {
  std::unique_ptr<Trainer> trainer = load(2);
  Batch batch;
  ASSERT_TRUE(trainer->setHyper("lr", 0, 0).ok());
  std::vector<float> before = parameter(*trainer, "emb.weight");
  ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
  EXPECT_EQ(parameter(*trainer, "emb.weight"), before);
  ASSERT_TRUE(trainer->setHyper("lr", 0, 0.1).ok());
  ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
  EXPECT_NE(parameter(*trainer, "emb.weight"), before);
  EXPECT_EQ(trainer->setHyper("lr", 1, 0.1).message, "no hyper-parameter 'lr' of group 1 is an input of the step; it "
                                                     "has: lr of group 0");
}

TEST(Trainer, RefusesBadBatches) {
  std::unique_ptr<Trainer> trainer = load(2);
  std::vector<float> before = parameter(*trainer, "emb.weight");
  auto errorOf = [&](const Batch &batch, size_t count = 2) {
    Status status = trainer->step(batch.inputs, count);
    EXPECT_EQ(status.code, StatusCode::BadInput);
    return status.message;
  };
  Batch batch;
  EXPECT_EQ(errorOf(batch, 1), "the step takes 2 batch inputs, found 1");
  batch.idShape[0] = 8;
  EXPECT_EQ(errorOf(batch), "input 'x': expected i64[7, 2], found i64[8, 2]");
  batch.idShape[0] = 7;
  batch.inputs[1].dtype = DType::F64;
  EXPECT_EQ(errorOf(batch), "input 't': expected f32[7, 3], found f64[7, 3]");
  batch.inputs[1].dtype = DType::F32;
  batch.inputs[1].rank = 1;
  EXPECT_EQ(errorOf(batch), "input 't': expected f32[7, 3], found f32[7]");
  batch.inputs[1].rank = 2;
  batch.ids[5] = 11;
  EXPECT_EQ(errorOf(batch), "input 'x': value 11 at position [2, 1] is not a "
                            "row id in [0, 11)");
  EXPECT_EQ(parameter(*trainer, "emb.weight"), before);
  batch.ids[5] = 10;
  EXPECT_TRUE(trainer->step(batch.inputs, 2).ok()) << "it still works";
}

TEST(Trainer, RefusesBadOptions) {
  TrainerOptions options;
  options.ranks = 4;
  expectContains(loadError(2, options), "was compiled for 2 ranks, not 4");
  options = {};
  options.timeoutSeconds = 0;
  expectContains(loadError(2, options), "the time-out must be more than 0");
  options = {};
  options.device.cpu = "riscv";
  expectContains(loadError(2, options), "no kernels for cpu 'riscv'");
  options = {};
  options.fault = "explode:1:1";
  expectContains(loadError(2, options), "bad fault 'explode:1:1'");
  options.fault = "stall:2:1";
  expectContains(loadError(2, options), "there are 2 ranks");
  options = {};
  options.weights = "/nowhere.safetensors";
  expectContains(loadError(2, options), "cannot read '/nowhere.safetensors'");
}

TEST(Trainer, NamesMissingAndOddWeights) {
  std::string path = temporaryPath("safetensors");
  TrainerOptions options;
  options.weights = path;
  float value[66] = {};
  ASSERT_TRUE(writeSafetensors(path, {{"emb.weight", {DType::F32, {11, 6}, value, 264}}}, {}).ok());
  expectContains(loadError(2, options), "missing weight: param 'fc1.weight'");
  ASSERT_TRUE(writeSafetensors(path, {{"emb.weight", {DType::F32, {6, 11}, value, 264}}}, {}).ok());
  expectContains(loadError(2, options), "param 'emb.weight' is f32[6, 11], the "
                                        "artifact was compiled for f32[11, 6]");
  std::remove(path.c_str());
}

TEST(Trainer, FaultsAreErrorsOnAllRanks) {
  Batch batch;
  for (const char *fault : {"exit:1:0", "stall:1:0", "skip:1:0", "stall:0:3", "exit:0:19", "skip:1:32"}) {
    TrainerOptions options;
    options.fault = fault;
    options.timeoutSeconds = 0.3;
    std::unique_ptr<Trainer> trainer = load(2, options);
    auto begin = Clock::now();
    Status status = trainer->step(batch.inputs, 2);
    EXPECT_EQ(status.code, StatusCode::Failed) << fault;
    EXPECT_GE(status.rank, 0) << fault << ": " << status.message;
    EXPECT_GE(status.command, 0) << fault << ": " << status.message;
    EXPECT_EQ(trainer->step(batch.inputs, 2).message, status.message) << "a failed trainer stays failed";
    trainer.reset();
    EXPECT_LT(Clock::now() - begin, std::chrono::minutes(1)) << fault;
  }
}

TEST(Trainer, WatchdogFindsAStalledSingleRank) {
  TrainerOptions options;
  options.fault = "stall:0:2";
  options.timeoutSeconds = 1; // no command before it may take that long
  std::unique_ptr<Trainer> trainer = load(1, options);
  Batch batch;
  Status status = trainer->step(batch.inputs, 2);
  EXPECT_EQ(status.code, StatusCode::Failed);
  EXPECT_EQ(status.message, "no rank made progress within the time-out of 1 s: rank 0 is in command 2 (kernel "
                            "bias_relu); a rank that is only slow is given more time by spmd-run --timeout=SECONDS, "
                            "or timeout=SECONDS in Python");
}
