//===- CertificateMemory.cpp ----------------------------------------------===//

#include "CertificateMemory.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace spmd::runtime;

namespace {

// What the runtime itself does around the commands of a step: it has written
// state, batch and hyper-parameters before the first, and reads state and
// outputs after the last.
constexpr int32_t kStepBegin = -1;
constexpr int32_t kStepEnd = -2;

/// One access to a buffer; offsets are relative to the buffer, for one rank.
struct Site {
  int32_t command;
  const Ref *ref; ///< null for the runtime's own
  int64_t begin, end;
  bool reads, writes;

  bool overlaps(const Site &other) const { return begin < other.end && other.begin < end; }
};

/// When a buffer is alive.
struct Lifetime {
  bool used = false;
  bool fromBegin = false, toEnd = false;
  std::vector<uint32_t> firstClock; ///< minimum over its accesses
  std::vector<uint32_t> lastCount;  ///< per stream: position after the last
};

class MemoryChecker {
public:
  MemoryChecker(const Manifest &manifest, const Plan &plan, const HappensBefore &order)
      : manifest(manifest), plan(plan), order(order), sites(plan.buffers.size()), lifetimes(plan.buffers.size()) {}

  Status check();

private:
  Status bindManifest();
  Status bind(const std::string &what, std::optional<int64_t> buffer, int64_t offset, int64_t bytes, bool isOutput);
  void collectSites();
  void computeLifetimes();
  bool wholeLifeBefore(const Lifetime &a, const Lifetime &b) const;
  Status checkLifetimes() const;
  Status checkBuffer(size_t buffer);
  Status checkConflicts(const std::vector<Site> &accesses, size_t buffer) const;
  Status checkWritten(const std::vector<Site> &accesses, size_t buffer) const;

  bool before(int32_t a, int32_t b) const {
    if (a == kStepBegin || b == kStepEnd)
      return a != b;
    if (a == kStepEnd || b == kStepBegin)
      return false;
    return order.ordered(a, b);
  }
  std::string bufferName(size_t buffer) const {
    return "buffer " + std::to_string(buffer) + " ('" + plan.buffers[buffer].name + "')";
  }
  std::string siteName(const Site &site) const {
    if (site.command == kStepBegin)
      return "the start of the step";
    if (site.command == kStepEnd)
      return "the end of the step";
    return describeCommand(plan, site.command);
  }

  const Manifest &manifest;
  const Plan &plan;
  const HappensBefore &order;
  std::vector<std::vector<Site>> sites; ///< per buffer, for rank 0
  std::vector<Lifetime> lifetimes;      ///< per buffer
};

} // namespace

BoundBuffer spmd::runtime::findBoundBuffer(const Plan &plan, std::optional<int64_t> named, int64_t offset,
                                           int64_t bytes) {
  BoundBuffer bound;
  for (const Buffer &buffer : plan.buffers) {
    bound.isTouched |= buffer.offset < offset + bytes && offset < buffer.offset + buffer.bytes;
    bool isCandidate = named ? buffer.id == *named : buffer.state || buffer.memoryClass == "io";
    if (!isCandidate || buffer.offset > offset || offset + bytes > buffer.offset + buffer.bytes)
      continue;
    bound.isAmbiguous = bound.buffer != nullptr;
    bound.buffer = &buffer;
  }
  return bound;
}

/// Finds the buffer of something the manifest places in the arena, and records
/// the runtime's access to it.
Status MemoryChecker::bind(const std::string &what, std::optional<int64_t> named, int64_t offset, int64_t bytes,
                           bool isOutput) {
  if (bytes == 0)
    return Status::success();
  BoundBuffer bound = findBoundBuffer(plan, named, offset, bytes);
  const Buffer *found = bound.buffer;
  if (bound.isAmbiguous)
    return Status::badInput("certificate rule 4: " + what +
                            " lies in several buffers; the manifest must say "
                            "which by \"buffer\"");
  if (!found) {
    // A tensor that the program does not use needs no buffer.
    if (!bound.isTouched && !isOutput)
      return Status::success();
    return Status::badInput("certificate rule 4: " + what + " at bytes [" + std::to_string(offset) + ", " +
                            std::to_string(offset + bytes) + ") lies in no state or io buffer");
  }
  int64_t begin = offset - found->offset;
  sites[static_cast<size_t>(found->id)].push_back(
      {isOutput ? kStepEnd : kStepBegin, nullptr, begin, begin + bytes, isOutput, !isOutput});
  return Status::success();
}

Status MemoryChecker::bindManifest() {
  for (const StateEntry &entry : manifest.state) {
    std::string what = entry.state + " of '" + (entry.name.empty() ? entry.unit : entry.name) + "'";
    if (Status s = bind(what, entry.buffer, entry.offset, entry.bytes(), false); !s.ok())
      return s;
  }
  for (const BatchInput &input : manifest.batch)
    if (Status s = bind("batch input '" + input.name + "'", input.buffer, input.offset, input.localBytes(), false);
        !s.ok())
      return s;
  for (const HyperParameter &hyper : manifest.hyper)
    if (Status s = bind("hyper-parameter '" + hyper.name + "'", hyper.buffer, hyper.offset, sizeOf(hyper.dtype), false);
        !s.ok())
      return s;
  for (const Output &output : manifest.outputs)
    if (Status s = bind("output '" + output.path + "'", output.buffer, output.offset, output.localBytes(), true);
        !s.ok())
      return s;
  return Status::success();
}

void MemoryChecker::collectSites() {
  std::vector<int64_t> origin(manifest.mesh.size());
  for (size_t id = 0; id < plan.commands.size(); ++id)
    for (const Ref &ref : plan.commands[id].refs)
      if (ref.bytes > 0) {
        int64_t begin = ref.offsetAt(origin);
        sites[static_cast<size_t>(ref.buffer)].push_back(
            {static_cast<int32_t>(id), &ref, begin, begin + ref.bytes, ref.reads(), ref.writes()});
      }
}

void MemoryChecker::computeLifetimes() {
  for (size_t i = 0; i < sites.size(); ++i) {
    Lifetime &life = lifetimes[i];
    life.used = !sites[i].empty();
    life.fromBegin = life.toEnd = plan.buffers[i].state;
    life.firstClock.assign(order.streamCount(), UINT32_MAX);
    life.lastCount.assign(order.streamCount(), 0);
    for (const Site &site : sites[i]) {
      if (site.command < 0) {
        (site.command == kStepBegin ? life.fromBegin : life.toEnd) = true;
        continue;
      }
      auto stream = static_cast<size_t>(plan.commands[static_cast<size_t>(site.command)].stream);
      const uint32_t *clock = order.clock(site.command);
      for (size_t s = 0; s < order.streamCount(); ++s)
        life.firstClock[s] = std::min(life.firstClock[s], clock[s]);
      life.lastCount[stream] = std::max(life.lastCount[stream], order.position(site.command) + 1);
    }
  }
}

/// Every access of `a` is complete before any access of `b` starts.
bool MemoryChecker::wholeLifeBefore(const Lifetime &a, const Lifetime &b) const {
  if (a.toEnd || b.fromBegin)
    return false;
  for (size_t s = 0; s < order.streamCount(); ++s)
    if (a.lastCount[s] > b.firstClock[s])
      return false;
  return true;
}

Status MemoryChecker::checkLifetimes() const {
  std::vector<size_t> byOffset;
  for (size_t i = 0; i < sites.size(); ++i)
    if (lifetimes[i].used && plan.buffers[i].bytes > 0)
      byOffset.push_back(i);
  std::sort(byOffset.begin(), byOffset.end(), [&](size_t a, size_t b) {
    return std::make_pair(plan.buffers[a].offset, a) < std::make_pair(plan.buffers[b].offset, b);
  });
  std::vector<size_t> open; // buffers whose bytes reach the current offset
  for (size_t current : byOffset) {
    int64_t offset = plan.buffers[current].offset;
    open.erase(
        std::remove_if(open.begin(), open.end(),
                       [&](size_t other) { return plan.buffers[other].offset + plan.buffers[other].bytes <= offset; }),
        open.end());
    for (size_t other : open) {
      if (wholeLifeBefore(lifetimes[current], lifetimes[other]) ||
          wholeLifeBefore(lifetimes[other], lifetimes[current]))
        continue;
      // Name a pair of accesses that is not ordered as the lives should be.
      const Site &a = sites[other].back(), &b = sites[current].front();
      Status status =
          Status::badInput("certificate rule 4: " + bufferName(other) + " and " + bufferName(current) +
                           " share bytes of the arena and are alive together: " + siteName(a) + " and " + siteName(b));
      status.command = std::max(a.command, b.command);
      return status;
    }
    open.push_back(current);
  }
  return Status::success();
}

/// In the order of their first bytes, accesses that overlap follow each other.
Status MemoryChecker::checkConflicts(const std::vector<Site> &accesses, size_t buffer) const {
  std::vector<size_t> byBegin(accesses.size());
  std::iota(byBegin.begin(), byBegin.end(), 0);
  std::sort(byBegin.begin(), byBegin.end(), [&](size_t a, size_t b) {
    return std::make_pair(accesses[a].begin, a) < std::make_pair(accesses[b].begin, b);
  });
  auto conflict = [&](const Site &a, const Site &b) {
    return a.command != b.command && (a.writes || b.writes) && a.overlaps(b) && !before(a.command, b.command) &&
           !before(b.command, a.command);
  };
  // Of several the first one in the order of the accesses.
  std::pair<size_t, size_t> found(accesses.size(), 0);
  for (size_t at = 0; at < byBegin.size(); ++at)
    for (size_t behind = at + 1; behind < byBegin.size() && accesses[byBegin[behind]].begin < accesses[byBegin[at]].end;
         ++behind) {
      auto [earlier, later] = std::minmax(byBegin[at], byBegin[behind]);
      if (std::make_pair(later, earlier) < found && conflict(accesses[earlier], accesses[later]))
        found = {later, earlier};
    }
  if (found.first == accesses.size())
    return Status::success();
  return certificateError(plan, accesses[found.first].command, 5,
                          "is not ordered with " + siteName(accesses[found.second]) +
                              ", and both access the same bytes of " + bufferName(buffer));
}

Status MemoryChecker::checkWritten(const std::vector<Site> &accesses, size_t buffer) const {
  // Most of what is read often is there when the step begins.
  std::vector<const Site *> fromBegin;
  for (const Site &access : accesses)
    if (access.writes && access.command == kStepBegin)
      fromBegin.push_back(&access);
  auto covers = [&](const Site &write, const Site &read) {
    return write.begin <= read.begin && read.end <= write.end && before(write.command, read.command);
  };
  // Most of the rest was written as it is read, as what is added up is again and again: the last write of each range.
  std::map<std::pair<int64_t, int64_t>, const Site *> lastWrites;
  auto isWrittenAlike = [&](const Site &read) {
    auto last = lastWrites.find({read.begin, read.end});
    return last != lastWrites.end() && before(last->second->command, read.command);
  };
  std::vector<std::pair<int64_t, int64_t>> written;
  for (const Site &read : accesses) {
    bool isWritten = read.reads && isWrittenAlike(read);
    if (read.writes)
      lastWrites[{read.begin, read.end}] = &read;
    if (!read.reads || isWritten || std::any_of(fromBegin.begin(), fromBegin.end(), [&](const Site *write) {
          return write != &read && covers(*write, read);
        }))
      continue;
    written.clear();
    for (const Site &write : accesses)
      if (write.writes && write.overlaps(read) && before(write.command, read.command))
        written.emplace_back(write.begin, write.end);
    std::sort(written.begin(), written.end());
    int64_t covered = read.begin;
    for (auto [begin, end] : written)
      if (begin <= covered)
        covered = std::max(covered, end);
    if (covered >= read.end)
      continue;
    std::string what =
        "reads byte " + std::to_string(covered) + " of " + bufferName(buffer) + ", which nothing wrote before";
    if (read.command < 0)
      return Status::badInput("certificate rule 6: " + siteName(read) + " " + what);
    return certificateError(plan, read.command, 6, what);
  }
  return Status::success();
}

/// Rules 5 and 6 for one buffer: once, or for every rank when some offset
/// depends on the rank.
Status MemoryChecker::checkBuffer(size_t buffer) {
  std::vector<Site> &accesses = sites[buffer];
  bool everyRank = std::any_of(accesses.begin(), accesses.end(),
                               [](const Site &site) { return site.ref && site.ref->dependsOnRank(); });
  for (int64_t rank = 0; rank < (everyRank ? manifest.ranks : 1); ++rank) {
    std::vector<int64_t> coordinates = manifest.coordinatesOf(rank);
    for (Site &site : accesses)
      if (site.ref) {
        site.begin = site.ref->offsetAt(coordinates);
        site.end = site.begin + site.ref->bytes;
      }
    if (Status s = checkConflicts(accesses, buffer); !s.ok())
      return s;
    if (Status s = checkWritten(accesses, buffer); !s.ok())
      return s;
  }
  return Status::success();
}

Status MemoryChecker::check() {
  if (Status s = bindManifest(); !s.ok())
    return s;
  collectSites();
  computeLifetimes();
  if (Status s = checkLifetimes(); !s.ok())
    return s;
  for (size_t buffer = 0; buffer < sites.size(); ++buffer)
    if (Status s = checkBuffer(buffer); !s.ok())
      return s;
  return Status::success();
}

Status spmd::runtime::checkMemory(const Manifest &manifest, const Plan &plan, const HappensBefore &order) {
  return MemoryChecker(manifest, plan, order).check();
}
