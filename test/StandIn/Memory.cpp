//===- Memory.cpp - Device memory -----------------------------------------===//
//
// Device addresses are pages that nobody may touch; what is behind them is mapped
// again, kReach further on. New memory is not a number. Every byte that is taken
// is counted, and the devices have as much as STANDIN's memory=BYTES says.
//
//===----------------------------------------------------------------------===//

#include "Core.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace standin {

extern thread_local Context current;

namespace {
constexpr uint64_t kDeviceBase = 0x100000000000, kReach = 0x100000000000;
constexpr size_t kGranularity = 2 << 20;

struct Physical {
  int file;
  size_t bytes;
  int device;
};
struct Mapping {
  size_t bytes;
};

uint64_t nextAddress = kDeviceBase;
std::map<uint64_t, size_t> reservations;
std::map<uint64_t, Mapping> mappings;
std::map<int, size_t> taken;
size_t peak = 0;

size_t deviceBytes() {
  const char *given = standInSetting("memory");
  return given ? std::strtoull(given, nullptr, 10) : size_t(80) << 30;
}
} // namespace

bool isDevice(uint64_t address) { return address >= kDeviceBase && address < kDeviceBase + kReach; }

size_t takenBytes() {
  size_t sum = 0;
  for (auto &[device, bytes] : taken)
    sum += bytes;
  return sum;
}
size_t peakBytes() { return peak; }
size_t numReservations() { return reservations.size(); }

} // namespace standin

using namespace standin;
#define LOCK std::lock_guard<std::recursive_mutex> lock(mutex)
#define ENTER(function)                                                                                                \
  LOCK;                                                                                                                \
  if (Result result = standInEnter(function))                                                                          \
  return result == kLeftOut ? kSuccess : result

extern "C" void *standInReachPinned(uint64_t address);

STANDIN_API void *standInReach(uint64_t address) {
  LOCK;
  if (!isDevice(address))
    return standInReachPinned(address);
  auto it = mappings.upper_bound(address);
  if (it == mappings.begin() || (--it)->first + it->second.bytes <= address)
    return nullptr;
  return reinterpret_cast<void *>(address + kReach);
}

STANDIN_API Result cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER("cuMemGetInfo");
  if (!current)
    return kNotInitialized;
  *total = deviceBytes();
  *available = *total - taken[current->device];
  return kSuccess;
}

STANDIN_API Result cuMemGetAllocationGranularity(size_t *granularity, const AllocationProperties *, int) {
  ENTER("cuMemGetAllocationGranularity");
  *granularity = kGranularity;
  return kSuccess;
}

STANDIN_API Result cuMemAddressReserve(Address *address, size_t bytes, size_t, Address, unsigned long long) {
  ENTER("cuMemAddressReserve");
  if (bytes % kGranularity || !bytes)
    return kInvalidValue;
  *address = nextAddress;
  nextAddress += bytes + kGranularity; // a gap that nothing is mapped to
  ::mmap(reinterpret_cast<void *>(*address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  reservations[*address] = bytes;
  return kSuccess;
}

STANDIN_API Result cuMemAddressFree(Address address, size_t bytes) {
  ENTER("cuMemAddressFree");
  auto it = reservations.find(address);
  if (it == reservations.end() || it->second != bytes || mappings.count(address))
    return kInvalidValue;
  ::munmap(reinterpret_cast<void *>(address), bytes);
  reservations.erase(it);
  return kSuccess;
}

STANDIN_API Result cuMemCreate(Allocation *allocation, size_t bytes, const AllocationProperties *properties,
                               unsigned long long) {
  ENTER("cuMemCreate");
  if (Result result = forbiddenInCapture())
    return result;
  if (bytes % kGranularity || !bytes || properties->location.type != kLocationDevice)
    return kInvalidValue;
  int device = properties->location.id;
  if (taken[device] + bytes > deviceBytes())
    return kOutOfMemory;
  auto *physical = new Physical{::memfd_create("device", 0), bytes, device};
  if (::ftruncate(physical->file, static_cast<off_t>(bytes)))
    return kOutOfMemory;
  taken[device] += bytes;
  peak = std::max(peak, takenBytes());
  *allocation = reinterpret_cast<uint64_t>(physical);
  return kSuccess;
}

STANDIN_API Result cuMemRelease(Allocation allocation) {
  ENTER("cuMemRelease");
  auto *physical = reinterpret_cast<Physical *>(allocation);
  taken[physical->device] -= physical->bytes;
  ::close(physical->file);
  delete physical;
  return kSuccess;
}

STANDIN_API Result cuMemMap(Address address, size_t bytes, size_t offset, Allocation allocation, unsigned long long) {
  ENTER("cuMemMap");
  auto *physical = reinterpret_cast<Physical *>(allocation);
  auto it = reservations.find(address);
  if (it == reservations.end() || bytes > it->second || offset + bytes > physical->bytes)
    return kInvalidValue;
  auto *reach = reinterpret_cast<void *>(address + kReach);
  ::mmap(reach, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file, static_cast<off_t>(offset));
  std::memset(reach, 0xff, bytes);
  mappings[address] = {bytes};
  return kSuccess;
}

STANDIN_API Result cuMemUnmap(Address address, size_t bytes) {
  ENTER("cuMemUnmap");
  auto it = mappings.find(address);
  if (it == mappings.end() || it->second.bytes != bytes)
    return kInvalidValue;
  ::munmap(reinterpret_cast<void *>(address + kReach), bytes);
  mappings.erase(it);
  forgetAccesses(address, bytes);
  return kSuccess;
}

STANDIN_API Result cuMemSetAccess(Address address, size_t bytes, const AccessDescription *, size_t) {
  ENTER("cuMemSetAccess");
  auto it = mappings.find(address);
  return it == mappings.end() || it->second.bytes < bytes ? kInvalidValue : kSuccess;
}

//---- copies ----

/// `what`: for messages. Bytes of both sides must be the device's or pinned: others would make the copy synchronous.
static Result copy(uint64_t to, uint64_t from, size_t bytes, StreamHandle stream, const char *what) {
  void *destination = standInReach(to), *source = standInReach(from);
  if (!destination || !source || !standInReach(to + bytes - 1) || !standInReach(from + bytes - 1))
    return kInvalidValue;
  auto work = std::make_shared<Work>();
  work->name = what;
  work->ranges = {{from, bytes, 0}, {to, bytes, 1}};
  work->run = [=](uint64_t) {
    std::memcpy(destination, source, bytes);
    return 1;
  };
  return enqueue(stream, std::move(work));
}

STANDIN_API Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, StreamHandle stream) {
  ENTER("cuMemcpyHtoDAsync");
  if (!isDevice(to) || !isPinned(reinterpret_cast<uint64_t>(from), bytes))
    return kInvalidValue;
  return copy(to, reinterpret_cast<uint64_t>(from), bytes, stream, "a copy to the device");
}

STANDIN_API Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, StreamHandle stream) {
  ENTER("cuMemcpyDtoHAsync");
  if (!isDevice(from) || !isPinned(reinterpret_cast<uint64_t>(to), bytes))
    return kInvalidValue;
  return copy(reinterpret_cast<uint64_t>(to), from, bytes, stream, "a copy to the host");
}

STANDIN_API Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, StreamHandle stream) {
  ENTER("cuMemcpyDtoDAsync");
  if (!isDevice(from) || !isDevice(to))
    return kInvalidValue;
  return copy(to, from, bytes, stream, "a copy");
}

STANDIN_API Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, StreamHandle stream) {
  ENTER("cuMemsetD8Async");
  if (!isDevice(to) || !standInReach(to) || !standInReach(to + bytes - 1))
    return kInvalidValue;
  auto work = std::make_shared<Work>();
  work->name = "a fill";
  work->ranges = {{to, bytes, 1}};
  work->run = [=](uint64_t) {
    std::memset(standInReach(to), value, bytes);
    return 1;
  };
  return enqueue(stream, std::move(work));
}
