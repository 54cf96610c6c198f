//===- HostsCommunicator.cpp - Collectives across hosts -------------------===//

#include "HostsCommunicator.h"
#include "spmd/Runtime/Core/Reduce.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <sstream>

namespace spmd::runtime {

using std::chrono::milliseconds;

namespace {

constexpr int64_t kSliceBytes = 1 << 20; ///< of a reduction, for each rank of another host
constexpr int64_t kSmallBytes = 64 << 10;

// Tags of messages: errors, and what ranks send each other, by their places in their processes: what the first ranks of
// hosts compare, and data.
constexpr int32_t kErrorTag = 0, kFirstTag = 1;
enum Message : int32_t { kHash, kText, kData, kNumMessages };

/// What is said of a call when ranks made different ones.
struct CallText {
  uint64_t traceHash;
  int32_t id;
  SharedText<1024> text;
  SharedText<512> location;
};

std::string pack(const Status &status) {
  return std::to_string(static_cast<int>(status.code)) + " " + std::to_string(status.rank) + " " +
         std::to_string(status.command) + "\n" + status.location + "\n" + status.message;
}

Status unpack(const std::string &bytes) {
  std::istringstream text(bytes);
  int code = 0;
  Status status;
  text >> code >> status.rank >> status.command;
  text.ignore();
  std::getline(text, status.location);
  std::getline(text, status.message, '\0');
  status.code = static_cast<StatusCode>(code);
  status.isElsewhere = true;
  return status;
}

/// Tells other hosts of the first error, and hears of theirs. Lives as long as somebody tells.
class Alarm {
public:
  Alarm(std::shared_ptr<HostLink> link, int32_t space, std::vector<int64_t> others)
      : link(std::move(link)), space(space), others(std::move(others)) {}

  /// To the processes of other hosts; not what one of them has said.
  void raise(const Status &status) {
    if (status.isElsewhere)
      return;
    std::string bytes = pack(status);
    Messages messages(link, space);
    for (int64_t process : others)
      messages.send(bytes.data(), static_cast<int64_t>(bytes.size()), process, kErrorTag);
    (void)messages.wait(AbortState(), Clock::now() + std::chrono::seconds(1));
  }

  /// Success when nobody has said anything.
  Status hear() {
    std::string bytes;
    return Messages(link, space).take(kErrorTag, bytes) ? unpack(bytes) : Status::success();
  }

private:
  std::shared_ptr<HostLink> link;
  int32_t space;
  std::vector<int64_t> others; ///< processes
};

class HostsGroup;

/// What one rank calls: its end of the communicator.
class HostsCommunicator final : public Communicator {
public:
  HostsCommunicator(HostsGroup &group, HostRanks &host, const Hosts &hosts, const std::vector<int64_t> &members,
                    int64_t rank);

  Status run(const Collective &call, void *const *buffers, Stream *stream) override;

private:
  Status allGather(const Collective &call, const char *send, char *recv);
  Status reduceScatter(const Collective &call, void *recv);
  Status allReduce(const Collective &call, void *const *buffers);
  Status begin(const Collective &call, void *const *buffers);
  Status compareHosts(const Collective &call);
  Status exchange(const Collective &call, Message message, const std::vector<char> &mine, std::vector<char> &all,
                  int64_t bytesOfRank);
  Status finish(Messages &messages, const Collective &call);
  Status meet(const Collective &call);
  int32_t tagOf(int64_t from, int64_t to, Message message = kData) const;
  /// Where a rank stands among those that meet.
  int64_t positionOf(int64_t of) const { return positions[static_cast<size_t>(of)]; }
  const void *&inputOf(int64_t of) { return inputs[static_cast<size_t>(positionOf(of))]; }

  using Place = std::function<char *(int64_t rank)>;
  Status gatherParts(const Collective &call, const std::function<int64_t(int64_t rank)> &bytesOf, size_t buffer,
                     const char *mine, const Place &place);
  Status reducePart(const Collective &call, ReductionKind kind, size_t buffer,
                    const std::function<std::pair<int64_t, int64_t>(int64_t rank)> &partOf, void *out);
  Status reduceSmall(const Collective &call, void *const *buffers);

  HostsGroup &group;
  HostRanks &host;
  const Hosts &hosts;
  const std::vector<int64_t> &members; ///< the ranks that meet, in order
  const int64_t rank, ranks;           ///< this one, and how many meet
  std::vector<int64_t> positions;      ///< by rank
  std::vector<int64_t> remote;         ///< members of other hosts, in order
  std::vector<char> staging;           ///< two slices of each remote rank
  std::vector<const void *> inputs;    ///< scratch: one pointer per member
};

class HostsGroup final : public CommunicatorGroup {
public:
  HostsGroup(const RanksHere &here, const RankGroups &groups, std::vector<std::unique_ptr<HostRanks>> given,
             std::vector<Hosts> where, std::shared_ptr<HostLink> carrier, int32_t space, ClaimFirst claimFirst)
      : link(std::move(carrier)), space(space), claimFirst(std::move(claimFirst)), here(here), groups(groups),
        parts(std::move(given)), hosts(std::move(where)) {
    std::vector<int64_t> others;
    for (int64_t process = 0; process < here.processes(); ++process)
      if (!hosts.front().isHere(process * here.count))
        others.push_back(process);
    alarm = std::make_shared<Alarm>(link, space, std::move(others));
    first().abort.onFailure([alarm = alarm](const Status &status) { alarm->raise(status); });
    for (int64_t rank = here.first; rank < here.end(); ++rank) {
      size_t number = this->groups.groupOf(rank);
      endpoints.push_back(std::make_unique<HostsCommunicator>(*this, *parts[number], hosts[number],
                                                              this->groups.membersOf(number), rank));
    }
    watcher = std::thread([this] { watch(); });
  }
  ~HostsGroup() override {
    isClosing = true;
    watcher.join();
  }
  Communicator &endpoint(int64_t rank) override { return *endpoints[here.indexOf(rank)]; }
  bool failEverywhere(const Status &status) override {
    first().fail(findCause(status));
    return true;
  }

  std::shared_ptr<HostLink> link;
  int32_t space;

private:
  /// What `status` comes of: another process's error that is on its way here, or its end.
  Status findCause(const Status &status) {
    const AbortState &abort = first().abort;
    auto await = [&](milliseconds patience, auto isThere) {
      for (Clock::time_point end = Clock::now() + patience; !abort.isRaised() && !isThere() && Clock::now() < end;)
        std::this_thread::sleep_for(milliseconds(5));
    };
    if (abort.isRaised())
      return abort.status();
    if (!claimFirst())
      await(kWords, [] { return false; });
    // A process that is gone fails the others in their ways, often before the system has said so.
    await(kNews, [&] { return link->hasLost(); });
    Status ended;
    if (link->hasLost())
      await(kWords, [&] { return !(ended = link->findEnded(here)).ok(); });
    return abort.isRaised() ? abort.status() : ended.ok() ? status : ended;
  }
  /// A part that this process has; all share the first error.
  HostRanks &first() { return *parts[groups.groupOf(here.first)]; }
  void watch() {
    for (; !isClosing; std::this_thread::sleep_for(milliseconds(20)))
      if (Status status = alarm->hear(); !status.ok())
        first().fail(status);
  }

  /// How long another process's error may be on its way, and the news of its end.
  static constexpr milliseconds kWords{1500}, kNews{50};

  ClaimFirst claimFirst;
  RanksHere here;
  RankGroups groups;
  std::vector<std::unique_ptr<HostRanks>> parts; ///< by group
  std::vector<Hosts> hosts;                      ///< by group
  std::shared_ptr<Alarm> alarm;
  std::vector<std::unique_ptr<HostsCommunicator>> endpoints;
  std::atomic<bool> isClosing = false;
  std::thread watcher;
};

} // namespace

HostsCommunicator::HostsCommunicator(HostsGroup &group, HostRanks &host, const Hosts &hosts,
                                     const std::vector<int64_t> &members, int64_t rank)
    : group(group), host(host), hosts(hosts), members(members), rank(rank),
      ranks(static_cast<int64_t>(members.size())), positions(static_cast<size_t>(host.here.total)),
      inputs(members.size()) {
  for (size_t i = 0; i < members.size(); ++i) {
    positions[static_cast<size_t>(members[i])] = static_cast<int64_t>(i);
    if (!hosts.isHere(members[i]))
      remote.push_back(members[i]);
  }
  // Small reductions keep their own values there, even of a group that is all on this host.
  staging.resize(std::max<size_t>(remote.size(), 1) * 2 * kSliceBytes);
}

int32_t HostsCommunicator::tagOf(int64_t from, int64_t to, Message message) const {
  int64_t count = host.here.count;
  return static_cast<int32_t>(kFirstTag + (from % count * count + to % count) * kNumMessages + message);
}

/// With the ranks of this host, of which one may wait for another host.
Status HostsCommunicator::meet(const Collective &call) {
  return host.meet(rank, call, host.timeout * 3 / 20 + milliseconds(100));
}

/// Waits for messages. A host of which a rank is missing says so first, so this one waits a little longer; the executor,
/// who knows less, is the last (HostExecutor::step).
Status HostsCommunicator::finish(Messages &messages, const Collective &call) {
  WaitResult result = messages.wait(host.abort, Clock::now() + host.timeout + host.timeout / 10 + milliseconds(50));
  if (result == WaitResult::Reached)
    return Status::success();
  if (result == WaitResult::TimedOut)
    host.fail(collectiveTimeOut(host.name, std::chrono::duration<double>(host.timeout).count(),
                                messages.missing().empty() ? remote : messages.missing(), call));
  else if (!host.abort.isRaised())
    host.fail(messages.error());
  return host.abort.status();
}

/// Between the first ranks of hosts: `mine` has bytesOfRank of each rank of this host, `all` gets those of all ranks.
Status HostsCommunicator::exchange(const Collective &call, Message message, const std::vector<char> &mine,
                                   std::vector<char> &all, int64_t bytesOfRank) {
  const RanksHere &here = host.here;
  Messages messages(group.link, group.space);
  std::vector<std::vector<char>> received(hosts.ranksOf.size());
  for (size_t host = 0; host < hosts.ranksOf.size(); ++host) {
    if (static_cast<int64_t>(host) == hosts.self) {
      received[host] = mine;
      continue;
    }
    if (hosts.ranksOf[host].empty())
      continue;
    received[host].resize(hosts.ranksOf[host].size() * static_cast<size_t>(bytesOfRank));
    int64_t other = hosts.ranksOf[host].front(), process = here.processOf(other);
    messages.receive(received[host].data(), static_cast<int64_t>(received[host].size()), process,
                     tagOf(other, rank, message), other);
    messages.send(mine.data(), static_cast<int64_t>(mine.size()), process, tagOf(rank, other, message));
  }
  if (Status status = finish(messages, call); !status.ok())
    return status;
  all.resize(static_cast<size_t>(ranks * bytesOfRank));
  for (size_t host = 0; host < received.size(); ++host)
    for (size_t i = 0; i < hosts.ranksOf[host].size(); ++i)
      std::memcpy(all.data() + positionOf(hosts.ranksOf[host][i]) * bytesOfRank, received[host].data() + static_cast<int64_t>(i) * bytesOfRank,
                  static_cast<size_t>(bytesOfRank));
  return Status::success();
}

/// That all ranks of all hosts make the same call.
Status HostsCommunicator::compareHosts(const Collective &call) {
  auto packed = [&](auto valueOf) {
    using Value = decltype(valueOf(int64_t(0)));
    std::vector<char> bytes(host.members.size() * sizeof(Value));
    for (size_t i = 0; i < host.members.size(); ++i) {
      Value value = valueOf(host.members[i]);
      std::memcpy(bytes.data() + i * sizeof(Value), &value, sizeof(Value));
    }
    return bytes;
  };
  std::vector<char> all;
  Status status = exchange(call, kHash, packed([&](int64_t member) { return host.hashOf(member); }), all, sizeof(uint64_t));
  if (!status.ok())
    return status;
  std::vector<uint64_t> hashes(static_cast<size_t>(ranks));
  std::memcpy(hashes.data(), all.data(), all.size());
  auto other = std::find_if(hashes.begin(), hashes.end(), [&](uint64_t hash) { return hash != hashes[0]; });
  if (other == hashes.end())
    return Status::success();
  auto textOf = [&](int64_t member) {
    CollectiveText given = host.textOf(member);
    CallText text = {};
    text.traceHash = given.traceHash;
    text.id = given.id;
    text.text.set(given.text);
    text.location.set(given.location);
    return text;
  };
  if (status = exchange(call, kText, packed(textOf), all, sizeof(CallText)); !status.ok())
    return status;
  auto said = [&](int64_t of) {
    CallText text;
    std::memcpy(&text, all.data() + of * static_cast<int64_t>(sizeof(CallText)), sizeof text);
    return CollectiveText{text.text.get(), text.location.get(), text.id, text.traceHash};
  };
  int64_t which = other - hashes.begin();
  status = collectiveMismatch(host.name, members.front(), said(0), members[static_cast<size_t>(which)], said(which));
  // All hosts of the group have found it.
  status.isElsewhere = !hosts.isHere(members.front());
  host.fail(status);
  return status;
}

Status HostsCommunicator::begin(const Collective &call, void *const *buffers) {
  Status status = host.publish(rank, call, buffers, call.key.numBuffers());
  if (status.ok())
    status = host.meet(rank, call);
  if (status.ok() && rank == host.members.front())
    status = compareHosts(call);
  return status.ok() ? meet(call) : status;
}

/// Each rank has a part, of bytesOf(rank) bytes, of buffer number `buffer`, which goes to place(rank) on all ranks.
Status HostsCommunicator::gatherParts(const Collective &call, const std::function<int64_t(int64_t)> &bytesOf,
                                      size_t buffer, const char *mine, const Place &place) {
  Messages messages(group.link, group.space);
  for (int64_t other : remote)
    if (hosts.receiverOf(other, hosts.self) == rank && bytesOf(other))
      messages.receive(place(other), bytesOf(other), host.here.processOf(other), tagOf(other, rank), other);
  for (size_t to = 0; to < hosts.ranksOf.size(); ++to)
    if (static_cast<int64_t>(to) != hosts.self && !hosts.ranksOf[to].empty() && bytesOf(rank)) {
      int64_t receiver = hosts.receiverOf(rank, static_cast<int64_t>(to));
      messages.send(mine, bytesOf(rank), host.here.processOf(receiver), tagOf(rank, receiver));
    }
  // Meanwhile what this host has; addresses in another's buffer are those in one's own.
  auto copyFrom = [&](int64_t owner, const char *source, char *destination) {
    if (source != destination && bytesOf(owner))
      std::memcpy(destination, source, static_cast<size_t>(bytesOf(owner)));
  };
  const char *base = host.bufferOf(rank, buffer);
  for (int64_t member : host.members)
    if (call.key.kind == CollectiveKind::AllGather)
      copyFrom(member, host.bufferOf(member, 0), place(member));
    else if (member != rank)
      copyFrom(member, host.bufferOf(member, buffer) + (place(member) - base), place(member));
  if (Status status = finish(messages, call); !status.ok())
    return status;
  if (Status status = meet(call); !status.ok())
    return status;
  for (int64_t other : remote)
    if (int64_t receiver = hosts.receiverOf(other, hosts.self); receiver != rank)
      copyFrom(other, host.bufferOf(receiver, buffer) + (place(other) - base), place(other));
  return meet(call);
}

Status HostsCommunicator::run(const Collective &call, void *const *buffers, Stream *) {
  if (Status status = begin(call, buffers); !status.ok())
    return status;
  CollectiveKind kind = call.key.kind;
  if (kind == CollectiveKind::AllGather)
    return allGather(call, static_cast<const char *>(buffers[0]), static_cast<char *>(buffers[1]));
  if (kind == CollectiveKind::ReduceScatter)
    return reduceScatter(call, buffers[1]);
  if (kind == CollectiveKind::AllReduce)
    return allReduce(call, buffers);
  return collectiveMissing(host.name, call);
}

Status HostsCommunicator::allGather(const Collective &call, const char *send, char *recv) {
  int64_t bytes = call.key.messageBytes();
  return gatherParts(
      call, [&](int64_t) { return bytes; }, 1, send, [&](int64_t owner) { return recv + positionOf(owner) * bytes; });
}

/// Combines this rank's part of buffer number `buffer` of all ranks into `out`; partOf(rank) is where a rank's part
/// begins, in bytes, and its elements.
Status HostsCommunicator::reducePart(const Collective &call, ReductionKind kind, size_t buffer,
                                     const std::function<std::pair<int64_t, int64_t>(int64_t)> &partOf, void *out) {
  int64_t size = sizeOf(call.key.dtype), slice = kSliceBytes / size, most = 0;
  for (int64_t owner : members)
    most = std::max(most, partOf(owner).second);
  const char *own = host.bufferOf(rank, buffer);
  const int64_t begin = partOf(rank).first, count = partOf(rank).second;
  auto stagingOf = [&](size_t which, int64_t turn) {
    return staging.data() + (which * 2 + static_cast<size_t>(turn % 2)) * kSliceBytes;
  };
  auto elementsIn = [&](int64_t of, int64_t turn) { return std::clamp<int64_t>(of - turn * slice, 0, slice); };
  // The messages of one slice travel while the one before is combined.
  std::vector<Messages> underWay;
  auto post = [&](int64_t turn) {
    Messages &messages = underWay.emplace_back(group.link, group.space);
    for (size_t i = 0; i < remote.size(); ++i) {
      int64_t other = remote[i], process = host.here.processOf(other);
      auto [otherBegin, otherCount] = partOf(other);
      if (int64_t elements = elementsIn(count, turn))
        messages.receive(stagingOf(i, turn), elements * size, process, tagOf(other, rank), other);
      if (int64_t elements = elementsIn(otherCount, turn))
        messages.send(own + otherBegin + turn * slice * size, elements * size, process, tagOf(rank, other));
    }
  };
  int64_t turns = (most + slice - 1) / slice;
  if (turns)
    post(0);
  for (int64_t turn = 0; turn < turns; ++turn) {
    if (Status status = finish(underWay.front(), call); !status.ok())
      return status;
    underWay.erase(underWay.begin());
    if (turn + 1 < turns)
      post(turn + 1);
    int64_t elements = elementsIn(count, turn);
    if (elements == 0)
      continue;
    for (int64_t member : host.members)
      inputOf(member) = host.bufferOf(member, buffer) + begin + turn * slice * size;
    for (size_t i = 0; i < remote.size(); ++i)
      inputOf(remote[i]) = stagingOf(i, turn);
    reduceInOrder(call.key.dtype, kind, inputs.data(), ranks, static_cast<char *>(out) + turn * slice * size, elements);
  }
  return Status::success();
}

Status HostsCommunicator::reduceScatter(const Collective &call, void *recv) {
  int64_t bytes = call.key.messageBytes(), count = call.key.counts[0];
  auto partOf = [&](int64_t owner) { return std::pair(positionOf(owner) * bytes, count); };
  // In place, a rank overwrites its own part, which no other rank reads.
  Status status = reducePart(call, call.key.kinds[0], 0, partOf, recv);
  return status.ok() ? meet(call) : status;
}

/// Everybody gets everything.
Status HostsCommunicator::reduceSmall(const Collective &call, void *const *buffers) {
  const CollectiveKey &key = call.key;
  int64_t size = sizeOf(key.dtype), bytes = call.key.messageBytes();
  // Own values and results behind the slots of the others, as all slices are far larger.
  char *mine = staging.data() + kSliceBytes, *results = mine + kSmallBytes;
  char *at = mine;
  for (size_t i = 0; i < key.counts.size(); at += key.counts[i] * size, ++i)
    std::memcpy(at, buffers[i], static_cast<size_t>(key.counts[i] * size));
  Messages messages(group.link, group.space);
  auto slotOf = [&](size_t which) { return staging.data() + which * 2 * kSliceBytes; };
  for (size_t i = 0; i < remote.size(); ++i) {
    int64_t process = host.here.processOf(remote[i]);
    messages.receive(slotOf(i), bytes, process, tagOf(remote[i], rank), remote[i]);
    messages.send(mine, bytes, process, tagOf(rank, remote[i]));
  }
  if (Status status = finish(messages, call); !status.ok())
    return status;
  int64_t offset = 0;
  for (size_t i = 0; i < key.counts.size(); offset += key.counts[i] * size, ++i) {
    for (int64_t member : host.members)
      inputOf(member) = host.bufferOf(member, i);
    for (size_t which = 0; which < remote.size(); ++which)
      inputOf(remote[which]) = slotOf(which) + offset;
    reduceInOrder(key.dtype, key.kinds[i], inputs.data(), ranks, results + offset, key.counts[i]);
  }
  // Nobody reads another's buffers any more.
  if (Status status = meet(call); !status.ok())
    return status;
  offset = 0;
  for (size_t i = 0; i < key.counts.size(); offset += key.counts[i] * size, ++i)
    std::memcpy(buffers[i], results + offset, static_cast<size_t>(key.counts[i] * size));
  return Status::success();
}

Status HostsCommunicator::allReduce(const Collective &call, void *const *buffers) {
  const CollectiveKey &key = call.key;
  if (call.key.messageBytes() <= kSmallBytes)
    return reduceSmall(call, buffers);
  int64_t size = sizeOf(key.dtype);
  for (size_t i = 0; i < key.counts.size(); ++i) {
    int64_t count = key.counts[i], part = ((count + ranks - 1) / ranks + 15) / 16 * 16;
    auto partOf = [&](int64_t owner) {
      int64_t begin = std::min(count, positionOf(owner) * part);
      return std::pair(begin * size, std::min(count, begin + part) - begin);
    };
    auto *base = static_cast<char *>(buffers[i]);
    Status status = reducePart(call, key.kinds[i], i, partOf, base + partOf(rank).first);
    if (status.ok())
      status = meet(call);
    if (status.ok())
      status = gatherParts(
          call, [&](int64_t owner) { return partOf(owner).second * size; }, i, base + partOf(rank).first,
          [&](int64_t owner) { return base + partOf(owner).first; });
    if (!status.ok())
      return status;
  }
  return Status::success();
}

Expected<std::unique_ptr<CommunicatorGroup>> makeHostsGroup(const RanksHere &here, const RankGroups &groups,
                                                            std::vector<std::unique_ptr<HostRanks>> parts,
                                                            std::vector<Hosts> hosts, std::shared_ptr<HostLink> link,
                                                            int32_t space, ClaimFirst claimFirst) {
  return std::unique_ptr<CommunicatorGroup>(std::make_unique<HostsGroup>(
      here, groups, std::move(parts), std::move(hosts), std::move(link), space, std::move(claimFirst)));
}

} // namespace spmd::runtime
