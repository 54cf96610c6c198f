//===- Job.cpp - The processes of a job, and where they are ---------------===//

#include "Job.h"
#include "Mpi.h"
#include "Rendezvous.h"
#include "TcpLink.h"
#include "spmd/Version.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace spmd::runtime {

/// What only the processes that can map each other's memory have in common. SPMD_HOST names a host that is none, to try
/// several on one.
static std::string getHostId() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  char space[64] = {};
  if (::readlink("/proc/self/ns/pid", space, sizeof(space) - 1) > 0)
    id += std::string(" ") + space;
  if (const char *pretended = std::getenv("SPMD_HOST"))
    id += std::string(" ") + pretended;
  return id;
}

static bool isMpi(Launcher launcher) {
  return launcher == Launcher::OpenMpi || launcher == Launcher::Pmi || launcher == Launcher::Slurm;
}

int64_t Job::leader() const { return processesHere().front(); }

std::vector<int64_t> Job::processesHere() const {
  std::vector<int64_t> here;
  for (int64_t process = 0; process < met->world(); ++process)
    if (isHere(process))
      here.push_back(process);
  return here;
}

/// Sorts the processes by hosts.
Status Job::findHosts() {
  Expected<std::vector<std::string>> all = met->exchange("host", SPMD_VERSION "\n" + getHostId());
  if (!all)
    return all.error();
  std::vector<std::string> known;
  for (const std::string &line : *all) {
    size_t end = line.find('\n');
    std::string version = line.substr(0, end), first = all->front().substr(0, all->front().find('\n')),
                host = end == std::string::npos ? "" : line.substr(end + 1);
    if (version != first)
      return Status::badInput("rank " + std::to_string(&line - all->data()) + " runs version " + version +
                              " of the runtime, rank 0 version " + first);
    auto found = std::find(known.begin(), known.end(), host);
    hostOf.push_back(found - known.begin());
    if (found == known.end())
      known.push_back(host);
  }
  numHosts = static_cast<int64_t>(known.size());
  return Status::success();
}

bool Job::claimFirst(int32_t number) const {
  if (!store)
    return true;
  Expected<int64_t> claims = store->add("failed/" + std::to_string(number), 1, Clock::now() + std::chrono::seconds(1));
  return !claims || *claims == 1;
}

Expected<std::shared_ptr<Job>> Job::meet(const Launch &launch, Clock::duration timeout) {
  auto job = std::make_shared<Job>();
  std::shared_ptr<Mpi> mpi;
  Rendezvous *store = nullptr; // where they met, if not by MPI
  auto startMpi = [&]() -> Status {
    Expected<std::shared_ptr<Mpi>> started = Mpi::start(launch);
    if (!started)
      return started.error();
    job->link = mpi = std::move(*started);
    return Status::success();
  };
  auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  if (launch.meetsByMpi()) {
    if (Status status = startMpi(); !status.ok())
      return status;
    Expected<std::unique_ptr<Meeting>> met = MpiMeeting::meet(mpi);
    if (!met)
      return met.error();
    job->met = std::move(*met);
  } else {
    Expected<std::unique_ptr<Rendezvous>> met = Rendezvous::meet(launch, patience);
    if (!met)
      return met.error();
    store = met->get();
    job->store = &store->store();
    job->met = std::move(*met);
  }
  if (Status status = job->findHosts(); !status.ok())
    return status;
  if (!job->isOnOneHost() && !job->link) {
    if (isMpi(launch.launcher)) {
      if (Status status = startMpi(); !status.ok())
        return status;
    } else {
      Expected<std::shared_ptr<TcpLink>> connected = TcpLink::connect(*store, job->hostOf, patience);
      if (!connected)
        return connected.error();
      job->link = std::move(*connected);
    }
  }
  Expected<std::vector<std::string>> names = job->met->exchange("process", std::to_string(::getpid()));
  if (!names)
    return names.error();
  std::vector<int32_t> ids;
  for (int64_t process = 0; process < job->met->world(); ++process)
    ids.push_back(job->isHere(process) ? static_cast<int32_t>(std::atol((*names)[static_cast<size_t>(process)].c_str()))
                                       : 0);
  Expected<std::shared_ptr<Peers>> peers = Peers::watch(ids, static_cast<size_t>(job->self()));
  if (!peers)
    return peers.error();
  job->peers = std::move(*peers);
  return job;
}

} // namespace spmd::runtime
