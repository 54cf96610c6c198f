//===- StateSnapshot.h - The state of ranks as it was ------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_STATESNAPSHOT_H
#define SPMD_RUNTIME_TRAIN_STATESNAPSHOT_H

#include "spmd/Runtime/Train/RankMemory.h"

#include <cstring>
#include <vector>

namespace spmd::runtime {

/// A copy of the state of the ranks here, on the host: what is written while the ranks go on. Filled by
/// Trainer::takeSnapshot; then it may be read by another thread.
class StateSnapshot final : public RankMemory {
public:
  /// `stateBytes` of each arena: the state comes first in it.
  StateSnapshot(const RanksHere &ranks, int64_t stateBytes)
      : RankMemory(ranks), stateBytes(stateBytes), content(static_cast<size_t>(ranks.count * stateBytes)) {}

  int64_t totalBytes() const { return static_cast<int64_t>(content.size()); }

  int64_t bytes() const override { return stateBytes; }
  Status grow(int64_t, int64_t) override { return Status::failed("a snapshot does not grow"); }
  int64_t generation() const override { return 0; }
  Status copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) override {
    std::memcpy(addressOf(rank, offset), source, static_cast<size_t>(bytes));
    return Status::success();
  }
  Status copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const override {
    std::memcpy(destination, addressOf(rank, offset), static_cast<size_t>(bytes));
    return Status::success();
  }
  Status fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) override {
    std::memset(addressOf(rank, offset), value, static_cast<size_t>(bytes));
    return Status::success();
  }
  void *addressOf(int64_t rank, int64_t offset) const override {
    return const_cast<char *>(content.data()) + static_cast<int64_t>(ranks().indexOf(rank)) * stateBytes + offset;
  }

  bool hasOptimizerState = true;
  std::vector<double> hyper; ///< in the manifest's order

private:
  int64_t stateBytes;
  std::vector<char> content;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_STATESNAPSHOT_H
