//===- Simulation.h - When the commands of a step run -------------*- C++ -*-===//
//
// A fluid simulation of one rank. Commands of a stream run in order; a wait holds its stream until the awaited command
// ends; commands that run at the same time share their resource equally. Equal input gives equal results to the bit.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_COST_SIMULATION_H
#define SPMD_COST_SIMULATION_H

#include "spmd/Cost/CommandList.h"
#include "spmd/Cost/Prices.h"

#include <array>
#include <vector>

namespace spmd::cost {

/// What a stream waits for before its first command of a step.
enum class StepBoundary {
  AllStreams, ///< all streams have ended the step before, as the runtime has it
  OwnStream,  ///< only the stream itself: what an overlap of two steps could give at most
};

struct SimulationOptions {
  int32_t steps = 2; ///< the last one is reported
  StepBoundary boundary = StepBoundary::AllStreams;
};

/// Of the last step. Times are seconds after the step before has ended.
struct Simulation {
  double step = 0; ///< from the end of the step before to the end of this one
  /// A wait starts when its stream reaches it and ends with the command that it awaits.
  std::vector<double> start, end;
  /// Work that each resource has done, in seconds alone.
  std::array<double, kNumResources> served{};
};

/// Waits are for earlier commands (the certificate has checked that), so the simulation ends.
Simulation simulate(const CommandList &commands, const Prices &prices, const SimulationOptions &options = {});

/// The longest chain of commands, by streams and waits, of their prices alone: no simulation is shorter.
double criticalPath(const CommandList &commands, const Prices &prices);

/// The stream with the most seconds of kernels.
int32_t computeStream(const CommandList &commands, const Prices &prices);

} // namespace spmd::cost

#endif // SPMD_COST_SIMULATION_H
