//===- InputBlock.h - Where a step finds what it is given ---------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_INPUTBLOCK_H
#define SPMD_RUNTIME_TRAIN_INPUTBLOCK_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Train/RankMemory.h"

#include <cstring>

namespace spmd::runtime {

/// A range of the arena that holds all batch inputs and hyper-parameters and nothing else: a device gets it by one
/// copy.
struct InputBlock {
  int64_t offset = 0, bytes = 0;

  /// No bytes: there is none, since something else lies there, too.
  static InputBlock find(const Manifest &manifest, const Plan &plan);
};

/// The block of one rank, as it is filled.
class StagedBlock final : public RankMemory {
public:
  StagedBlock(const RanksHere &ranks, const InputBlock &block, char *place)
      : RankMemory(ranks), block(block), place(place) {
    std::memset(place, 0, static_cast<size_t>(block.bytes));
  }

  int64_t bytes() const override { return block.bytes; }
  Status grow(int64_t, int64_t) override { return Status::success(); }
  int64_t generation() const override { return 0; }
  Status copyIn(int64_t, int64_t offset, const void *source, int64_t bytes) override {
    std::memcpy(at(offset), source, static_cast<size_t>(bytes));
    return Status::success();
  }
  Status copyOut(int64_t, int64_t offset, void *destination, int64_t bytes) const override {
    std::memcpy(destination, at(offset), static_cast<size_t>(bytes));
    return Status::success();
  }
  Status fill(int64_t, int64_t offset, uint8_t value, int64_t bytes) override {
    std::memset(at(offset), value, static_cast<size_t>(bytes));
    return Status::success();
  }
  void *addressOf(int64_t, int64_t offset) const override { return at(offset); }

private:
  char *at(int64_t offset) const { return place + (offset - block.offset); }

  InputBlock block;
  char *place;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_INPUTBLOCK_H
