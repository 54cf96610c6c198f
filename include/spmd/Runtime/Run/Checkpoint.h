//===- Checkpoint.h - A run that can go on -----------------------*- C++ -*-===//
//
// A folder of checkpoints has a folder for each, "step-00000100", with
//   state.safetensors   parameters, buffers, optimizer state, random-number counters, whole, under PyTorch's names
//   run.json            the steps taken, the data and its seed, the schedule, size and hash of the other file, and its own
// A checkpoint is written beside its place, brought to the disk, and renamed: it is there whole or not at all.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_RUN_CHECKPOINT_H
#define SPMD_RUNTIME_RUN_CHECKPOINT_H

#include "spmd/Runtime/Run/DataSet.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// What a run needs to go on, beside the state of the trainer.
struct RunState {
  int64_t step = 0; ///< steps taken since the run's first
  DataOptions data;
  std::string schedule; ///< see Schedule.h; empty: none
};

struct Checkpoint {
  std::string folder;
  RunState run;
  /// Newer ones that are damaged, and why.
  std::vector<std::string> notices;

  std::string weights() const { return folder + "/state.safetensors"; }
};

/// A folder in which a run keeps its checkpoints.
class CheckpointFolder {
public:
  /// Makes the folder if it is not there; checks that it can be written.
  static Expected<CheckpointFolder> create(const std::string &path);

  /// Saves a checkpoint of the run, and removes the oldest but `keep` (0: none). Where a job has several processes, all
  /// call this, and that of rank 0 writes. Returns the checkpoint's folder.
  Expected<std::string> save(const Trainer &trainer, const RunState &run, int64_t keep) const;

  /// The step of the newest checkpoint; -1 without any.
  int64_t latestStep() const;

  /// The newest checkpoint in `path` that is whole; `path` may be a checkpoint itself.
  static Expected<Checkpoint> findLatest(const std::string &path);

private:
  explicit CheckpointFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_CHECKPOINT_H
