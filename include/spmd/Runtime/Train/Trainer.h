//===- Trainer.h - A loaded artifact that trains ------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_TRAINER_H
#define SPMD_RUNTIME_TRAIN_TRAINER_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Train/Backend.h"
#include "spmd/Runtime/Train/FiniteWatch.h"
#include "spmd/Runtime/Train/FlightRecord.h"
#include "spmd/Runtime/Train/InputBlock.h"
#include "spmd/Runtime/Train/Profile.h"
#include "spmd/Runtime/Train/StateMap.h"
#include "spmd/Runtime/Train/StateSnapshot.h"
#include "spmd/Runtime/Train/StepAgreement.h"
#include "spmd/Runtime/Train/StepBatch.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spmd::runtime {

class Trainer;

struct TrainerOptions {
  int64_t ranks = 0;   ///< 0: what the artifact was compiled for
  int64_t threads = 0; ///< of all ranks of this process together; 0: one per core
  double timeoutSeconds = 60;
  std::string weights;        ///< safetensors; empty: the artifact's own, if any
  bool isLoadedNext = false;  ///< what a checkpoint has may be missing: loadState() comes before the first step
  bool isWrittenNext = false; ///< whatever is missing is zero: the caller writes it before the first step
  DeviceOptions device;
  std::string communicators;    ///< how ranks reach each other; empty: as the device likes it
  std::string fault;            ///< see parseFault; empty: none
  std::string flightRecord;     ///< a folder, for a file of each rank when a step fails; empty: none
  bool profile = false;         ///< note when each command runs
  bool checkFinite = false;     ///< look at what each command writes, for firstNotFinite(); nothing on GPUs
  BatchOf batch = BatchOf::Job; ///< what each process gives to a step
  /// The trainer whose state the new one trains too, as another program; null:
  /// a state of its own. Both artifacts must lay the state out alike. Weights
  /// are then read for constants only, which must be the same.
  const Trainer *shares = nullptr;
};

/// The ranks of an artifact that this process holds. Not for several threads at once, and of trainers that share a
/// state one at a time. Where a job has several processes, all of them make the same calls in the same order; what only
/// reads is for each alone where readsAlone() says so.
class Trainer {
public:
  /// Loads, checks and starts everything; the state is that of the weights.
  static Expected<std::unique_ptr<Trainer>> load(const std::string &folder, const TrainerOptions &options);
  ~Trainer();

  const Artifact &artifact() const { return content->artifact; }
  const Manifest &manifest() const { return content->artifact.manifest; }
  const StateMap &state() const { return content->state; }
  const RanksHere &ranks() const { return content->ranks; }
  int64_t threads() const { return numThreads; }
  const Device &device() const { return *content->device; }

  /// What a user of the weights should know: tensors without a place, a state that they leave out.
  const std::vector<std::string> &warnings() const { return notices; }

  /// Sets a hyper-parameter for the following steps.
  Status setHyper(const std::string &name, int64_t group, double value);

  /// The value in effect of a hyper-parameter, by the manifest's order.
  double hyperValue(size_t index) const { return hyper[index]; }

  /// Trains one step on a batch (TrainerOptions::batch): one tensor per batch input, in the manifest's order. Dtypes,
  /// shapes and row ids are checked before anything runs, and what processes must have alike is compared, so a refused
  /// batch leaves the state as it was. `device`: where tensors are that are not on the host.
  Status step(const HostTensor *inputs, size_t count, const DeviceBatch *device = nullptr);

  /// Copies an output of the latest step. Of one that every rank has for itself: the mean of floating numbers (losses),
  /// else that of rank 0.
  Status readOutput(size_t index, void *destination, size_t bytes) const;

  /// The same of the step `ago` before the latest, of stepsKept(); later ones are not waited for. One that is over can
  /// be read when a later one has failed.
  Status readOutput(size_t index, void *destination, size_t bytes, int64_t ago) const;
  /// Of how many of the last steps an output can be read; on a CPU of one.
  int64_t stepsKept(size_t index) const;

  /// Whether a rank's arena has all of an output, so that copyOutput() takes it.
  bool isOutputWhole(size_t index) const;

  /// The same as readOutput() and readTensor() for memory at the place of the one rank here, without the host, behind
  /// what `stream` has and the steps that were issued, and before what `stream` gets later. These are not waited for:
  /// that one has failed is an error of a later call.
  Status copyOutput(size_t index, void *destination, size_t bytes, CallerStream stream) const;
  Status copyTensor(const std::string &state, const std::string &name, void *destination, size_t bytes,
                    CallerStream stream) const;
  /// Whether the one rank here has all of a tensor of the state, so that copyTensor() takes it.
  bool isTensorWhole(const std::string &state, const std::string &name) const;

  /// Where a rank here computes.
  Place placeOf(int64_t rank) const { return content->memory().placeOf(rank); }
  /// Copies between its arena and memory at its place; null where that is the host.
  Expected<DeviceCopies *> copiesOf(int64_t rank) const { return content->memory().copiesOf(rank); }

  /// The number of the next step, for records of failures; 0 when it was loaded.
  void setStepNumber(int64_t step) { content->shared->steps = step; }

  /// When a step has failed: what each rank here was doing, in a line for each. Else empty.
  std::string describeFlight() const { return content->shared->recorder.text(); }

  /// Whether a process reads outputs and state alone, as all can look at each other's memory.
  bool readsAlone() const { return content->ranks.areAll() || content->shared->processes->readsAlone(); }

  /// Copy a full tensor of the state out or in, by any of its names.
  Status readTensor(const std::string &state, const std::string &name, void *destination, size_t bytes) const;
  Status writeTensor(const std::string &state, const std::string &name, const void *source, size_t bytes);

  /// Saves full parameters and persistent buffers under all their names (a
  /// tied one several times, since safetensors cannot share), with
  /// `withOptimizer` the optimizer state too, as "optimizer/STATE/NAME". All
  /// processes call it, the one of rank 0 writes the file. The largest tensor is
  /// all that is in memory of it.
  Status save(const std::string &path, bool withOptimizer, StateSnapshot *from = nullptr) const;

  /// The same by this process alone; an error where it cannot read alone.
  Status saveAlone(const std::string &path, bool withOptimizer) const;

  /// What `rank` writes into a checkpoint of a file for each rank, and writing that of a rank here: a safetensors file
  /// with the elements that it has of each tensor as one row, in this order. At most a megabyte of it is in memory.
  std::vector<StatePiece> piecesToSave(int64_t rank, const StateSnapshot *from = nullptr) const;

  Status saveRank(int64_t rank, const std::string &path, const StateSnapshot *from = nullptr) const;

  /// Copies the state of the ranks here as it is after the steps that were issued. Saving `from` it
  /// looks at nothing that a step changes, so another thread may.
  Status takeSnapshot(StateSnapshot &into) const;
  /// Copies a piece of a rank here out.
  Status readPiece(int64_t rank, const StatePiece &piece, void *destination) const;

  /// Waits until the steps of all processes are done.
  Status settle() const;

  /// Of states that are sums of what ranks have, makes the first rank have all, as they are once they have been loaded:
  /// a run that goes on behind a checkpoint has the bits of one that resumes from it. All processes call it.
  Status gatherSums() const;

  /// Loading a state: whether it fits (StateMap::compare), whether what the ranks here take of it is whole, and taking
  /// it. Only the last one changes anything; each process does it for its ranks.
  Status compareState(const StateSource &source, bool strict) const;
  Status checkState(const StateSource &source) const;
  Status loadState(const StateSource &source);

  /// The largest of what the processes of the job give, in all of them: for decisions that all must make alike.
  Expected<int64_t> largestOfAll(int64_t value) const;

  /// An error of one process is one of all, and all have come as far.
  Status agreeOn(const Status &status) const;

  /// The text of every process of the job, by process.
  Expected<std::vector<std::string>> gatherText(const std::string &mine) const;

  /// When each command ran; null unless it was asked for.
  const Profile *profile() const { return content->profile.get(); }

  /// What gave the first infinity and the first nan of the last step, on the ranks here: rank, command and line. Ok
  /// where there are none, and where it was not asked for.
  Status firstNotFinite() const;

private:
  /// The state that several programs may train.
  struct SharedState {
    std::shared_ptr<const Backend> backend;
    std::shared_ptr<CommunicatorFactory> processes;
    std::unique_ptr<RankMemory> memory;
    FlightRecorder recorder;
    AbortState abort;           ///< of all its programs, in all processes
    int64_t steps = 0;          ///< that were issued
    WrittenTensors written;     ///< since the last step
    Executor *issued = nullptr; ///< whose steps may still run
    Status failure;             ///< why the state is lost: a step failed in the middle

    SharedState() = default;
    SharedState(const SharedState &) = delete;
    SharedState &operator=(const SharedState &) = delete;
    ~SharedState() {
      if (memory)
        processes->stopReading(abort);
    }

    /// Waits for the steps that were issued. A failure that is known already is not reported again, so that what is
    /// left of the state can be read.
    Status settle();

    /// Of a step: a failure loses the state, and is recorded. What a bad value of a step makes of it (SPMD_BAD_INPUT)
    /// is nothing.
    Status note(Status status);

    /// Settles, and reads by `body` from all ranks; a failure of a step that ends it is one of the state. What others
    /// write of the state is waited for for `forWrites`, if it is read.
    template <typename Body>
    Status read(const Body &body, std::optional<std::chrono::steady_clock::duration> forWrites = {});
  };

  /// What threads refer to; left behind when one of them hangs for good.
  struct Content {
    explicit Content(Artifact loaded) : artifact(std::move(loaded)), state(artifact.manifest) {}
    Artifact artifact;
    StateMap state;
    RanksHere ranks;
    std::unique_ptr<Device> device;
    std::shared_ptr<CommunicatorFactory> communicators; ///< the device's, among the processes
    std::shared_ptr<SharedState> shared;
    std::unique_ptr<StepBatch> batch;
    InputBlock inputs;
    std::unique_ptr<Profile> profile;    ///< null when none is asked for
    std::unique_ptr<FiniteWatch> finite; ///< likewise
    std::unique_ptr<Executor> executor;

    RankMemory &memory() const { return *shared->memory; }
    RankAccess access() const { return {*shared->memory, *shared->processes, shared->abort}; }
  };

  Trainer() = default;
  static Expected<std::unique_ptr<Trainer>> start(Artifact artifact, const TrainerOptions &options);
  Status startFirstStep(TrainerOptions options);
  Status join(std::shared_ptr<const Backend> backend, const Status &opened, const TrainerOptions &options);
  Status compareProcesses(uint64_t hash, const std::string &what);
  Status initializeState(const TrainerOptions &options);
  void noteGaps(const SafetensorsFile &weights);
  Status shareState(const Trainer &other, const SafetensorsFile *weights);
  Status startRanks();
  bool stopRanks();
  bool hasOptimizerState() const;
  Status writeState(const std::string &path, bool withOptimizer, bool writes, StateSnapshot *from = nullptr) const;
  /// How long the processes wait for each other between steps.
  std::chrono::steady_clock::duration patience() const;
  template <typename Body>
  Status readState(const Body &body) const {
    return content->shared->read(body, patience());
  }
  StepAgreement agreement() const;
  Status agreeOnStep(Status problem);
  Status passInputs();
  Status passHyper(RankMemory &memory, int64_t rank);
  Status gatherOutput(const Output &output, void *destination) const;
  bool hasLatest(size_t index) const;
  /// The mean of what read(rank, value) gives.
  template <typename Read>
  Status meanOfRanks(const Output &output, void *destination, const Read &read) const;
  template <typename Body>
  Status copyOnDevice(const std::string &what, CallerStream stream, const Body &body) const;
  Status locate(const std::string &state, const std::string &name, size_t bytes, const StateTensor *&tensor) const;

  std::unique_ptr<Content> content;
  /// The program of a first step that differs from all later ones, on the same state: until it has run, and its outputs
  /// with it until the next step. Null when there is none, or the state is that of a later step.
  std::unique_ptr<Trainer> first;
  bool ranFirst = false;
  bool startsCold = false; ///< the weights hold no optimizer state
  std::vector<std::string> notices;
  std::vector<double> hyper; ///< current values, in the manifest's order
  int64_t numThreads = 1;
  ExecutorOptions executorOptions;
  int64_t generation = 0; ///< of the memory that the ranks were started on
  int64_t issuedHere = 0; ///< steps of them
};

template <typename Body>
Status Trainer::SharedState::read(const Body &body, std::optional<std::chrono::steady_clock::duration> forWrites) {
  if (Status status = settle(); !status.ok())
    return status;
  // What is left after a failure can be read as it is.
  if (failure.ok()) {
    Status status = processes->awaitSteps(abort);
    if (status.ok() && forWrites)
      status = processes->awaitWrites(abort, *forWrites);
    if (!status.ok())
      return failure = recorder.report(std::move(status));
  }
  Status status = body();
  if (!status.ok() && failure.ok() && abort.isRaised())
    failure = recorder.report(abort.status());
  return status;
}

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_TRAINER_H
