//===- Nvtx.h - Ranges for profilers ------------------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_NVTX_H
#define SPMD_LIB_RUNTIME_CUDA_NVTX_H

#include "NvtxApi.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <string>
#include <vector>

namespace spmd::runtime::cuda {

/// The profiler that is attached to this process.
class Profiler {
public:
  /// Null: there is none, and nothing is to be done. Asks once.
  static const Profiler *attached();

  /// A text that is pushed often; lives as long as the process.
  nvtx::String registerText(const std::string &text) const;
  /// Ranges of a thread nest.
  void push(nvtx::String text) const;
  void pop() const;

private:
  friend struct Injection;
  nvtx::Domain domain = nullptr;
  nvtx::RangePush rangePush = nullptr;
  nvtx::RangePop rangePop = nullptr;
  nvtx::RegisterString registerString = nullptr;
};

/// A range, where there is a profiler, until the end of the block.
class ProfiledRange {
public:
  ProfiledRange(const Profiler *profiler, nvtx::String text) : profiler(profiler) {
    if (profiler)
      profiler->push(text);
  }
  ~ProfiledRange() {
    if (profiler)
      profiler->pop();
  }
  ProfiledRange(const ProfiledRange &) = delete;
  ProfiledRange &operator=(const ProfiledRange &) = delete;

private:
  const Profiler *profiler;
};

/// The shard unit that each command works for, by its number in the manifest: whose parameters, gradients or optimizer
/// state it touches, or that of the command before it on its stream; -1: none.
std::vector<int32_t> findUnits(const Manifest &manifest, const Plan &plan);

/// The ranges of a plan's commands, by command: computation is in one for each unit, "h.0"; a collective in one of its
/// own, "all_gather of h.0". Without a profiler there is nothing in it.
struct PlanRanges {
  PlanRanges(const Profiler *profiler, const Manifest &manifest, const Plan &plan);

  const Profiler *profiler;
  nvtx::String step = nullptr;
  std::vector<nvtx::String> units;       ///< of the unit; null: none
  std::vector<nvtx::String> collectives; ///< of a collective
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_NVTX_H
