//===- HostMemory.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Host/HostMemory.h"

#include <cstring>

using namespace spmd::runtime;

Expected<std::unique_ptr<RankMemory>> HostMemory::allocate(const RanksHere &ranks, int64_t bytes,
                                                           CommunicatorFactory &communicators) {
  std::unique_ptr<HostMemory> memory(new HostMemory(ranks, communicators));
  if (Status status = memory->allocateArenas(bytes); !status.ok())
    return status;
  return std::unique_ptr<RankMemory>(std::move(memory));
}

Status HostMemory::allocateArenas(int64_t bytes) {
  for (int64_t i = 0; i < ranks().count; ++i) {
    Expected<std::shared_ptr<char>> shared = communicators.allocateArena(ranks().first + i, bytes);
    if (!shared)
      return shared.error();
    Expected<Arena> arena = *shared ? Arena(std::move(*shared), bytes) : Arena::allocate(bytes);
    if (!arena)
      return arena.error();
    arenas.push_back(std::move(*arena));
  }
  return communicators.shareArenas(ranks());
}

Status HostMemory::grow(int64_t wanted, int64_t stateBytes) {
  if (bytes() >= wanted)
    return Status::success();
  HostMemory larger(ranks(), communicators);
  if (Status status = larger.allocateArenas(wanted); !status.ok())
    return status;
  for (size_t i = 0; i < arenas.size(); ++i)
    std::memcpy(larger.arenas[i].data(), arenas[i].data(), static_cast<size_t>(stateBytes));
  arenas = std::move(larger.arenas);
  ++moves;
  return Status::success();
}

void *HostMemory::addressOf(int64_t rank, int64_t offset) const {
  return arenas[ranks().indexOf(rank)].data() + offset;
}

Status HostMemory::copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) {
  std::memcpy(addressOf(rank, offset), source, static_cast<size_t>(bytes));
  return Status::success();
}

Status HostMemory::copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const {
  std::memcpy(destination, addressOf(rank, offset), static_cast<size_t>(bytes));
  return Status::success();
}

Status HostMemory::fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) {
  std::memset(addressOf(rank, offset), value, static_cast<size_t>(bytes));
  return Status::success();
}
