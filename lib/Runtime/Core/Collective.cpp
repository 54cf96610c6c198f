//===- Collective.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Core/Collective.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Text.h"

using namespace spmd::runtime;

static std::string joinCounts(const std::vector<int64_t> &counts) {
  std::string text;
  for (int64_t count : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text;
}

Collective::Collective(CollectiveKey given, int32_t id, uint64_t traceHash, std::string location)
    : key(std::move(given)), id(id), traceHash(traceHash), location(std::move(location)) {
  std::string text = std::string(nameOf(key.kind)) + "\n" + nameOf(key.dtype) + "\n" + joinCounts(key.counts) + "\n";
  for (ReductionKind kind : key.kinds)
    text += std::string(nameOf(kind)) + ",";
  text += "\n" + joinNames(key.axes);
  hash = hashBytes(text + "\n" + key.unit + "\n" + std::to_string(id) + "\n" + std::to_string(traceHash));
}

std::vector<Collective> spmd::runtime::collectivesOf(const Plan &plan, uint64_t traceHash) {
  std::vector<Collective> calls(plan.commands.size());
  for (size_t id = 0; id < calls.size(); ++id)
    if (const auto *collective = plan.commands[id].as<CollectiveCommand>())
      calls[id] = Collective({*collective, plan.axesOf(collective->communicator)}, static_cast<int32_t>(id), traceHash,
                             plan.commands[id].location);
  return calls;
}

std::string Collective::describe() const {
  std::string text = nameOf(key.kind);
  if (!key.unit.empty())
    text += " of " + key.unit;
  text += " (command " + std::to_string(id) + ", " + nameOf(key.dtype) + " [" + joinCounts(key.counts) + "]";
  if (!key.axes.empty())
    text += " along " + joinNames(key.axes);
  if (!location.empty())
    text += ", at " + location;
  return text + ")";
}

Status spmd::runtime::collectiveMismatch(const std::string &communicator, int64_t first,
                                         const CollectiveText &ofFirst, int64_t rank, const CollectiveText &ofRank) {
  std::string what = ofRank.traceHash == ofFirst.traceHash ? "" : " (and they run different programs)";
  return Status::failed("collective mismatch on communicator '" + communicator + "': rank " + std::to_string(first) + " calls " +
                            ofFirst.text +
                            ", rank " + std::to_string(rank) + " calls " + ofRank.text + what,
                        static_cast<int32_t>(rank), ofRank.id, ofRank.location);
}

Status spmd::runtime::collectiveMismatch(const std::string &communicator, int64_t first, const Collective &ofFirst,
                                         int64_t rank, const Collective &ofRank) {
  return collectiveMismatch(communicator, first, ofFirst.toText(), rank, ofRank.toText());
}

Status spmd::runtime::collectiveTimeOut(const std::string &communicator, double seconds,
                                        const std::vector<int64_t> &missing, const Collective &call) {
  return Status::failed("time-out after " + formatNumber(seconds, 6) + " s on communicator '" + communicator +
                            "': rank " + joinCounts(missing) + " did not come to " + call.describe() + kMoreTime,
                        missing.empty() ? -1 : static_cast<int32_t>(missing.front()), call.id, call.location);
}

Status spmd::runtime::collectiveMissing(const std::string &communicator, const Collective &call) {
  return Status::failed("communicator '" + communicator + "' has no " + nameOf(call.key.kind) + ", which is " +
                            call.describe(),
                        -1, call.id, call.location);
}
