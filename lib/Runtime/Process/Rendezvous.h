//===- Rendezvous.h - The processes of a job meet -----------------*- C++ -*-===//
#ifndef SPMD_LIB_RUNTIME_PROCESS_RENDEZVOUS_H
#define SPMD_LIB_RUNTIME_PROCESS_RENDEZVOUS_H

#include "Meeting.h"
#include "Store.h"
#include "spmd/Runtime/Process/Launch.h"

#include <vector>

namespace spmd::runtime {

/// What the processes of a job share before they can compute together. Rank 0 serves the store, where the launcher does
/// not: it is the last to leave.
class Rendezvous final : public Meeting {
public:
  /// Waits for the process of rank 0 and says to it who this is. A rank that is there already, or a process that was
  /// started for another number of ranks, is an error on every process.
  static Expected<std::unique_ptr<Rendezvous>> meet(const Launch &launch, std::chrono::milliseconds timeout);
  /// Waits a moment for those that still read.
  ~Rendezvous() override;

  int64_t rank() const override { return launch.rank; }
  int64_t world() const override { return launch.world; }
  /// Keys here are this job's alone, and this start's of it.
  StoreClient &store() { return *client; }

  /// Processes that did not call it within the time-out are named in the error.
  Expected<std::vector<std::string>> exchange(const std::string &name, const std::string &value) override;

private:
  explicit Rendezvous(Launch launch, std::chrono::milliseconds timeout) : launch(std::move(launch)), timeout(timeout) {}
  Status join();
  Expected<bool> await(const std::string &key, Deadline deadline);

  Launch launch;
  std::chrono::milliseconds timeout;
  std::unique_ptr<StoreServer> server;
  std::unique_ptr<StoreClient> client;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_RENDEZVOUS_H
