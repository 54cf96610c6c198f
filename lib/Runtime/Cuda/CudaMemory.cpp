//===- CudaMemory.cpp -----------------------------------------------------===//

#include "CudaMemory.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spmd::runtime::cuda {

static AllocationProperties propertiesOn(const Gpu &gpu) {
  AllocationProperties properties = {};
  properties.type = kAllocationPinned;
  properties.location = {kLocationDevice, gpu.ordinal()};
  // What windows of collectives ask for.
  properties.requestedHandleTypes = kHandlePosixFile;
  return properties;
}

/// What memory takes of a device.
struct Room {
  size_t bytes, granularity;
};

/// The pieces that `bytes` take of a device; an error where they are not free.
static Expected<Room> findRoom(const Gpu &gpu, int64_t bytes) {
  if (Status status = gpu.use(); !status.ok())
    return status;
  const Driver &d = gpu.driver();
  AllocationProperties properties = propertiesOn(gpu);
  size_t granularity = 0;
  SPMD_CUDA_TRY(d, cuMemGetAllocationGranularity, &granularity, &properties, kGranularityRecommended);
  size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + granularity - 1) / granularity * granularity;
  size_t available = 0, total = 0;
  SPMD_CUDA_TRY(d, cuMemGetInfo, &available, &total);
  if (size > available)
    return Status::badInput("GPU " + std::to_string(gpu.ordinal()) + " (" + gpu.name() + ") has " +
                            formatCount(static_cast<int64_t>(available)) + " bytes free of " +
                            formatCount(static_cast<int64_t>(total)) + ", and the step takes " +
                            formatCount(static_cast<int64_t>(size)) +
                            ": compile for more ranks, or give it a smaller batch");
  return Room{size, granularity};
}

Expected<DeviceBlock> DeviceBlock::allocate(std::shared_ptr<const Gpu> gpu, int64_t bytes) {
  Expected<Room> room = findRoom(*gpu, bytes);
  if (!room)
    return room.error();
  auto [size, granularity] = *room;
  const Driver &d = gpu->driver();
  AllocationProperties properties = propertiesOn(*gpu);
  DeviceBlock block;
  block.gpu = std::move(gpu);
  SPMD_CUDA_TRY(d, cuMemCreate, &block.allocation, size, &properties, 0);
  block.size = static_cast<int64_t>(size);
  SPMD_CUDA_TRY(d, cuMemAddressReserve, &block.base, size, granularity, 0, 0);
  SPMD_CUDA_TRY(d, cuMemMap, block.base, size, 0, block.allocation, 0);
  block.isMapped = true;
  AccessDescription access = {properties.location, kAccessReadWrite};
  SPMD_CUDA_TRY(d, cuMemSetAccess, block.base, size, &access, 1);
  return block;
}

DeviceBlock::~DeviceBlock() {
  if (!gpu || !gpu->use().ok())
    return;
  const Driver &d = gpu->driver();
  auto bytes = static_cast<size_t>(size);
  if (isMapped)
    (void)d.cuMemUnmap(base, bytes);
  if (base)
    (void)d.cuMemAddressFree(base, bytes);
  if (size)
    (void)d.cuMemRelease(allocation);
}

void DeviceBlock::swap(DeviceBlock &other) noexcept {
  std::swap(gpu, other.gpu);
  std::swap(base, other.base);
  std::swap(size, other.size);
  std::swap(allocation, other.allocation);
  std::swap(isMapped, other.isMapped);
}

Expected<std::unique_ptr<CudaMemory>> CudaMemory::allocate(const RanksHere &ranks,
                                                           std::vector<std::shared_ptr<const Gpu>> gpus,
                                                           int64_t bytes) {
  std::unique_ptr<CudaMemory> memory(new CudaMemory(ranks));
  memory->wanted = bytes;
  for (const std::shared_ptr<const Gpu> &gpu : gpus) // before anything is taken of any
    if (Expected<Room> room = findRoom(*gpu, bytes); !room)
      return room.error();
  for (std::shared_ptr<const Gpu> &gpu : gpus) {
    Arena &arena = memory->arenas.emplace_back();
    arena.gpu = gpu;
    Expected<DeviceBlock> block = DeviceBlock::allocate(gpu, bytes);
    if (!block)
      return block.error();
    arena.block = std::move(*block);
    if (Status status = memory->makeStages(arena); !status.ok())
      return status;
    SPMD_CUDA_TRY(gpu->driver(), cuMemsetD8Async, arena.block.address(), 0, static_cast<size_t>(arena.block.bytes()),
                  gpu->mainStream());
  }
  return memory;
}

Status CudaMemory::makeStages(Arena &arena) {
  const Driver &d = arena.gpu->driver();
  arena.stages.resize(kStages);
  for (Stage &stage : arena.stages) {
    SPMD_CUDA_TRY(d, cuMemHostAlloc, reinterpret_cast<void **>(&stage.data), kStageBytes, 0);
    SPMD_CUDA_TRY(d, cuEventCreate, &stage.left, kEventDisableTiming);
  }
  SPMD_CUDA_TRY(d, cuMemHostAlloc, reinterpret_cast<void **>(&arena.outgoing), kStageBytes, 0);
  return Status::success();
}

CudaMemory::~CudaMemory() {
  for (Arena &arena : arenas) {
    if (!arena.gpu->use().ok())
      continue;
    const Driver &d = arena.gpu->driver();
    (void)d.cuStreamSynchronize(arena.gpu->mainStream());
    for (Stage &stage : arena.stages) {
      if (stage.left)
        (void)d.cuEventDestroy(stage.left);
      if (stage.data)
        (void)d.cuMemFreeHost(stage.data);
    }
    if (arena.outgoing)
      (void)d.cuMemFreeHost(arena.outgoing);
  }
}

void *CudaMemory::addressOf(int64_t rank, int64_t offset) const {
  return reinterpret_cast<void *>(blockOf(rank).address() + static_cast<Address>(offset));
}

Status CudaMemory::flushArena(Arena &arena) {
  for (const Pending &copy : arena.pending)
    SPMD_CUDA_TRY(arena.gpu->driver(), cuMemcpyHtoDAsync, arena.block.address() + static_cast<Address>(copy.offset),
                  copy.source, static_cast<size_t>(copy.bytes), arena.gpu->mainStream());
  arena.pending.clear();
  return Status::success();
}

Status CudaMemory::flush(int64_t rank) const {
  std::lock_guard<std::mutex> lock(mutex);
  return flushLocked(rank);
}

Status CudaMemory::flushLocked(int64_t rank) const {
  Arena &arena = arenaOf(rank);
  if (arena.pending.empty())
    return Status::success();
  if (Status status = arena.gpu->use(); !status.ok())
    return status;
  return flushArena(arena);
}

/// Pinned memory that nothing uses.
Expected<char *> CudaMemory::reserve(Arena &arena, int64_t bytes) {
  if (arena.used + bytes > kStageBytes) {
    if (Status status = flushArena(arena); !status.ok())
      return status;
    const Driver &d = arena.gpu->driver();
    Stage &full = arena.stages[arena.stage];
    SPMD_CUDA_TRY(d, cuEventRecord, full.left, arena.gpu->mainStream());
    full.isLeft = true;
    arena.stage = (arena.stage + 1) % kStages;
    arena.used = 0;
    if (Stage &next = arena.stages[arena.stage]; std::exchange(next.isLeft, false))
      SPMD_CUDA_TRY(d, cuEventSynchronize, next.left);
  }
  char *place = arena.stages[arena.stage].data + arena.used;
  arena.used += bytes;
  return place;
}

/// What is about to be written is no longer what the last step gave.
void CudaMemory::forgetOutputs(Arena &arena, int64_t offset, int64_t bytes) {
  const OutputBlock &block = arena.outputs.block;
  if (offset < block.offset + block.bytes && block.offset < offset + bytes)
    arena.outputs = {};
}

Expected<DeviceCopies *> CudaMemory::copiesOf(int64_t rank) {
  Arena &arena = arenaOf(rank);
  if (!arena.copies) {
    Expected<std::unique_ptr<CudaCopies>> made = CudaCopies::make(*this, rank);
    if (!made)
      return made.error();
    arena.copies = std::move(*made);
  }
  return static_cast<DeviceCopies *>(arena.copies.get());
}

Status CudaMemory::copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  Arena &arena = arenaOf(rank);
  forgetOutputs(arena, offset, bytes);
  if (Status status = arena.gpu->use(); !status.ok())
    return status;
  for (int64_t at = 0; at < bytes; at += kStageBytes) {
    int64_t count = std::min(kStageBytes, bytes - at);
    Expected<char *> place = reserve(arena, count);
    if (!place)
      return place.error();
    std::memcpy(*place, static_cast<const char *>(source) + at, static_cast<size_t>(count));
    Pending *last = arena.pending.empty() ? nullptr : &arena.pending.back();
    if (last && last->offset + last->bytes == offset + at && last->source + last->bytes == *place)
      last->bytes += count;
    else
      arena.pending.push_back({offset + at, count, *place});
  }
  return Status::success();
}

Expected<char *> CudaMemory::stage(int64_t rank, int64_t offset, int64_t bytes) {
  if (bytes > kStageBytes)
    return static_cast<char *>(nullptr);
  std::lock_guard<std::mutex> lock(mutex);
  Arena &arena = arenaOf(rank);
  forgetOutputs(arena, offset, bytes);
  if (Status status = arena.gpu->use(); !status.ok())
    return status;
  Expected<char *> place = reserve(arena, bytes);
  if (place)
    arena.pending.push_back({offset, bytes, *place});
  return place;
}

void CudaMemory::setOutputs(int64_t rank, const OutputBlock &block, const char *copy, Event ended) {
  std::lock_guard<std::mutex> lock(mutex);
  arenaOf(rank).outputs = {block, copy, ended};
}

Status CudaMemory::copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const {
  std::lock_guard<std::mutex> lock(mutex);
  Arena &arena = arenaOf(rank);
  if (Status status = arena.gpu->use(); !status.ok())
    return status;
  const Driver &d = arena.gpu->driver();
  if (const auto &outputs = arena.outputs; outputs.copy && outputs.block.holds(offset, bytes)) {
    if (d.cuEventQuery(outputs.ended) != kSuccess) // mostly somebody has waited for the step
      SPMD_CUDA_TRY(d, cuEventSynchronize, outputs.ended);
    std::memcpy(destination, outputs.copy + (offset - outputs.block.offset), static_cast<size_t>(bytes));
    return Status::success();
  }
  if (Status status = flushLocked(rank); !status.ok())
    return status;
  for (int64_t at = 0; at < bytes; at += kStageBytes) {
    auto count = static_cast<size_t>(std::min(kStageBytes, bytes - at));
    SPMD_CUDA_TRY(d, cuMemcpyDtoHAsync, arena.outgoing, arena.block.address() + static_cast<Address>(offset + at),
                  count, arena.gpu->mainStream());
    SPMD_CUDA_TRY(d, cuStreamSynchronize, arena.gpu->mainStream());
    std::memcpy(static_cast<char *>(destination) + at, arena.outgoing, count);
  }
  return Status::success();
}

Status CudaMemory::fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) {
  if (bytes == 0)
    return Status::success();
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = flushLocked(rank); !status.ok())
    return status;
  Arena &arena = arenaOf(rank);
  forgetOutputs(arena, offset, bytes);
  if (Status status = arena.gpu->use(); !status.ok())
    return status;
  return arena.gpu->driver().check(
      arena.gpu->driver().cuMemsetD8Async(arena.block.address() + static_cast<Address>(offset), value,
                                          static_cast<size_t>(bytes), arena.gpu->mainStream()),
      "cuMemsetD8Async");
}

Status CudaMemory::grow(int64_t larger, int64_t stateBytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (wanted >= larger)
    return Status::success();
  for (Arena &arena : arenas) {
    if (larger <= arena.block.bytes())
      continue; // within what was allocated, and zero
    if (Status status = arena.gpu->use(); !status.ok())
      return status;
    if (Status status = flushArena(arena); !status.ok())
      return status;
    const Driver &d = arena.gpu->driver();
    Expected<DeviceBlock> block = DeviceBlock::allocate(arena.gpu, larger);
    if (!block)
      return block.error();
    StreamHandle stream = arena.gpu->mainStream();
    SPMD_CUDA_TRY(d, cuMemsetD8Async, block->address(), 0, static_cast<size_t>(block->bytes()), stream);
    if (stateBytes)
      SPMD_CUDA_TRY(d, cuMemcpyDtoDAsync, block->address(), arena.block.address(), static_cast<size_t>(stateBytes),
                    stream);
    SPMD_CUDA_TRY(d, cuStreamSynchronize, stream);
    arena.block = std::move(*block);
    arena.outputs = {};
  }
  wanted = larger;
  ++moves;
  return Status::success();
}

} // namespace spmd::runtime::cuda
