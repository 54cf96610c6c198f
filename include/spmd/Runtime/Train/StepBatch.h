//===- StepBatch.h - The batch that a process gives to a step -----*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_STEPBATCH_H
#define SPMD_RUNTIME_TRAIN_STEPBATCH_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Train/RankMemory.h"
#include "spmd/Runtime/Train/StepAgreement.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// A dense row-major tensor of the caller.
struct HostTensor {
  const void *data = nullptr;
  DType dtype = DType::F32;
  int32_t rank = 0;
  const int64_t *shape = nullptr;
};

/// What each of several processes gives to a step.
enum class BatchOf {
  Job,     ///< the global batch, the same in all
  JobRows, ///< the global batch, of which only the rows of its own ranks need to be there
  Process, ///< its own rows; the global batch is theirs, one after the other
};

/// One tensor for each batch input of a program, in the manifest's order: those of the caller, as long as the step takes.
class StepBatch {
public:
  StepBatch(const Manifest &manifest, const RanksHere &ranks, BatchOf of)
      : manifest(manifest), ranks(ranks), of(ranks.areAll() ? BatchOf::Job : of), inputs(manifest.batch.size()) {}

  /// Takes the caller's tensors, when their dtypes, shapes and row ids are what the program takes.
  Status take(const HostTensor *inputs, size_t count);

  /// What the other processes must have, too.
  void describe(StepNote &note) const;

  /// Fetches all rows of the other processes: for batches that are not as the ranks take them. Every process calls it.
  Status fetchRows(StepAgreement &agreement);

  /// Copies to a rank here its rows.
  Status copyTo(RankMemory &memory, int64_t rank) const;

private:
  struct Input {
    HostTensor tensor;
    std::vector<int64_t> shape; ///< of the tensor
    bool isGlobal = true;
    std::vector<char> joined; ///< the rows of all, where they had to be fetched
  };
  Status check(const BatchInput &wanted, const Input &input) const;
  bool hasRows(const BatchInput &input) const { return of == BatchOf::Process && input.split.dim; }
  /// What is the same in all processes.
  bool isShared(const BatchInput &input) const { return of == BatchOf::Job || !input.split.dim; }

  const Manifest &manifest;
  const RanksHere &ranks;
  BatchOf of;
  std::vector<Input> inputs;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_STEPBATCH_H
