//===- Races.cpp - Accesses that nothing orders ---------------------------===//

#include "Core.h"

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace standin {

namespace {
struct Access {
  uint32_t lane = 0, tick = 0;
  std::shared_ptr<Work> work;
};
struct Segment {
  uint64_t end = 0;
  Access write;
  std::vector<Access> reads;
};
std::map<uint64_t, Segment> segments;

bool isBefore(const Access &access, const Clock &clock) {
  return !access.work || (access.lane < clock.size() && clock[access.lane] >= access.tick);
}
bool isSame(const Access &a, const Access &b) { return a.lane == b.lane && a.tick == b.tick; }

void reportRace(const Access &earlier, bool earlierWrites, const Work &work, bool writes, uint64_t begin,
                uint64_t end) {
  char where[64];
  std::snprintf(where, sizeof where, "[%#" PRIx64 ", +%" PRIu64 ")", begin, end - begin);
  standInReport(("race: " + work.name + (writes ? " writes " : " reads ") + where + ", which " + earlier.work->name +
                 (earlierWrites ? " writes" : " reads") + ": nothing orders the two")
                    .c_str());
}

/// Pinned memory: the application's pages, and ours.
struct Pinned {
  uint64_t bytes = 0;
  char *reach = nullptr;
  struct Use {
    uint32_t lane, tick;
    std::string name;
    StandInRange range;
  };
  std::vector<Use> pending;
};
std::map<uint64_t, Pinned> pinned;
constexpr uint64_t kPage = 4096;

Pinned *findPinned(uint64_t address, uint64_t *begin = nullptr) {
  auto it = pinned.upper_bound(address);
  if (it == pinned.begin() || (--it)->first + it->second.bytes <= address)
    return nullptr;
  if (begin)
    *begin = it->first;
  return &it->second;
}
} // namespace

void checkRaces(const std::shared_ptr<Work> &work, uint32_t lane, const Clock &clock) {
  static const bool isChecking = [] {
    const char *given = standInSetting("check");
    return !given || std::strcmp(given, "0") != 0;
  }();
  if (!isChecking)
    return;
  Access self{lane, clock[lane], work};
  for (int writes : {0, 1}) // a command may read and write the same bytes
    for (const StandInRange &range : work->ranges) {
      if (range.writes != writes || !range.bytes)
        continue;
      uint64_t begin = range.begin, end = begin + range.bytes;
      auto it = segments.upper_bound(begin);
      if (it != segments.begin() && std::prev(it)->second.end > begin) {
        auto before = std::prev(it);
        if (before->first < begin) {
          Segment right = before->second;
          before->second.end = begin;
          it = segments.emplace(begin, std::move(right)).first;
        } else {
          it = before;
        }
      }
      for (uint64_t at = begin; at < end; ++it) {
        if (it == segments.end() || it->first > at) {
          uint64_t stop = it == segments.end() ? end : std::min(end, it->first);
          it = segments.emplace_hint(it, at, Segment{stop, {}, {}});
        }
        if (it->second.end > end) {
          Segment right = it->second;
          it->second.end = end;
          segments.emplace(end, std::move(right));
        }
        Segment &segment = it->second;
        if (!isSame(segment.write, self) && !isBefore(segment.write, clock))
          reportRace(segment.write, true, *work, writes, at, segment.end);
        if (writes) {
          for (const Access &read : segment.reads)
            if (!isSame(read, self) && !isBefore(read, clock))
              reportRace(read, false, *work, true, at, segment.end);
          segment.write = self;
          segment.reads.clear();
        } else {
          auto isOver = [&](const Access &read) { return isBefore(read, clock); };
          segment.reads.erase(std::remove_if(segment.reads.begin(), segment.reads.end(), isOver),
                              segment.reads.end());
          segment.reads.push_back(self);
        }
        at = segment.end;
      }
      if (writes) { // one segment again
        auto first = segments.find(begin);
        segments.erase(std::next(first), segments.lower_bound(end));
        first->second.end = end;
      }
    }
}

void forgetAccesses(uint64_t begin, uint64_t bytes) {
  segments.erase(segments.lower_bound(begin), segments.lower_bound(begin + bytes));
}

void protectPinned(const std::shared_ptr<Work> &work, uint32_t lane, uint32_t tick) {
  for (const StandInRange &range : work->ranges) {
    uint64_t begin;
    Pinned *block = findPinned(range.begin, &begin);
    if (!block)
      continue;
    block->pending.push_back({lane, tick, work->name, range});
    // Whole pages; the rest of a page is not ours to protect.
    uint64_t first = range.begin / kPage * kPage, last = (range.begin + range.bytes + kPage - 1) / kPage * kPage;
    ::mprotect(reinterpret_cast<void *>(first), last - first, range.writes ? PROT_NONE : PROT_READ);
  }
}

void unprotectPinned() {
  for (auto &[address, block] : pinned) {
    if (block.pending.empty())
      continue;
    auto isSeen = [](const Pinned::Use &use) { return use.lane < host.size() && host[use.lane] >= use.tick; };
    if (std::none_of(block.pending.begin(), block.pending.end(), isSeen))
      continue;
    block.pending.erase(std::remove_if(block.pending.begin(), block.pending.end(), isSeen), block.pending.end());
    ::mprotect(reinterpret_cast<void *>(address), block.bytes, PROT_READ | PROT_WRITE);
    for (const Pinned::Use &use : block.pending) {
      uint64_t first = use.range.begin / kPage * kPage;
      uint64_t last = (use.range.begin + use.range.bytes + kPage - 1) / kPage * kPage;
      ::mprotect(reinterpret_cast<void *>(first), last - first, use.range.writes ? PROT_NONE : PROT_READ);
    }
  }
}

bool isPinned(uint64_t address, uint64_t bytes) {
  uint64_t begin;
  Pinned *block = findPinned(address, &begin);
  return block && address + bytes <= begin + block->bytes;
}

/// The host touches device memory, or pinned memory that belongs to a command it has not waited for.
static void onFault(int signal, siginfo_t *info, void *) {
  auto address = reinterpret_cast<uint64_t>(info->si_addr);
  if (isDevice(address)) {
    std::fprintf(stderr, "stand-in: the host touches device address %#" PRIx64 "\n", address);
    ::_exit(97);
  }
  Pinned *block = findPinned(address);
  if (!block) {
    std::signal(signal, SIG_DFL);
    return;
  }
  for (const Pinned::Use &use : block->pending)
    if (use.range.begin <= address && address < use.range.begin + use.range.bytes)
      standInReport(("race: the host touches pinned bytes that " + use.name + (use.range.writes ? " writes" : " reads") +
                     ", for which it has not waited")
                        .c_str());
  uint64_t page = address / kPage * kPage;
  ::mprotect(reinterpret_cast<void *>(page), kPage, PROT_READ | PROT_WRITE);
}

} // namespace standin

using namespace standin;

extern "C" void standInWatchHost() {
  struct sigaction action {};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

STANDIN_API Result cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (Result result = standInEnter("cuMemHostAlloc"))
    return result;
  if (Result result = forbiddenInCapture())
    return result;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  int file = ::memfd_create("pinned", 0);
  if (::ftruncate(file, static_cast<off_t>(bytes)))
    return kOutOfMemory;
  *pointer = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  auto *reach = static_cast<char *>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ::close(file);
  pinned[reinterpret_cast<uint64_t>(*pointer)] = {bytes, reach, {}};
  return kSuccess;
}

STANDIN_API Result cuMemFreeHost(void *pointer) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (Result result = standInEnter("cuMemFreeHost"))
    return result;
  auto it = pinned.find(reinterpret_cast<uint64_t>(pointer));
  if (it == pinned.end())
    return kInvalidValue;
  unprotectPinned();
  for (const Pinned::Use &use : it->second.pending)
    standInReport(("pinned memory is given back while " + use.name + " uses it").c_str());
  forgetAccesses(it->first, it->second.bytes);
  ::munmap(it->second.reach, it->second.bytes);
  ::munmap(pointer, it->second.bytes);
  pinned.erase(it);
  return kSuccess;
}

extern "C" void *standInReachPinned(uint64_t address) {
  uint64_t begin;
  Pinned *block = findPinned(address, &begin);
  return block ? block->reach + (address - begin) : nullptr;
}
