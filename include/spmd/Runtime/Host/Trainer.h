//===- Trainer.h - A loaded artifact that trains ------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_TRAINER_H
#define SPMD_RUNTIME_HOST_TRAINER_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/StateMap.h"
#include "spmd/Runtime/Host/Executor.h"
#include "spmd/Runtime/Host/RankMemory.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spmd::runtime {

class Trainer;

struct TrainerOptions {
  int64_t ranks = 0;   ///< 0: what the artifact was compiled for
  int64_t threads = 0; ///< of all ranks together; 0: one per core
  double timeoutSeconds = 60;
  std::string weights; ///< safetensors; empty: the artifact's own, if any
  std::string cpu;     ///< "x86-64-v3"; empty: the best this machine runs
  std::string fault;   ///< see parseFault; empty: none
  std::string emulation; ///< how emulated kernels run, see Emulation::configure
  bool profile = false; ///< note when each command runs
  /// The trainer whose state the new one trains too, as another program; null:
  /// a state of its own. Both artifacts must lay the state out alike. Weights
  /// are then read for constants only, which must be the same.
  const Trainer *shares = nullptr;
};

/// A dense row-major tensor of the caller.
struct HostTensor {
  const void *data = nullptr;
  DType dtype = DType::F32;
  int32_t rank = 0;
  const int64_t *shape = nullptr;
};

/// All ranks of an artifact in this process. Not for several threads at once,
/// and of trainers that share a state one at a time.
class Trainer {
public:
  /// Loads, checks and starts everything; the state is that of the weights.
  static Expected<std::unique_ptr<Trainer>> load(const std::string &folder, const TrainerOptions &options);
  ~Trainer();

  const Artifact &artifact() const { return content->artifact; }
  const Manifest &manifest() const { return content->artifact.manifest; }
  const StateMap &state() const { return content->state; }
  int64_t threads() const { return numThreads; }
  const std::string &cpu() const { return content->kernels.cpu(); }
  /// What runs the kernels of an artifact for an emulated GPU, else null.
  const Emulation *emulation() const { return std::as_const(content->kernels).emulation(); }

  /// Sets a hyper-parameter for the following steps.
  Status setHyper(const std::string &name, int64_t group, double value);

  /// The value in effect of a hyper-parameter, by the manifest's order.
  double hyperValue(size_t index) const { return hyper[index]; }

  /// Trains one step on a global batch: one tensor per batch input, in the
  /// manifest's order. Dtypes, shapes and row ids are checked before anything
  /// runs, so a refused batch leaves the state as it was.
  Status step(const HostTensor *inputs, size_t count);

  /// Copies an output of the latest step. Of one that every rank has for itself: the mean of floating numbers (losses),
  /// else that of rank 0.
  Status readOutput(size_t index, void *destination, size_t bytes) const;

  /// Copy a full tensor of the state out or in, by any of its names.
  Status readTensor(const std::string &state, const std::string &name, void *destination, size_t bytes) const;
  Status writeTensor(const std::string &state, const std::string &name, const void *source, size_t bytes);

  /// Saves full parameters and persistent buffers under all their names (a
  /// tied one several times, since safetensors cannot share), with
  /// `withOptimizer` the optimizer state too, as "optimizer/STATE/NAME".
  Status save(const std::string &path, bool withOptimizer) const;

  /// When each command ran; null unless it was asked for.
  const Profile *profile() const { return content->profile.get(); }

private:
  /// What threads refer to; left behind when one of them hangs for good.
  struct Content {
    explicit Content(Artifact loaded) : artifact(std::move(loaded)), state(artifact.manifest) {}
    Artifact artifact;
    StateMap state;
    KernelLibrary kernels;
    std::shared_ptr<RankMemory> memory;
    std::unique_ptr<Profile> profile; ///< null when none is asked for
    std::unique_ptr<Executor> executor;

    const std::vector<char *> &bases() const { return memory->bases(); }
  };

  Trainer() = default;
  Status loadFirstStep(const std::string &folder, TrainerOptions options);
  Status initializeState(const TrainerOptions &options);
  Status shareState(const Trainer &other, const SafetensorsFile *weights);
  Status startRanks();
  Status checkInput(const BatchInput &input, const HostTensor &tensor) const;
  Status locate(const std::string &state, const std::string &name, size_t bytes, const StateTensor *&tensor) const;

  std::unique_ptr<Content> content;
  /// The program of a first step that differs from all later ones, on the same state: until it has run, and its outputs
  /// with it until the next step. Null when there is none, or the state is that of a later step.
  std::unique_ptr<Trainer> first;
  bool ranFirst = false;
  bool startsCold = false; ///< the weights hold no optimizer state
  std::vector<double> hyper; ///< current values, in the manifest's order
  int64_t numThreads = 1;
  ExecutorOptions executorOptions;
  int64_t generation = 0; ///< of the memory that the ranks were started on
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_TRAINER_H
