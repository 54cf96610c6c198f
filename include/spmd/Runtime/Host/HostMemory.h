//===- HostMemory.h - Arenas in the memory of the CPU -------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_HOSTMEMORY_H
#define SPMD_RUNTIME_HOST_HOSTMEMORY_H

#include "spmd/Runtime/Host/Arena.h"
#include "spmd/Runtime/Train/Communicator.h"
#include "spmd/Runtime/Train/RankMemory.h"

#include <memory>
#include <vector>

namespace spmd::runtime {

/// Steps on the CPU are done when they return, so copies are plain ones.
class HostMemory final : public RankMemory {
public:
  /// Zeroed arenas, in memory that the communicators want them in.
  static Expected<std::unique_ptr<RankMemory>> allocate(const RanksHere &ranks, int64_t bytes,
                                                        CommunicatorFactory &communicators);

  int64_t bytes() const override { return arenas.front().size(); }
  Status grow(int64_t bytes, int64_t stateBytes) override;
  int64_t generation() const override { return moves; }
  Status copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) override;
  Status copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const override;
  Status fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) override;
  void *addressOf(int64_t rank, int64_t offset) const override;

private:
  HostMemory(const RanksHere &ranks, CommunicatorFactory &communicators)
      : RankMemory(ranks), communicators(communicators) {}
  Status allocateArenas(int64_t bytes);

  CommunicatorFactory &communicators;
  std::vector<Arena> arenas; ///< of the ranks here
  int64_t moves = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_HOSTMEMORY_H
