//===- BackgroundSave.h - Checkpoints that no step waits for -----*- C++ -*-===//

#ifndef SPMD_RUNTIME_RUN_BACKGROUNDSAVE_H
#define SPMD_RUNTIME_RUN_BACKGROUNDSAVE_H

#include "spmd/Runtime/Run/Checkpoint.h"

#include <future>
#include <optional>

namespace spmd::runtime {

/// Writes checkpoints of a trainer, which outlives it, from a copy of the state while the ranks go on: one at a time. Each
/// process of a job writes what its ranks have, and when all are through the checkpoint gets its name.
class BackgroundSave {
public:
  /// Takes the memory of the copy.
  explicit BackgroundSave(const Trainer &trainer);
  /// Waits for what is being written. It gets its name where the job has one process; else it must have been finished.
  ~BackgroundSave();

  /// Of the copy.
  int64_t bytes() const { return snapshot.totalBytes(); }

  /// Copies the state as it is after the steps that were issued, and begins to write; first finishes what is pending. Of
  /// several processes all call this, with a file for each rank: one that writes everything would need the others'
  /// copies.
  Status start(const CheckpointFolder &folder, RunState run, CheckpointOptions options);

  bool isPending() const { return writing.valid(); }

  /// Gives the pending checkpoint its name: when it is written (`waits`), or only if all have written it. All processes
  /// call this. Returns its folder; nothing when none is pending, or it is still being written.
  Expected<std::string> finish(bool waits);

private:
  const Trainer &trainer;
  StateSnapshot snapshot;
  std::optional<CheckpointFolder> folder;
  CheckpointFolder::Saving saving;
  std::future<Expected<std::string>> writing;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_BACKGROUNDSAVE_H
