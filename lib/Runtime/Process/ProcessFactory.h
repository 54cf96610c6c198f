//===- ProcessFactory.h - Memory that processes share -----------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_PROCESSFACTORY_H
#define SPMD_LIB_RUNTIME_PROCESS_PROCESSFACTORY_H

#include "HostRanks.h"
#include "Job.h"

namespace spmd::runtime {

/// The processes of a job that are on one host. Of several hosts it has what concerns this one.
class ProcessFactory : public CommunicatorFactory {
public:
  ProcessFactory(std::shared_ptr<Job> job, Clock::duration timeout) : job(std::move(job)), timeout(timeout) {}

  int64_t numProcesses() const override { return job->met->world(); }
  int64_t process() const override { return job->self(); }
  int64_t numLocalProcesses() const override { return static_cast<int64_t>(job->processesHere().size()); }
  int64_t localProcess() const override;
  Expected<RanksHere> ranksHere(int64_t total) const override;
  Expected<std::shared_ptr<char>> allocateArena(int64_t rank, int64_t bytes) override;
  Status shareArenas(const RanksHere &ranks) override;
  Status findEnded(const RanksHere &ranks) const override;

  /// Before anything else is made.
  Status makeFirstError();

protected:
  /// Maps zeroed memory that the first process of this host makes.
  Expected<std::shared_ptr<char>> makeBlock(int64_t bytes);
  /// Of each group of a communicator the ranks of this host; null where none of this process is in it.
  Expected<std::vector<std::unique_ptr<HostRanks>>> makeHostRanks(const std::string &name, const RanksHere &ranks,
                                                                  const RankGroups &groups, AbortState &abort,
                                                                  const CommunicatorOptions &options);

  std::shared_ptr<Job> job;
  Clock::duration timeout;
  std::vector<std::shared_ptr<char>> arenas; ///< of the ranks of this host, by rank, once they are shared
  std::shared_ptr<SharedError> firstError;   ///< of all communicators

private:
  /// The arena of a rank of this process.
  struct OwnArena {
    Descriptor file;
    std::weak_ptr<char> memory;
    int64_t bytes = 0;
  };
  Expected<std::shared_ptr<char>> mapArena(int64_t rank, const std::string &line, const RanksHere &ranks);

  std::map<int64_t, OwnArena> own; ///< by rank
};

/// All processes are on this host.
Expected<std::shared_ptr<CommunicatorFactory>> makeHostFactory(std::shared_ptr<Job> job, Clock::duration timeout);

/// Processes are on several hosts.
Expected<std::shared_ptr<CommunicatorFactory>> makeHostsFactory(std::shared_ptr<Job> job, Clock::duration timeout);

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_PROCESSFACTORY_H
