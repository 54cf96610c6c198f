//===- Job.h - The processes of a job, and where they are -------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_JOB_H
#define SPMD_LIB_RUNTIME_PROCESS_JOB_H

#include "Control.h"
#include "HostLink.h"
#include "Meeting.h"
#include "Store.h"
#include "spmd/Runtime/Process/Launch.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// The processes, met once for all that this one does with them.
struct Job {
  /// Waits for all of them; on several hosts MPI is started, or they are connected by TCP where MPI's launcher is none.
  static Expected<std::shared_ptr<Job>> meet(const Launch &launch, Clock::duration timeout);

  bool isOnOneHost() const { return numHosts == 1; }
  bool isHere(int64_t process) const { return hostOf[static_cast<size_t>(process)] == hostOf[static_cast<size_t>(self())]; }
  int64_t self() const { return met->rank(); }
  /// The first process of this host.
  int64_t leader() const;
  std::vector<int64_t> processesHere() const;

  /// The next name to exchange under, the same everywhere, since all processes make the same calls.
  std::string nextName() { return "exchange" + std::to_string(exchanges++); }

  /// Says that this process is the first to find something wrong of all that have come to `number`, a number that they
  /// have alike; false: another was. Where there is nobody to ask each may be.
  bool claimFirst(int32_t number) const;

  std::shared_ptr<HostLink> link; ///< null on one host; ends after what was met through it
  std::unique_ptr<Meeting> met;
  std::vector<int64_t> hostOf; ///< by process
  int64_t numHosts = 1;
  std::shared_ptr<Peers> peers;

private:
  Status findHosts();
  StoreClient *store = nullptr; ///< where they met, if not by MPI
  int64_t exchanges = 0;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_JOB_H
