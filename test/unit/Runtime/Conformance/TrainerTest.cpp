#include "Conformance.h"
#include "TinyModel.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;
using namespace spmd::runtime::conformance;

namespace {

class Training : public Conformance {
protected:
  TrainerOptions options() const {
    TrainerOptions options;
    options.communicators = GetParam().communicators;
    return options;
  }

  std::unique_ptr<Trainer> load(int64_t ranks, const TrainerOptions &options) const {
    Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(tinyArtifact(GetParam(), ranks), options);
    if (trainer)
      return std::move(*trainer);
    ADD_FAILURE() << trainer.error().message;
    std::abort();
  }
  std::unique_ptr<Trainer> load(int64_t ranks) const { return load(ranks, options()); }

  void expectLoadError(int64_t ranks, const TrainerOptions &options, const std::string &part) const {
    Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(tinyArtifact(GetParam(), ranks), options);
    ASSERT_FALSE(trainer);
    EXPECT_EQ(trainer.error().code, StatusCode::BadInput);
    EXPECT_NE(trainer.error().message.find(part), std::string::npos) << trainer.error().message;
  }

  /// A file that all processes of a test know; removed after it.
  std::string temporary(const std::string &name) {
    files.push_back(::testing::TempDir() + "/conformance." + fileTag() + "." + name);
    return files.back();
  }
  void TearDown() override {
    for (const std::string &file : files)
      if (makesFiles())
        std::filesystem::remove_all(file);
  }

private:
  std::vector<std::string> files;
};
SPMD_INSTANTIATE_CONFORMANCE(Training);
} // namespace

TEST_P(Training, TrainsToTheReference) {
  for (int64_t ranks : kRanks)
    onProcesses(ranks, [&] {
      std::unique_ptr<Trainer> trainer = load(ranks);
      Expected<SafetensorsFile> reference = SafetensorsFile::open(trainer->artifact().pathOf("reference.safetensors"));
      ASSERT_TRUE(reference);
      int64_t idShape[2] = {7, 2}, targetShape[2] = {7, 3}, steps = 10;
      for (int64_t step = 0; step < steps; ++step) {
        ASSERT_TRUE(
            trainer->setHyper("lr", 0, loadAsDouble(reference->find("hyper/lr/0")->data, DType::F64, step)).ok());
        std::string batch = "batch/" + std::to_string(step);
        HostTensor inputs[2] = {{reference->find(batch + "/x")->data, DType::I64, 2, idShape},
                                {reference->find(batch + "/t")->data, DType::F32, 2, targetShape}};
        ASSERT_TRUE(trainer->step(inputs, 2).ok());
        double expected = loadAsDouble(reference->find("loss")->data, DType::F64, step);
        EXPECT_NEAR(lossOf(*trainer), expected, 1e-5 * std::fabs(expected)) << "step " << step;
      }
      // Rows of an output and of the parameters lie on all ranks.
      float prediction[21];
      ASSERT_TRUE(trainer->readOutput(1, prediction, sizeof prediction).ok());
      for (int64_t i = 0; i < 21; ++i)
        EXPECT_NEAR(prediction[i], loadAsDouble(reference->find("prediction")->data, DType::F32, i), 1e-5);
      std::vector<float> embedding = parameterOf(*trainer, "emb.weight");
      for (size_t i = 0; i < embedding.size(); ++i)
        EXPECT_NEAR(embedding[i],
                    loadAsDouble(reference->find("final/emb.weight")->data, DType::F32, static_cast<int64_t>(i)), 1e-5);
    });
}

TEST_P(Training, RunsRepeatBitwise) {
  onProcesses(4, [&] {
    TrainerOptions chosen = options();
    chosen.threads = 4;
    std::vector<float> first = trajectoryOf(*load(4, chosen));
    for (int run = 1; run < 20; ++run)
      ASSERT_EQ(trajectoryOf(*load(4, chosen)), first) << "run " << run;
  });
}

TEST_P(Training, ReadsAndWritesFullTensors) {
  for (int64_t ranks : {1, 3})
    onProcesses(ranks, [&] {
      std::unique_ptr<Trainer> trainer = load(ranks);
      std::vector<float> values(66);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i);
      ASSERT_TRUE(trainer->writeTensor("param", "tied.weight", values.data(), 264).ok());
      (void)trainer->largestOfAll(0); // all have written what they reach
      EXPECT_EQ(parameterOf(*trainer, "emb.weight"), values);
      float step = -1;
      TinyBatch batch;
      ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
      ASSERT_TRUE(trainer->readTensor("step", "fc1.bias", &step, sizeof step).ok());
      EXPECT_EQ(step, 1);
      EXPECT_EQ(trainer->readTensor("param", "nope", &step, 4).message, "no param is named 'nope'");
      EXPECT_EQ(trainer->readTensor("param", "fc1.bias", &step, 4).message,
                "param 'fc1.bias' has 20 bytes, the caller's buffer 4");
      EXPECT_EQ(trainer->state().find("momentum_buffer", "scale"), nullptr)
          << "frozen parameters have no optimizer state";
    });
}

TEST_P(Training, FrozenParametersStay) {
  onProcesses(2, [&] {
    std::unique_ptr<Trainer> trainer = load(2);
    std::vector<float> before = parameterOf(*trainer, "scale");
    TinyBatch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    EXPECT_EQ(parameterOf(*trainer, "scale"), before);
  });
}

TEST_P(Training, SavedStateContinuesBitwise) {
  std::string path = temporary("safetensors"), later = temporary("later");
  onProcesses(4, [&] {
    std::unique_ptr<Trainer> trainer = load(4);
    TinyBatch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    ASSERT_TRUE(trainer->save(path, true).ok());
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    ASSERT_TRUE(trainer->save(later, false).ok());
    EXPECT_EQ(trainer->save("/nowhere/file", false).code, StatusCode::BadInput) << "on every rank";
  });
  Expected<SafetensorsFile> file = SafetensorsFile::open(path), result = SafetensorsFile::open(later);
  ASSERT_TRUE(file && result);
  EXPECT_NE(file->find("tied.weight"), nullptr);
  EXPECT_NE(file->find("optimizer/momentum_buffer/tied.weight"), nullptr);
  // Another number of ranks reads the same file.
  for (int64_t ranks : {4, 1})
    onProcesses(ranks, [&] {
      TrainerOptions chosen = options();
      chosen.weights = path;
      std::unique_ptr<Trainer> resumed = load(ranks, chosen);
      TinyBatch batch;
      ASSERT_TRUE(resumed->step(batch.inputs, 2).ok());
      std::vector<float> found = parameterOf(*resumed, "fc1.weight");
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], loadAsDouble(result->find("fc1.weight")->data, DType::F32, static_cast<int64_t>(i)),
                    ranks == 4 ? 0 : 1e-6);
    });
}

TEST_P(Training, TrainersShareAState) {
  onProcesses(2, [&] {
    std::unique_ptr<Trainer> one = load(2);
    TrainerOptions chosen = options();
    chosen.shares = one.get();
    std::unique_ptr<Trainer> other = load(2, chosen), alone = load(2);
    TinyBatch batch;
    for (Trainer *trainer : {one.get(), other.get(), other.get(), one.get()}) {
      ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
      ASSERT_TRUE(alone->step(batch.inputs, 2).ok());
    }
    EXPECT_EQ(parameterOf(*other, "emb.weight"), parameterOf(*alone, "emb.weight"));
    one.reset();
    ASSERT_TRUE(other->step(batch.inputs, 2).ok());
    ASSERT_TRUE(alone->step(batch.inputs, 2).ok());
    EXPECT_EQ(parameterOf(*other, "emb.weight"), parameterOf(*alone, "emb.weight"));
  });
}

TEST_P(Training, HyperParametersTakeEffect) {
  onProcesses(2, [&] {
    std::unique_ptr<Trainer> trainer = load(2);
    TinyBatch batch;
    ASSERT_TRUE(trainer->setHyper("lr", 0, 0).ok());
    std::vector<float> before = parameterOf(*trainer, "emb.weight");
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    EXPECT_EQ(parameterOf(*trainer, "emb.weight"), before);
    ASSERT_TRUE(trainer->setHyper("lr", 0, 0.1).ok());
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    EXPECT_NE(parameterOf(*trainer, "emb.weight"), before);
    EXPECT_EQ(trainer->setHyper("lr", 1, 0.1).message,
              "no hyper-parameter 'lr' of group 1 is an input of the step; it has: lr of group 0");
  });
}

TEST_P(Training, NotesWhenEachCommandRan) {
  onProcesses(2, [&] {
    TrainerOptions chosen = options();
    chosen.profile = true;
    std::unique_ptr<Trainer> trainer = load(2, chosen);
    TinyBatch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    lossOf(*trainer); // the step may still run before
    auto commands = static_cast<int32_t>(trainer->artifact().plan.commands.size());
    for (int64_t rank : {0, 1})
      for (int32_t command = 0; command < commands; ++command) {
        Profile::Span span = trainer->profile()->latest(rank, command);
        EXPECT_EQ(span.begin > 0, trainer->ranks().has(rank)) << "rank " << rank << ", command " << command;
        EXPECT_LE(span.begin, span.end);
      }
  });
}

TEST_P(Training, RefusesBadBatches) {
  onProcesses(2, [&] {
    std::unique_ptr<Trainer> trainer = load(2);
    std::vector<float> before = parameterOf(*trainer, "emb.weight");
    auto errorOf = [&](const TinyBatch &batch, size_t count = 2) {
      Status status = trainer->step(batch.inputs, count);
      EXPECT_EQ(status.code, StatusCode::BadInput);
      return status.message;
    };
    TinyBatch batch;
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
    EXPECT_EQ(errorOf(batch), "input 'x': value 11 at position [2, 1] is not a row id in [0, 11)");
    EXPECT_EQ(parameterOf(*trainer, "emb.weight"), before);
    batch.ids[5] = 10;
    EXPECT_TRUE(trainer->step(batch.inputs, 2).ok()) << "it still works";
  });
}

TEST_P(Training, RefusesBadOptions) {
  onProcesses(2, [&] {
    TrainerOptions chosen = options();
    chosen.ranks = 4;
    expectLoadError(2, chosen, "was compiled for 2 ranks, not 4");
    chosen = options();
    chosen.timeoutSeconds = 0;
    expectLoadError(2, chosen, "the time-out must be more than 0");
    chosen = options();
    chosen.fault = "explode:1:1";
    expectLoadError(2, chosen, "bad fault 'explode:1:1'");
    chosen.fault = "stall:2:1";
    expectLoadError(2, chosen, "there are 2 ranks");
    chosen = options();
    chosen.weights = "/nowhere.safetensors";
    expectLoadError(2, chosen, "cannot read '/nowhere.safetensors'");
  });
}

TEST_P(Training, NamesMissingAndOddWeights) {
  std::string missing = temporary("missing"), odd = temporary("odd");
  float value[66] = {};
  ASSERT_TRUE(writeSafetensors(missing, {{"emb.weight", {DType::F32, {11, 6}, value, 264}}}, {}).ok());
  ASSERT_TRUE(writeSafetensors(odd, {{"emb.weight", {DType::F32, {6, 11}, value, 264}}}, {}).ok());
  onProcesses(2, [&] {
    TrainerOptions chosen = options();
    chosen.weights = missing;
    expectLoadError(2, chosen, "missing weight: param 'fc1.weight'");
    chosen.weights = odd;
    expectLoadError(2, chosen, "param 'emb.weight' is f32[6, 11], the artifact was compiled for f32[11, 6]");
  });
}

/// A copy of the artifact for two ranks, of which a unit has another name: that is another trace.
static void makeOtherArtifact(const std::string &of, const std::string &folder) {
  std::filesystem::copy(of, folder, std::filesystem::copy_options::recursive);
  auto replace = [&](const std::string &file, const std::string &from, const std::string &to) {
    Expected<std::string> text = readFile(folder + "/" + file);
    ASSERT_TRUE(text);
    ASSERT_NE(text->find(from), std::string::npos) << from;
    for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size())
      text->replace(at, from.size(), to);
    ASSERT_TRUE(writeFile(folder + "/" + file, *text).ok());
  };
  auto traceHash = [&] {
    Expected<std::string> text = readFile(folder + "/train_step.plan.json");
    Expected<Plan> plan = parsePlan("plan", *text);
    return formatHash(hashBytes(collectiveTrace(*plan)));
  };
  std::string before = traceHash();
  replace("train_step.plan.json", R"("unit": "embed")", R"("unit": "other")");
  for (const char *key : {"unit", "name"})
    replace("manifest.json", "\"" + std::string(key) + R"(": "embed")", "\"" + std::string(key) + R"(": "other")");
  replace("manifest.json", before, traceHash());
}

TEST_P(Training, RefusesAProgramThatIsNotRank0s) {
  std::string folder = temporary("spmd");
  if (makesFiles())
    makeOtherArtifact(tinyArtifact(GetParam(), 2), folder);
  onProcesses(2, [&] {
    // Which rank this process is says a trainer that loads.
    RanksHere ranks = load(2)->ranks();
    if (ranks.areAll())
      return;
    Expected<std::unique_ptr<Trainer>> trainer =
        Trainer::load(ranks.has(1) ? folder : tinyArtifact(GetParam(), 2), options());
    ASSERT_FALSE(trainer);
    EXPECT_EQ(trainer.error().message.rfind("rank 1 loaded another program than rank 0", 0), 0u)
        << trainer.error().message;
  });
}

TEST_P(Training, RefusesAnArtifactThatIsNotRank0s) {
  std::string folder = temporary("spmd");
  if (makesFiles()) {
    std::filesystem::copy(tinyArtifact(GetParam(), 2), folder, std::filesystem::copy_options::recursive);
    Expected<std::string> text = readFile(folder + "/manifest.json");
    ASSERT_TRUE(text && writeFile(folder + "/manifest.json", *text + "\n").ok());
  }
  onProcesses(2, [&] {
    RanksHere ranks = load(2)->ranks();
    if (ranks.areAll())
      return;
    Expected<std::unique_ptr<Trainer>> trainer =
        Trainer::load(ranks.has(1) ? folder : tinyArtifact(GetParam(), 2), options());
    ASSERT_FALSE(trainer);
    EXPECT_EQ(trainer.error().message.rfind("rank 1 loaded another artifact than rank 0: the hash of its manifest is ", 0), 0u)
        << trainer.error().message;
  });
}

TEST_P(Training, FaultsAreErrorsOnAllRanks) {
  auto begin = std::chrono::steady_clock::now();
  for (const char *fault : {"exit:1:0", "stall:1:0", "skip:1:0", "stall:0:3", "exit:0:19", "skip:1:32"})
    onProcesses(2, [&] {
      TinyBatch batch;
      TrainerOptions chosen = options();
      chosen.fault = fault;
      chosen.timeoutSeconds = 0.3;
      std::unique_ptr<Trainer> trainer = load(2, chosen);
      float loss;
      Status status = trainer->step(batch.inputs, 2);
      if (status.ok()) // it was issued
        status = trainer->readOutput(0, &loss, sizeof loss);
      EXPECT_EQ(status.code, StatusCode::Failed) << fault;
      EXPECT_GE(status.rank, 0) << fault << ": " << status.message;
      EXPECT_GE(status.command, 0) << fault << ": " << status.message;
      EXPECT_EQ(trainer->step(batch.inputs, 2).message, status.message) << "a failed trainer stays failed";
    });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(2));
}

TEST_P(Training, WatchdogFindsAStalledSingleRank) {
  onProcesses(1, [&] {
    TrainerOptions chosen = options();
    chosen.fault = "stall:0:2";
    chosen.timeoutSeconds = 1; // no command before it may take that long
    std::unique_ptr<Trainer> trainer = load(1, chosen);
    TinyBatch batch;
    float loss;
    Status status = trainer->step(batch.inputs, 2);
    if (status.ok())
      status = trainer->readOutput(0, &loss, sizeof loss);
    EXPECT_EQ(status.code, StatusCode::Failed);
    EXPECT_EQ(status.message, "no rank made progress within the time-out of 1 s: rank 0 is in command 2 (kernel "
                              "bias_relu); a rank that is only slow is given more time by spmd-run --timeout=SECONDS, "
                              "or timeout=SECONDS in Python");
  });
}

/// The rows [first, end) of the tiny batch.
struct TinyRows {
  TinyRows(int64_t first, int64_t end) {
    TinyBatch all;
    ids.assign(all.ids.begin() + first * 2, all.ids.begin() + end * 2);
    for (int64_t i = first * 3; i < end * 3; ++i)
      target.push_back(0.25f);
    idShape[0] = targetShape[0] = end - first;
  }
  std::vector<int64_t> ids;
  std::vector<float> target;
  int64_t idShape[2] = {0, 2}, targetShape[2] = {0, 3};
  HostTensor inputs[2] = {{nullptr, DType::I64, 2, idShape}, {nullptr, DType::F32, 2, targetShape}};
  HostTensor *tensors() {
    inputs[0].data = ids.data();
    inputs[1].data = target.data();
    return inputs;
  }
};

TEST_P(Training, ProcessesGiveTheirOwnRows) {
  // Rows as the ranks take them (2, 2, 2, 1 of 4), and others, down to none.
  for (std::vector<int64_t> ends : {std::vector<int64_t>{2, 4, 6, 7}, {1, 2, 3, 7}, {0, 7, 7, 7}, {3, 3, 6, 7}})
    onProcesses(4, [&] {
      std::vector<float> expected = trajectoryOf(*load(4));
      TrainerOptions chosen = options();
      chosen.batch = BatchOf::Process;
      std::unique_ptr<Trainer> trainer = load(4, chosen);
      RanksHere here = trainer->ranks();
      TinyRows rows(here.first ? ends[static_cast<size_t>(here.first) - 1] : 0,
                    ends[static_cast<size_t>(here.end()) - 1]);
      std::vector<float> found;
      for (int step = 0; step < 10; ++step) {
        ASSERT_TRUE(trainer->step(rows.tensors(), 2).ok());
        found.push_back(lossOf(*trainer));
      }
      for (float value : parameterOf(*trainer, "emb.weight"))
        found.push_back(value);
      EXPECT_EQ(found, expected);
    });
}

TEST_P(Training, ProcessesThatDifferAreRefusedAlike) {
  onProcesses(2, [&] {
    std::unique_ptr<Trainer> trainer = load(2);
    RanksHere here = trainer->ranks();
    if (here.areAll())
      return;
    bool isFirst = here.has(0);
    TinyBatch batch;
    std::vector<float> before = parameterOf(*trainer, "emb.weight");
    ASSERT_TRUE(trainer->setHyper("lr", 0, isFirst ? 0.1 : 0.2).ok());
    EXPECT_EQ(trainer->step(batch.inputs, 2).message,
              "rank 1 and rank 0 take the step with different values of lr of group 0: 0.2 and 0.1; every process must "
              "set the same");
    ASSERT_TRUE(trainer->setHyper("lr", 0, 0.1).ok());

    TinyBatch other;
    other.ids[0] = isFirst ? 0 : 1;
    EXPECT_EQ(trainer->step(other.inputs, 2).message,
              "rank 1 and rank 0 give different values of input 'x', which must be the same in every process");

    other.ids[0] = isFirst ? 0 : -1;
    std::string refused = trainer->step(other.inputs, 2).message;
    EXPECT_NE(refused.find("input 'x': value -1 at position [0, 0] is not a row id"), std::string::npos) << refused;
    EXPECT_EQ(refused.find("rank 1: ") == 0, isFirst) << refused;
    EXPECT_EQ(parameterOf(*trainer, "emb.weight"), before) << "nothing has run";

    float values[5] = {1, 2, 3, 4, 5};
    ASSERT_TRUE(trainer->writeTensor("param", "fc1.bias", values, sizeof values).ok());
    EXPECT_TRUE(trainer->step(batch.inputs, 2).ok());
    values[4] += isFirst ? 0 : 1;
    ASSERT_TRUE(trainer->writeTensor("param", "fc1.bias", values, sizeof values).ok());
    refused = trainer->step(batch.inputs, 2).message;
    EXPECT_NE(refused.find("wrote param 'fc1.bias', this process another value"), std::string::npos) << refused;
    (void)trainer->largestOfAll(0); // not before the other has been refused
    values[0] = 9;
    if (isFirst)
      ASSERT_TRUE(trainer->writeTensor("param", "fc1.bias", values, sizeof values).ok());
    refused = trainer->step(batch.inputs, 2).message;
    EXPECT_NE(refused.find("wrote param 'fc1.bias', this process did not"), std::string::npos) << refused;
    EXPECT_TRUE(trainer->step(batch.inputs, 2).ok());
  });
}

TEST_P(Training, AReadWaitsForWhatOthersWrite) {
  onProcesses(4, [&] {
    std::unique_ptr<Trainer> trainer = load(4);
    if (!trainer->readsAlone() || trainer->ranks().areAll())
      return;
    bool isFirst = trainer->ranks().has(0);
    TinyBatch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    std::vector<float> values = parameterOf(*trainer, "emb.weight");
    (void)trainer->largestOfAll(0); // nobody writes what another still reads
    auto write = [&] {
      return trainer->writeTensor("param", "emb.weight", values.data(), values.size() * sizeof(float)).ok();
    };
    for (int round = 0; round < 2; ++round) {
      for (float &value : values)
        value += 1;
      if (!isFirst)
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ASSERT_TRUE(write());
      EXPECT_EQ(parameterOf(*trainer, "emb.weight"), values);
      (void)trainer->largestOfAll(0);
    }
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());

    // What a process has left out nobody waits for once it is where all meet; that is an error there, and behind it
    // writes are waited for as before.
    values.assign(values.size(), 2);
    if (isFirst)
      for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(write());
        (void)parameterOf(*trainer, "emb.weight");
      }
    EXPECT_FALSE(trainer->step(batch.inputs, 2).ok());
    if (!isFirst)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    values.assign(values.size(), 3);
    ASSERT_TRUE(write());
    EXPECT_EQ(parameterOf(*trainer, "emb.weight"), values);
    EXPECT_TRUE(trainer->step(batch.inputs, 2).ok());
  });
}

TEST_P(Training, AWriteOfAProcessThatHasEndedIsNotWaitedFor) {
  if (GetParam().endsAll)
    return;
  auto begin = std::chrono::steady_clock::now();
  onProcesses(4, [&] {
    std::unique_ptr<Trainer> trainer = load(4);
    if (!trainer->readsAlone() || trainer->ranks().areAll())
      return;
    TinyBatch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    std::vector<float> values = parameterOf(*trainer, "emb.weight");
    (void)trainer->largestOfAll(0);
    if (!trainer->ranks().has(0)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ::_exit(0);
    }
    ASSERT_TRUE(trainer->writeTensor("param", "emb.weight", values.data(), values.size() * sizeof(float)).ok());
    Status status = trainer->readTensor("param", "emb.weight", values.data(), values.size() * sizeof(float));
    // In arenas that all map nothing is waited for.
    if (!status.ok())
      EXPECT_NE(status.message.find("ended without a word"), std::string::npos) << status.message;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

TEST_P(Training, AProcessReadsAlone) {
  onProcesses(4, [&] {
    std::unique_ptr<Trainer> trainer = load(4);
    if (!trainer->readsAlone())
      return;
    TinyBatch batch;
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    if (trainer->ranks().has(1))
      (void)parameterOf(*trainer, "emb.weight");
    ASSERT_TRUE(trainer->step(batch.inputs, 2).ok());
    if (trainer->ranks().has(0))
      EXPECT_TRUE(trainer->saveAlone(temporary("alone"), true).ok());
    EXPECT_TRUE(trainer->step(batch.inputs, 2).ok());
  });
}
