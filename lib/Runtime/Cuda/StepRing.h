//===- StepRing.h - Ends of the steps that were issued last -------*- C++ -*-===//
//
// [Note: ring] A step ends with a copy of what it gives to pinned memory and an
// event. Each of the last kSteps has slot and event of its own: what one has given
// can be read while later ones run, and who watches sees each of them end. So no
// more than these are issued before the first of them is done.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_STEPRING_H
#define SPMD_LIB_RUNTIME_CUDA_STEPRING_H

#include "Owned.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <array>

namespace spmd::runtime::cuda {

/// Bytes of the arena that outputs of a step lie in.
struct OutputBlock {
  int64_t offset = 0, bytes = 0;

  /// No bytes: there are none, or too many to copy them out whether or not they are read.
  static OutputBlock find(const Manifest &manifest, const Plan &plan);

  bool holds(int64_t from, int64_t count) const {
    return bytes > 0 && offset <= from && from + count <= offset + bytes;
  }
};

/// Of one rank.
class StepRing {
public:
  static constexpr uint64_t kSteps = 8;

  /// `address`: of the block in the rank's arena.
  Status make(const std::shared_ptr<const Gpu> &gpu, const OutputBlock &block, Address address);

  /// Issues the end of a step, behind what the main stream has. Step `step` - kSteps is done.
  Status end(uint64_t step);
  /// kSuccess, kNotReady or an error; of one of the last kSteps.
  Result query(uint64_t step) const;

  Event ended(uint64_t step) const { return slots[step % kSteps].ended.get(); }
  /// What the step gave, once it has ended.
  const char *outputs(uint64_t step) const { return static_cast<const char *>(slots[step % kSteps].outputs.get()); }
  const OutputBlock &block() const { return outputBlock; }

private:
  struct Slot {
    OwnEvent ended;
    OwnPinned outputs;
  };
  std::shared_ptr<const Gpu> gpu;
  OutputBlock outputBlock;
  Address address = 0;
  std::array<Slot, kSteps> slots;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_STEPRING_H
