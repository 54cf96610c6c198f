//===- StepBatch.h - The batch that a process gives to a step -----*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_STEPBATCH_H
#define SPMD_RUNTIME_TRAIN_STEPBATCH_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Train/RankMemory.h"
#include "spmd/Runtime/Train/StepAgreement.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// A dense row-major tensor of the caller: on the host, if no DeviceBatch says otherwise.
struct HostTensor {
  const void *data = nullptr;
  DType dtype = DType::F32;
  int32_t rank = 0;
  const int64_t *shape = nullptr;
};

/// Where the tensors of a batch are, and the stream of the caller's that the step comes after: it is read while the
/// step is issued.
struct DeviceBatch {
  const Place *places = nullptr; ///< of each tensor
  CallerStream stream = 0;
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

  /// Takes the caller's tensors, when their dtypes, shapes, row ids and places are what the program takes. Row ids on a
  /// device are brought to the host for that: a kernel has no bounds to keep to. `device`: null where all are on the
  /// host.
  Status take(const HostTensor *inputs, size_t count, const DeviceBatch *device, RankMemory &memory);

  /// What the other processes must have, too. What is on a device is not looked at.
  void describe(StepNote &note) const;

  /// Fetches all rows of the other processes: for batches that are not as the ranks take them. Every process calls it.
  Status fetchRows(StepAgreement &agreement);

  /// Whether some of it is on a device.
  bool isOnDevice() const { return copies != nullptr; }

  /// Copies to a rank here its rows.
  Status copyTo(RankMemory &memory, int64_t rank) const;

private:
  struct Input {
    HostTensor tensor;
    std::vector<int64_t> shape; ///< of the tensor
    bool isGlobal = true;
    bool isOnDevice = false;
    std::vector<char> joined; ///< the rows of all, where they had to be fetched
  };
  Status check(const BatchInput &wanted, const Input &input);
  Status begin(const DeviceBatch &device, RankMemory &memory);
  Status locate(const BatchInput &wanted, const Place &place, Input &input, const RankMemory &memory) const;
  bool hasRows(const BatchInput &input) const { return of == BatchOf::Process && input.split.dim; }
  /// What is the same in all processes.
  bool isShared(const BatchInput &input) const { return of == BatchOf::Job || !input.split.dim; }

  const Manifest &manifest;
  const RanksHere &ranks;
  BatchOf of;
  std::vector<Input> inputs;
  DeviceCopies *copies = nullptr; ///< of this step, where a tensor is on a device
  std::vector<char> ids;          ///< of a tensor there, while they are looked at
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_STEPBATCH_H
