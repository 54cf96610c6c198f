//===- PlanReport.h - What a plan holds, for people ---------------*- C++ -*-===//
//
// The memory of a rank by class, the tensors alive where most bytes are, and
// the collectives of each shard unit; of a plan that is to be run or of one
// that is only planned. docs/planning.md explains it and the JSON form.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_PLANREPORT_H
#define SPMD_RUNTIME_CORE_PLANREPORT_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <string>
#include <vector>

namespace spmd::runtime {

struct PlanReport {
  /// Bytes of one class: those that persist between steps, and those that are
  /// alive at the peak of the transient part.
  struct MemoryClass {
    std::string name;
    int64_t persistent = 0, peak = 0;
  };
  /// A transient buffer that is alive at the peak.
  struct Tensor {
    std::string name, memoryClass, location;
    int64_t bytes = 0;
    int32_t buffer = 0; ///< number in the plan
  };
  /// The collectives of one kind, of a unit or of the step.
  struct Collectives {
    CollectiveKind kind = CollectiveKind::AllGather;
    int64_t count = 0;
    int64_t values = 0;    ///< buffers in them: several scalars in one message
    int64_t sentBytes = 0; ///< what a rank hands over, of all of them
    int64_t bytes = 0;     ///< what is gathered or reduced, of all of them
  };
  struct UnitRow {
    std::string name;
    std::vector<std::string> modules;
    DType dtype = DType::F32;
    int64_t parameters = 0, elements = 0, padded = 0, chunk = 0;
    std::vector<Collectives> collectives;
  };

  std::string step, target, mode, policy, compiler;
  std::vector<MeshAxis> mesh;
  int64_t ranks = 1;
  int64_t arenaBytes = 0, stateBytes = 0, transientBytes = 0;
  std::vector<MemoryClass> classes;
  /// The most transient bytes that are alive together (MemoryPeak.h), all of
  /// them from command `peakCommand` on: no placement takes less.
  int64_t peakBytes = 0;
  int64_t peakCommand = -1;
  std::string peakDescription, peakLocation;
  std::vector<Tensor> tensors; ///< largest first
  std::vector<UnitRow> units;
  std::vector<Collectives> collectives;
  std::vector<ReplicatedValue> replicated;
  std::vector<OutsideArena> outsideArena;

  /// Bytes of the arena that are no tensor's at the peak: alignment, and gaps
  /// that placement leaves.
  int64_t unusedBytes() const;
};

PlanReport makePlanReport(const Manifest &manifest, const Plan &plan);

/// Equal parts of a model are one row: layers.0 to layers.31 are `layers.*`.
std::string formatArena(const PlanReport &report);
std::string formatPeak(const PlanReport &report);
std::string formatUnits(const PlanReport &report);
std::string formatCollectives(const PlanReport &report);
std::string formatReplicated(const PlanReport &report);

/// The report as a JSON object.
std::string planReportJson(const PlanReport &report);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_PLANREPORT_H
