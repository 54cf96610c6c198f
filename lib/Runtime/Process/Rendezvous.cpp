//===- Rendezvous.cpp - The processes of a job meet -----------------------===//

#include "Rendezvous.h"

#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <unistd.h>

namespace spmd::runtime {

using Clock = std::chrono::steady_clock;

static Endpoint getEndpoint(const Launch &launch) {
  if (!launch.address.empty())
    return {launch.address, launch.port, ""};
  return {"", 0,
          "spmd-" + std::to_string(::geteuid()) + "-" + launch.job + "-" + std::to_string(launch.restart)};
}

Expected<std::unique_ptr<Rendezvous>> Rendezvous::meet(const Launch &launch, std::chrono::milliseconds timeout) {
  std::unique_ptr<Rendezvous> made(new Rendezvous(launch, timeout));
  Endpoint endpoint = getEndpoint(launch);
  if (launch.rank == 0 && !launch.hasAgentStore) {
    Expected<std::unique_ptr<StoreServer>> server = StoreServer::start(endpoint, launch.secret);
    if (!server)
      return Status::failed(server.error().message + "; is another rank 0 of this job running?");
    made->server = std::move(*server);
  }
  std::string prefix = "spmd/" + launch.job + "/" + std::to_string(launch.restart) + "/";
  std::string secret = launch.hasAgentStore ? "" : launch.secret;
  Expected<std::unique_ptr<StoreClient>> client =
      StoreClient::connect(endpoint, secret, prefix, Clock::now() + timeout);
  if (!client) {
    Status status = client.error();
    status.message = "rank " + std::to_string(launch.rank) + " did not meet rank 0: " + status.message;
    return status;
  }
  made->client = std::move(*client);
  if (Status status = made->join(); !status.ok())
    return status;
  return made;
}

Status Rendezvous::join() {
  std::string self = std::to_string(launch.rank);
  Expected<int64_t> times = client->add("joined/" + self, 1, Clock::now() + timeout);
  if (!times)
    return times.error();
  bool isTwice = *times > 1;
  // The number of ranks goes with the rank, so that all find the same fault.
  std::string mine = std::to_string(launch.world);
  if (isTwice) {
    Status status = client->set("fault", "rank " + self + " was started twice", Clock::now() + timeout);
    return status.ok() ? Status::badInput("rank " + self + " was started twice") : status;
  }
  Status status = launch.rank == 0 ? client->set("world", mine, Clock::now() + timeout) : Status::success();
  if (!status.ok())
    return status;
  Expected<std::string> world = client->get("world", Clock::now() + timeout);
  if (!world)
    return Status::failed("rank " + self + " did not meet rank 0: " + world.error().message);
  if (*world == mine)
    return Status::success();
  std::string fault = "rank " + self + " was started as one of " + mine + " processes, rank 0 as one of " + *world;
  status = client->set("fault", fault, Clock::now() + timeout);
  return status.ok() ? Status::badInput(fault) : status;
}

/// Whether `key` comes by the deadline. A fault that another process tells ends the wait.
Expected<bool> Rendezvous::await(const std::string &key, Deadline deadline) {
  while (true) {
    bool isLast = Clock::now() >= deadline;
    Expected<bool> isThere = client->wait(key, std::min(deadline, Clock::now() + std::chrono::milliseconds(200)));
    if (!isThere || *isThere)
      return isThere;
    Expected<bool> isFault = client->wait("fault", Clock::now());
    if (!isFault)
      return isFault;
    if (*isFault) {
      Expected<std::string> fault = client->get("fault", Clock::now() + timeout);
      return fault ? Status::badInput(*fault) : fault.error();
    }
    if (isLast)
      return false;
  }
}

Expected<std::vector<std::string>> Rendezvous::exchange(const std::string &name, const std::string &value) {
  Deadline deadline = Clock::now() + timeout;
  auto keyOf = [&](int64_t rank) { return name + "/" + std::to_string(rank); };
  if (Status status = client->set(keyOf(launch.rank), value, deadline); !status.ok())
    return status;
  std::vector<std::string> values;
  std::string missing;
  for (int64_t rank = 0; rank < launch.world; ++rank) {
    Expected<bool> isThere = await(keyOf(rank), deadline);
    if (!isThere)
      return isThere.error();
    if (!*isThere) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      continue;
    }
    Expected<std::string> got = client->get(keyOf(rank), Clock::now() + timeout);
    if (!got)
      return got.error();
    values.push_back(std::move(*got));
  }
  if (!missing.empty())
    return Status::failed("nothing was heard of rank " + missing + " of " + std::to_string(launch.world) + " within " +
                          formatNumber(static_cast<double>(timeout.count()) / 1000) + " s");
  return values;
}

Rendezvous::~Rendezvous() {
  if (!client)
    return;
  Deadline deadline = Clock::now() + std::chrono::seconds(5);
  (void)client->add("left", 1, deadline);
  if (!server)
    return;
  // The store goes with this process: others may still read what they exchanged.
  for (auto left = client->add("left", 0, deadline); left && *left < launch.world && Clock::now() < deadline;
       left = client->add("left", 0, deadline))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

} // namespace spmd::runtime
