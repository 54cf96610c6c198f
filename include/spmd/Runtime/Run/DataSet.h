//===- DataSet.h - What the steps of a run train on --------------*- C++ -*-===//
//
// [Note: order of data]
// Which samples a step trains on is a function of the data, the seed and the step's number alone: not of ranks, processes
// or of what has run before. So a run that is resumed goes on where it was, and its position is one number.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_RUN_DATASET_H
#define SPMD_RUNTIME_RUN_DATASET_H

#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

struct DataOptions {
  /// A token file, or INPUT=FILE for each batch input, with commas: "x=a.npy,y=b.npy".
  std::string files;
  /// "shuffled": a new order in every epoch; "sequential"; empty: what fits the data, see DataSet::open.
  std::string order;
  /// Of token files without a header: "uint16" or "uint32".
  std::string tokenType = "uint16";
  uint64_t seed = 0;
};

class DataSet {
public:
  /// Opens files for the batch inputs of an artifact.
  ///
  /// A token file is for a step with one integer input of shape [batch, length], which gets windows of it, or with two
  /// of one shape, of which the second gets the tokens after the first's. A window begins where the last one ends; each
  /// epoch begins at another token, and its windows are shuffled.
  ///
  /// An array is [samples, ...] with the input's shape after its first dim, shuffled; or [batches, ...] with all of the
  /// input's shape, in order; or has the input's very shape, and is the same in every step.
  static Expected<DataSet> open(const DataOptions &options, const Manifest &manifest, const RanksHere &ranks);

  DataSet(DataSet &&) noexcept;
  DataSet &operator=(DataSet &&) noexcept;
  ~DataSet();

  /// The batch of a step, counted from the run's first, as Trainer::step takes it; valid until the next call. Rows of
  /// ranks that are in other processes are zeros.
  Status batch(int64_t step, std::vector<HostTensor> &tensors);

  /// Steps until every sample was seen once, at least 1.
  int64_t stepsPerEpoch() const;
  /// "1,003,854 tokens, 3,921 windows of 256, shuffled".
  std::string describe() const;

private:
  struct Content;
  explicit DataSet(std::unique_ptr<Content> content);
  std::unique_ptr<Content> content;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_DATASET_H
