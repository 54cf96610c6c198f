//===- Processes.h - One of several processes of a job ------------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMDRUN_PROCESSES_H
#define SPMD_TOOLS_SPMDRUN_PROCESSES_H

#include "spmd/Runtime/Process/Launch.h"
#include "spmd/Runtime/Train/Trainer.h"

namespace spmd::runtime {

/// Finds out which process this is and sets `trainer` up for it: how ranks reach each other, and how many of the
/// threads are its own. Processes that are not in `logRanks` ("0,3" or "all") print nothing from here on.
/// `isLogged`: whether this one is in them.
Expected<Launch> enterJob(const LaunchOptions &options, const std::string &logRanks, TrainerOptions &trainer,
                          bool &isLogged);

} // namespace spmd::runtime

#endif // SPMD_TOOLS_SPMDRUN_PROCESSES_H
