//===- RankMemory.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Host/RankMemory.h"

#include <cstring>

using namespace spmd::runtime;

Expected<std::shared_ptr<RankMemory>> RankMemory::allocate(int64_t ranks, int64_t bytes) {
  std::shared_ptr<RankMemory> memory(new RankMemory);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Expected<Arena> arena = Arena::allocate(bytes);
    if (!arena)
      return arena.error();
    memory->pointers.push_back(arena->data());
    memory->arenas.push_back(std::move(*arena));
  }
  return memory;
}

Status RankMemory::grow(int64_t bytes, int64_t stateBytes) {
  if (arenas.front().size() >= bytes)
    return Status::success();
  Expected<std::shared_ptr<RankMemory>> larger = allocate(static_cast<int64_t>(arenas.size()), bytes);
  if (!larger)
    return larger.error();
  for (size_t rank = 0; rank < arenas.size(); ++rank)
    std::memcpy((*larger)->pointers[rank], pointers[rank], static_cast<size_t>(stateBytes));
  arenas = std::move((*larger)->arenas);
  pointers = std::move((*larger)->pointers);
  ++moves;
  return Status::success();
}
