//===- CudaMemory.h - Arenas in the memory of GPUs ----------------*- C++ -*-===//
//
// [Note: staging] The host's bytes go through pinned memory, in pieces of a ring
// of blocks. What is copied in waits there until the next step (or whatever else
// is issued) takes it along: neighbours become one copy. A block is filled again
// when the copies out of it are done, which only a flood of copies waits for.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_CUDAMEMORY_H
#define SPMD_LIB_RUNTIME_CUDA_CUDAMEMORY_H

#include "CudaCopies.h"
#include "StepRing.h"
#include "spmd/Runtime/Train/RankMemory.h"

#include <mutex>
#include <vector>

namespace spmd::runtime::cuda {

/// Device memory at one address.
class DeviceBlock {
public:
  /// At least `bytes`; an error says how much there is, before anything is taken.
  static Expected<DeviceBlock> allocate(std::shared_ptr<const Gpu> gpu, int64_t bytes);
  DeviceBlock() = default;
  DeviceBlock(DeviceBlock &&other) noexcept { swap(other); }
  DeviceBlock &operator=(DeviceBlock &&other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBlock();

  Address address() const { return base; }
  /// A multiple of what the device allocates.
  int64_t bytes() const { return size; }

private:
  void swap(DeviceBlock &other) noexcept;

  std::shared_ptr<const Gpu> gpu;
  Address base = 0;
  int64_t size = 0;
  Allocation allocation = 0;
  bool isMapped = false;
};

class CudaMemory final : public RankMemory {
public:
  /// `gpus`: one for each rank here.
  static Expected<std::unique_ptr<CudaMemory>> allocate(const RanksHere &ranks,
                                                        std::vector<std::shared_ptr<const Gpu>> gpus, int64_t bytes);
  ~CudaMemory() override;

  int64_t bytes() const override { return wanted; }
  Status grow(int64_t bytes, int64_t stateBytes) override;
  int64_t generation() const override { return moves; }
  Status copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) override;
  Expected<char *> stage(int64_t rank, int64_t offset, int64_t bytes) override;
  Status copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const override;
  Status fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) override;
  void *addressOf(int64_t rank, int64_t offset) const override;
  Place placeOf(int64_t rank) const override { return {Place::kCuda, gpuOf(rank)->ordinal()}; }
  Expected<DeviceCopies *> copiesOf(int64_t rank) override;

  /// Issues by `issue(address)` a copy from or to a byte of an arena, on the main stream, behind the copies that wait.
  template <typename Issue>
  Status copyOnDevice(int64_t rank, int64_t offset, const Issue &issue) {
    std::lock_guard<std::mutex> lock(mutex);
    if (Status status = flushLocked(rank); !status.ok())
      return status;
    return issue(blockOf(rank).address() + static_cast<Address>(offset));
  }

  /// What the last step gave, of which there is a copy on the host from `ended` on: reads of it need no copy of their
  /// own. It stays until the next step, or until it is set to nothing.
  void setOutputs(int64_t rank, const OutputBlock &block, const char *copy, Event ended);

  /// Issues the copies that wait, on the main stream of the rank's device.
  Status flush(int64_t rank) const;
  const DeviceBlock &blockOf(int64_t rank) const { return arenas[ranks().indexOf(rank)].block; }
  const std::shared_ptr<const Gpu> &gpuOf(int64_t rank) const { return arenas[ranks().indexOf(rank)].gpu; }

private:
  static constexpr int64_t kStageBytes = 4 << 20;
  static constexpr size_t kStages = 3;

  /// One of the buffers that copies go through in turn.
  struct Stage {
    char *data = nullptr;
    Event left = nullptr; ///< recorded when it was full
    bool isLeft = false;
  };
  struct Pending {
    int64_t offset = 0, bytes = 0;
    const char *source = nullptr;
  };
  struct Arena {
    std::shared_ptr<const Gpu> gpu;
    DeviceBlock block;
    std::vector<Stage> stages;
    size_t stage = 0;
    int64_t used = 0; ///< of that stage
    std::vector<Pending> pending;
    char *outgoing = nullptr; ///< for copyOut
    struct {
      OutputBlock block;
      const char *copy = nullptr;
      Event ended = nullptr;
    } outputs; ///< of the last step
    std::unique_ptr<CudaCopies> copies; ///< made when they are asked for
  };

  explicit CudaMemory(const RanksHere &ranks) : RankMemory(ranks) {}
  Status makeStages(Arena &arena);
  Status flushLocked(int64_t rank) const;
  Expected<char *> reserve(Arena &arena, int64_t bytes);
  Arena &arenaOf(int64_t rank) const { return arenas[ranks().indexOf(rank)]; }
  static Status flushArena(Arena &arena);
  static void forgetOutputs(Arena &arena, int64_t offset, int64_t bytes);

  mutable std::mutex mutex; ///< other processes read while steps are issued
  mutable std::vector<Arena> arenas; ///< what is issued is no state of the memory
  int64_t wanted = 0, moves = 0;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_CUDAMEMORY_H
