//===- ToyMemory.cpp ------------------------------------------------------===//

#include "ToyMemory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

using namespace toy;
using namespace spmd::runtime;

namespace {
/// What lies behind addresses: the begin of each arena. No processor that runs this maps bytes so high.
struct AddressSpace {
  std::mutex mutex;
  uint64_t next = uint64_t(1) << 62;
  std::map<uint64_t, char *> arenas;

  static AddressSpace &get() {
    static AddressSpace space;
    return space;
  }
};
} // namespace

Status ToyMemory::allocateArenas(int64_t bytes, std::vector<Arena> &made, std::vector<uint64_t> &places) {
  AddressSpace &space = AddressSpace::get();
  for (int64_t i = 0; i < ranks().count; ++i) {
    Expected<Arena> arena = Arena::allocate(bytes);
    if (!arena)
      return arena.error();
    std::lock_guard<std::mutex> lock(space.mutex);
    space.arenas[space.next] = arena->data();
    places.push_back(space.next);
    space.next += (static_cast<uint64_t>(bytes) / 4096 + 2) * 4096;
    made.push_back(std::move(*arena));
  }
  return Status::success();
}

Expected<std::unique_ptr<RankMemory>> ToyMemory::allocate(const RanksHere &ranks, int64_t bytes) {
  std::unique_ptr<ToyMemory> memory(new ToyMemory(ranks));
  if (Status status = memory->allocateArenas(bytes, memory->arenas, memory->addresses); !status.ok())
    return status;
  return std::unique_ptr<RankMemory>(std::move(memory));
}

static void forget(const std::vector<uint64_t> &addresses) {
  AddressSpace &space = AddressSpace::get();
  std::lock_guard<std::mutex> lock(space.mutex);
  for (uint64_t address : addresses)
    space.arenas.erase(address);
}

ToyMemory::~ToyMemory() { forget(addresses); }

Status ToyMemory::grow(int64_t wanted, int64_t stateBytes) {
  if (bytes() >= wanted)
    return Status::success();
  if (Status status = drain(); !status.ok())
    return status;
  std::vector<Arena> larger;
  std::vector<uint64_t> places;
  if (Status status = allocateArenas(wanted, larger, places); !status.ok())
    return status;
  for (size_t i = 0; i < arenas.size(); ++i)
    std::memcpy(larger[i].data(), arenas[i].data(), static_cast<size_t>(stateBytes));
  forget(addresses);
  arenas = std::move(larger);
  addresses = std::move(places);
  ++moves;
  return Status::success();
}

void *ToyMemory::addressOf(int64_t rank, int64_t offset) const {
  return reinterpret_cast<void *>(addresses[ranks().indexOf(rank)] + static_cast<uint64_t>(offset));
}

void *ToyMemory::resolve(const void *address) {
  AddressSpace &space = AddressSpace::get();
  std::lock_guard<std::mutex> lock(space.mutex);
  auto value = reinterpret_cast<uint64_t>(address);
  auto arena = std::prev(space.arenas.upper_bound(value));
  return arena->second + (value - arena->first);
}

void ToyMemory::removeUser(Executor *executor) {
  users.erase(std::remove(users.begin(), users.end(), executor), users.end());
}

Status ToyMemory::drain() const {
  for (Executor *user : users)
    if (Status status = user->wait(); !status.ok())
      return status;
  return Status::success();
}

Status ToyMemory::copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) {
  Status status = drain();
  if (status.ok())
    std::memcpy(at(rank, offset), source, static_cast<size_t>(bytes));
  return status;
}

Status ToyMemory::copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const {
  (void)drain(); // what a failed step left can be read
  std::memcpy(destination, at(rank, offset), static_cast<size_t>(bytes));
  return Status::success();
}

Status ToyMemory::fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) {
  Status status = drain();
  if (status.ok())
    std::memset(at(rank, offset), value, static_cast<size_t>(bytes));
  return status;
}
