//===- Options.h - The command line of spmd-run ------------------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMDRUN_OPTIONS_H
#define SPMD_TOOLS_SPMDRUN_OPTIONS_H

#include "Check.h"
#include "spmd/Runtime/Process/Launch.h"
#include "spmd/Runtime/Run/DataSet.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace spmd::runtime {

struct Arguments {
  std::string artifact;
  int64_t steps = 0; ///< since the run's first; 0: as many as the reference has, or an epoch of the data
  bool check = false, checkFinite = false, quiet = false;
  Tolerances tolerances;
  DataOptions data;
  std::string schedule, log;
  std::string save; ///< NAME.safetensors, or a folder of checkpoints
  bool savesBeside = false; ///< a copy is written while the run goes on
  std::string saveKind; ///< empty: full
  int64_t saveEvery = 0, keep = 0;
  std::string resume;
  bool strict = true; ///< what is resumed must have all of the state, and nothing else
  std::string evaluation, validation; ///< an artifact, and its data
  int64_t evalEvery = 0, evalSteps = 0;
  std::optional<double> peakFlops; ///< of all ranks together, for MFU
  std::optional<int64_t> seed;
  std::string profile; ///< empty: none; "-": the table; else a file for the trace too
  TrainerOptions trainer;
  LaunchOptions launch;
  std::string logRanks = "0";

  bool savesFile() const;
  bool savesCheckpoints() const { return !save.empty() && !savesFile(); }
};

/// Adds everything spmd-run understands to `app`.
void defineOptions(CLI::App &app, Arguments &arguments);

/// What is wrong with options together.
Status checkOptions(const Arguments &arguments);

} // namespace spmd::runtime

#endif // SPMD_TOOLS_SPMDRUN_OPTIONS_H
