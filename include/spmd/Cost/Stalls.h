//===- Stalls.h - Why the compute stream has nothing to do --------*- C++ -*-===//

#ifndef SPMD_COST_STALLS_H
#define SPMD_COST_STALLS_H

#include "spmd/Cost/Simulation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spmd::cost {

/// Why the awaited command did not start earlier.
enum class StallCause {
  StepBegin, ///< the stall begins earlier in the step than the awaited command takes
  Gate,      ///< its stream waited for a command of another stream, `blocker`
  Queue,     ///< another command of its stream, `blocker`, ran before it
};

const char *nameOf(StallCause cause);

struct Stall {
  int32_t wait = -1;    ///< the command of the compute stream; -1: the end of the step
  int32_t awaited = -1; ///< what it waits for
  double begin = 0, seconds = 0;
  StallCause cause = StallCause::StepBegin;
  int32_t blocker = -1;
  /// The step is this much shorter if the awaited command takes no time.
  double gain = 0;
};

/// Stalls of the compute stream that last at least `least` seconds, in the order of the step.
std::vector<Stall> findStalls(const CommandList &commands, const Prices &prices, const Simulation &simulation,
                              double least = 1e-4);

} // namespace spmd::cost

#endif // SPMD_COST_STALLS_H
