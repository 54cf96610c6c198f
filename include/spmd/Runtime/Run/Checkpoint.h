//===- Checkpoint.h - A run that can go on -----------------------*- C++ -*-===//
//
// A folder of checkpoints has a folder for each, "step-00000100", with
//   state.safetensors        kind full: parameters, buffers, optimizer state, random-number counters, whole, under
//                            PyTorch's names
//   rank-00000.safetensors   kind sharded: a file for each rank with the elements that it has of each tensor, and what
//                            all have alike in that of rank 0
//   index.json               where the elements of each tensor are, and hashes of the files' blocks (CheckpointIndex.h)
//   run.json                 the steps taken, the data and its seed, the schedule, learning rates; the hash of the
//                            index, and its own
// and files that the caller adds. A checkpoint is written beside its place, brought to the disk, and renamed: it is
// there whole or not at all.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_RUN_CHECKPOINT_H
#define SPMD_RUNTIME_RUN_CHECKPOINT_H

#include "spmd/Runtime/Run/CheckpointIndex.h"
#include "spmd/Runtime/Run/DataSet.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

enum class CheckpointKind { Full, Sharded };

/// "full" or "sharded".
const char *nameOf(CheckpointKind kind);
std::optional<CheckpointKind> parseCheckpointKind(const std::string &name);

/// What a run needs to go on, beside the state of the trainer.
struct RunState {
  struct Rate {
    std::string name;
    int64_t group = 0;
    double value = 0;
  };

  int64_t step = 0; ///< steps taken since the run's first
  DataOptions data;
  std::string schedule;     ///< see Schedule.h; empty: none
  std::string notes = "{}"; ///< a JSON value of the caller's
  std::vector<Rate> rates;  ///< hyper-parameters in effect; filled in when it is saved

  /// Sets the hyper-parameters that the step has as inputs to what they were.
  void applyRates(Trainer &trainer) const;
};

struct Checkpoint {
  std::string folder;
  CheckpointKind kind = CheckpointKind::Full;
  RunState run;
  std::string text; ///< run.json
  std::shared_ptr<const CheckpointState> state;
  /// Newer ones that are damaged, and why.
  std::vector<std::string> notices;
};

struct CheckpointOptions {
  /// What is saved instead of the state as it is; then a thread may write while the trainer goes on. Of kind full for a
  /// job of one process.
  StateSnapshot *from = nullptr;
  CheckpointKind kind = CheckpointKind::Full;
  int64_t keep = 0; ///< the newest so many stay; 0: all
  /// Further files of this process: name, content. Of two processes they have different names.
  std::vector<std::pair<std::string, std::string>> files;
};

/// A folder in which a run keeps its checkpoints.
class CheckpointFolder {
public:
  /// Makes the folder if it is not there; checks that it can be written.
  static Expected<CheckpointFolder> create(const std::string &path);

  /// Saves a checkpoint of the run, in place of one of the same step, and removes the oldest but `keep`. Where a job
  /// has several processes, all call this; of kind full that of rank 0 writes, else each for its ranks, into one folder
  /// that all of them see. In memory is at most the largest tensor. Returns the checkpoint's folder.
  Expected<std::string> save(const Trainer &trainer, RunState run, const CheckpointOptions &options) const;

  /// The parts of save(). begin() and complete() are called by all processes together. write() writes the files of this
  /// process, and returns what they are; with `options.from` and a file for each rank it is no other process's matter.
  struct Saving {
    RunState run;
    CheckpointOptions options;
    std::string target, temporary;
  };
  Expected<Saving> begin(const Trainer &trainer, RunState run, CheckpointOptions options) const;
  static Expected<std::string> write(const Trainer &trainer, const Saving &saving);
  Expected<std::string> complete(const Trainer &trainer, const Saving &saving, const Expected<std::string> &own) const;

  /// Makes a checkpoint, of kind full, of what another program has trained: `weights` is a safetensors file with
  /// tensors under the names that they have in state.safetensors.
  Expected<std::string> import(const std::string &weights, const RunState &run) const;

  /// The step of the newest checkpoint; -1 without any.
  int64_t latestStep() const;

  /// The newest checkpoint in `path` that is whole, of which every byte was looked at; `path` may be a checkpoint
  /// itself.
  static Expected<Checkpoint> findLatest(const std::string &path);

  /// Loads the newest checkpoint in `path` that is whole into the ranks, of which each reads only the blocks that have
  /// its bytes. One that does not fit is an error (Trainer::compareState), and nothing has changed then. All processes
  /// of a job call this.
  /// The counter of random numbers follows the steps taken where the checkpoint is of another program.
  static Expected<Checkpoint> restore(const std::string &path, Trainer &trainer, bool strict);

private:
  explicit CheckpointFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_CHECKPOINT_H
