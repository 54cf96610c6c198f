//===- ToyCommunicator.cpp ------------------------------------------------===//

#include "ToyCommunicator.h"
#include "ToyMemory.h"
#include "ToyStream.h"
#include "Wire.h"
#include "spmd/Runtime/Core/Reduce.h"

#include <algorithm>

using namespace toy;
using namespace spmd::runtime;

namespace {

/// Every rank sends every other what that needs, and each combines for itself.
class ToyCommunicator final : public CommunicatorGroup, public Communicator {
public:
  ToyCommunicator(std::string name, std::shared_ptr<Mail> given, const RankGroups &groups, AbortState &abort,
                  Clock::duration timeout)
      : name(std::move(name)), mail(std::move(given)), members(groups.membersOf(groups.groupOf(mail->rank()))),
        self(static_cast<size_t>(groups.positionOf(mail->rank()))), abort(abort), timeout(timeout),
        channel(mail->open(abort)) {}
  ~ToyCommunicator() override { mail->close(channel); }

  Communicator &endpoint(int64_t) override { return *this; }

  Status run(const Collective &call, void *const *buffers, Stream *stream) override;

private:
  Status allGather(const Collective &call, const void *send, void *recv, Stream *stream);
  Status reduceScatter(const Collective &call, const void *send, void *recv, Stream *stream);
  Status allReduce(const Collective &call, void *const *buffers, Stream *stream);
  Status issue(Stream *stream, std::function<Status()> work);
  using Pieces = std::vector<std::string>;
  Status exchange(const Collective &call, const std::function<std::string(size_t)> &pieceFor, Pieces &pieces);
  Status compare(const Pieces &messages, Pieces &pieces);
  static void combine(const Collective &call, size_t index, const Pieces &pieces, size_t begin, void *out);

  std::string name;
  std::shared_ptr<Mail> mail;
  std::vector<int64_t> members; ///< the ranks of this one's group
  size_t self;                  ///< its place among them
  AbortState &abort;
  Clock::duration timeout;
  uint32_t channel;
};

} // namespace

Status ToyCommunicator::issue(Stream *stream, std::function<Status()> work) {
  static_cast<ToyStream *>(stream)->issue([this, work = std::move(work)] {
    Status status = abort.isRaised() ? abort.status() : work();
    if (!status.ok())
      abort.fail(status);
    return status.ok() ? status : abort.status();
  });
  return abort.status();
}

/// Sends each peer its piece, by its place in the group, and takes theirs; one's own is among them.
Status ToyCommunicator::exchange(const Collective &call, const std::function<std::string(size_t)> &pieceFor,
                                 Pieces &pieces) {
  std::string description = pack(call);
  for (size_t peer = 0; peer < members.size(); ++peer)
    if (peer != self)
      mail->send(members[peer], channel, (Writer() << description << pieceFor(peer)).bytes);
  Pieces messages(members.size());
  messages[self] = (Writer() << description << pieceFor(self)).bytes;
  std::vector<int64_t> missing;
  Clock::time_point deadline = Clock::now() + timeout;
  for (size_t place = 0; place < members.size(); ++place) {
    int64_t peer = members[place];
    if (place == self)
      continue;
    switch (mail->receive(peer, channel, deadline, abort, messages[place])) {
    case Arrival::Here:
      break;
    case Arrival::Aborted:
      return abort.status();
    case Arrival::TimedOut:
      missing.push_back(peer);
      break;
    case Arrival::Ended:
      return Status::failed("the process of rank " + std::to_string(peer) + " ended before " + call.describe(),
                            static_cast<int32_t>(peer), call.id, call.location);
    }
  }
  if (!missing.empty())
    return collectiveTimeOut(name, std::chrono::duration<double>(timeout).count(), missing, call);
  return compare(messages, pieces);
}

Status ToyCommunicator::compare(const Pieces &messages, Pieces &pieces) {
  std::vector<Collective> calls(messages.size());
  pieces.resize(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    std::string description;
    Reader(messages[i]) >> description >> pieces[i];
    Reader reader(description);
    reader >> calls[i];
  }
  for (size_t i = 1; i < calls.size(); ++i)
    if (calls[i].hash != calls[0].hash)
      return collectiveMismatch(name, members[0], calls[0], members[i], calls[i]);
  return Status::success();
}

/// Combines what begins at byte `begin` of all pieces.
void ToyCommunicator::combine(const Collective &call, size_t index, const Pieces &pieces, size_t begin, void *out) {
  std::vector<const void *> inputs;
  for (const std::string &piece : pieces)
    inputs.push_back(piece.data() + begin);
  reduceInOrder(call.key.dtype, call.key.kinds[index], inputs.data(), static_cast<int64_t>(inputs.size()), out,
                call.key.counts[index]);
}

Status ToyCommunicator::run(const Collective &call, void *const *buffers, Stream *stream) {
  CollectiveKind kind = call.key.kind;
  if (kind == CollectiveKind::AllGather)
    return allGather(call, buffers[0], buffers[1], stream);
  if (kind == CollectiveKind::ReduceScatter)
    return reduceScatter(call, buffers[0], buffers[1], stream);
  if (kind == CollectiveKind::AllReduce)
    return allReduce(call, buffers, stream);
  return collectiveMissing(name, call);
}

Status ToyCommunicator::allGather(const Collective &call, const void *send, void *recv, Stream *stream) {
  return issue(stream, [this, &call, send, recv] {
    auto bytes = static_cast<size_t>(call.key.messageBytes());
    std::string own(static_cast<const char *>(ToyMemory::resolve(send)), bytes);
    Pieces pieces;
    if (Status status = exchange(
            call, [&](size_t) { return own; }, pieces);
        !status.ok())
      return status;
    for (size_t i = 0; i < pieces.size(); ++i)
      std::memcpy(static_cast<char *>(ToyMemory::resolve(recv)) + i * bytes, pieces[i].data(), bytes);
    return Status::success();
  });
}

Status ToyCommunicator::reduceScatter(const Collective &call, const void *send, void *recv, Stream *stream) {
  return issue(stream, [this, &call, send, recv] {
    auto bytes = static_cast<size_t>(call.key.messageBytes());
    auto *all = static_cast<const char *>(ToyMemory::resolve(send));
    Pieces pieces;
    Status status = exchange(
        call, [&](size_t peer) { return std::string(all + peer * bytes, bytes); }, pieces);
    if (status.ok())
      combine(call, 0, pieces, 0, ToyMemory::resolve(recv));
    return status;
  });
}

Status ToyCommunicator::allReduce(const Collective &call, void *const *buffers, Stream *stream) {
  std::vector<void *> addresses(buffers, buffers + call.key.counts.size());
  return issue(stream, [this, &call, addresses] {
    auto bytesOf = [&](size_t i) { return static_cast<size_t>(call.key.counts[i] * sizeOf(call.key.dtype)); };
    std::string own;
    for (size_t i = 0; i < addresses.size(); ++i)
      own.append(static_cast<const char *>(ToyMemory::resolve(addresses[i])), bytesOf(i));
    Pieces pieces;
    if (Status status = exchange(
            call, [&](size_t) { return own; }, pieces);
        !status.ok())
      return status;
    size_t begin = 0;
    for (size_t i = 0; i < addresses.size(); begin += bytesOf(i++))
      combine(call, i, pieces, begin, ToyMemory::resolve(addresses[i]));
    return Status::success();
  });
}

Expected<RanksHere> ToyFactory::ranksHere(int64_t total) const {
  if (total != mail->ranks())
    return Status::badInput("the job has " + std::to_string(mail->ranks()) + " processes, the artifact is for " +
                            std::to_string(total) + " ranks");
  return RanksHere{total, mail->rank(), 1};
}

Expected<std::unique_ptr<CommunicatorGroup>> ToyFactory::make(const std::string &name, const RanksHere &,
                                                              const RankGroups &groups, AbortState &abort,
                                                              const CommunicatorOptions &options) {
  return std::unique_ptr<CommunicatorGroup>(std::make_unique<ToyCommunicator>(name, mail, groups, abort, options.timeout));
}

Status ToyFactory::share(int64_t process, void *data, int64_t bytes, const AbortState &abort) {
  if (abort.isRaised())
    return abort.status();
  if (process == mail->rank()) {
    for (int64_t peer = 0; peer < mail->ranks(); ++peer)
      if (peer != process)
        mail->send(peer, Mail::kControl, std::string(static_cast<const char *>(data), static_cast<size_t>(bytes)));
    return Status::success();
  }
  // Loading takes longer than a collective.
  Clock::time_point deadline = Clock::now() + std::max<Clock::duration>(timeout, std::chrono::minutes(2));
  std::string message;
  Arrival arrival = mail->receive(process, Mail::kControl, deadline, abort, message);
  if (arrival == Arrival::Aborted)
    return abort.status();
  if (arrival != Arrival::Here)
    return Status::failed("the process of rank " + std::to_string(process) + " is not there",
                          static_cast<int32_t>(process));
  std::memcpy(data, message.data(), static_cast<size_t>(bytes));
  return Status::success();
}
