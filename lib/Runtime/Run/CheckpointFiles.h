//===- CheckpointFiles.h - One checkpoint's files ----------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_RUN_CHECKPOINTFILES_H
#define SPMD_LIB_RUNTIME_RUN_CHECKPOINTFILES_H

#include "spmd/Runtime/Run/Checkpoint.h"

namespace spmd::runtime {

inline std::string stateFileName() { return "state.safetensors"; }
std::string rankFileName(int64_t rank);

/// Writes index.json and run.json beside the data `files` of all processes. Without a `trainer`: of another program's
/// state, of kind full.
Status describeCheckpoint(const Trainer *trainer, const RunState &run, const CheckpointOptions &options,
                          std::vector<CheckpointFile> files, const std::string &folder);

/// Reads run.json and the index of a checkpoint, which must be what their hashes say; of the other files nothing.
Expected<Checkpoint> openCheckpoint(const std::string &folder);

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_RUN_CHECKPOINTFILES_H
