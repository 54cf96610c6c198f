//===- TimeReport.h - A modelled step, for people -----------------*- C++ -*-===//

#ifndef SPMD_COST_TIMEREPORT_H
#define SPMD_COST_TIMEREPORT_H

#include "spmd/Cost/Stalls.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spmd::cost {

/// What a step takes on a machine. All times are modelled, in seconds.
struct TimeReport {
  struct Class {
    std::string name;
    int64_t commands = 0, bytes = 0, flops = 0;
    double alone = 0;   ///< sum of the prices
    double running = 0; ///< from start to end, with what they share
  };
  struct Stream {
    std::string name;
    int64_t commands = 0;
    double running = 0, waiting = 0;
  };
  /// The collectives of a shard unit.
  struct Unit {
    std::string name;
    int64_t collectives = 0, bytes = 0;
    double running = 0;
    double stalls = 0; ///< the compute stream waits for them
  };
  struct Stall {
    double begin = 0, seconds = 0, gain = 0;
    int64_t wait = -1, awaited = -1; ///< numbers of the plan; -1: the end of the step
    std::string place;               ///< of the wait: module and line
    std::string cause, remedy;
  };

  std::string step, target, machine, network;
  int64_t ranks = 1;
  double seconds = 0, kernels = 0, idle = 0, criticalPath = 0;
  int64_t flops = 0;
  double atPeak = 0; ///< seconds of the FLOPs at the peaks of their dtypes
  std::vector<Class> classes;
  std::vector<Stream> streams;
  std::vector<Unit> units;
  std::vector<Stall> stalls;

  double exposed() const { return seconds - kernels; }
  double mfu() const { return seconds > 0 ? atPeak / seconds : 0; }
};

runtime::Expected<TimeReport> makeTimeReport(const runtime::Manifest &manifest, const runtime::Plan &plan,
                                             const Machine &machine);

std::string formatTimeReport(const TimeReport &report);
std::string timeReportJson(const TimeReport &report);

} // namespace spmd::cost

#endif // SPMD_COST_TIMEREPORT_H
