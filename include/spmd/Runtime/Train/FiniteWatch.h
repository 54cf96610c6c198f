//===- FiniteWatch.h - Which command gave the first nan ---------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_FINITEWATCH_H
#define SPMD_RUNTIME_TRAIN_FINITEWATCH_H

#include "spmd/Runtime/Core/KernelTable.h"
#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Core/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// The first commands of a step that write an infinity and a not-a-number. An executor shows it what each command
/// wrote, in memory of the host; threads of all streams of all ranks here may.
class FiniteWatch {
public:
  explicit FiniteWatch(const Plan &plan) : plan(plan) {}

  /// The types of what kernels write, from the table in their file.
  void setKernels(std::string_view table) { kernels = parseKernelTable(table); }

  /// Before a step: nothing was found.
  void reset();

  /// Looks at what command `id` of a rank wrote; `pointers` are those of its references.
  void look(int32_t id, int64_t rank, void *const *pointers);

  /// Ok where all was finite; else rank, command and line of the first infinity and of the first nan. A mask's
  /// infinities are meant, so both are said.
  Status describe() const;

private:
  void lookAt(const void *data, DType dtype, int64_t count, int32_t id, int64_t rank);

  static constexpr uint64_t kNone = UINT64_MAX;
  /// Command and rank of the first, in one word: less is earlier.
  std::atomic<uint64_t> infinity{kNone}, nan{kNone};
  const Plan &plan;
  KernelTable kernels;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_FINITEWATCH_H
