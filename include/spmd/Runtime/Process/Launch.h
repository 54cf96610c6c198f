//===- Launch.h - Which of several processes this is --------------*- C++ -*-===//
//
// A process learns from its launcher's environment variables which one of how
// many it is, and where the others can be met. A launcher counts only where it
// started this process: a program started by hand inside a Slurm allocation, or
// in the shell of a job, is alone.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_PROCESS_LAUNCH_H
#define SPMD_RUNTIME_PROCESS_LAUNCH_H

#include "spmd/Runtime/Core/Status.h"

#include <functional>
#include <optional>
#include <string>

namespace spmd::runtime {

/// Who started this process.
enum class Launcher {
  None,        ///< nobody: it is alone
  Torchrun,    ///< torchrun and other users of torch.distributed's elastic agent
  OpenMpi,     ///< mpirun, prun of Open MPI
  Pmi,         ///< mpiexec of MPICH and Intel MPI
  Slurm,       ///< srun
  Environment, ///< RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, set by hand
};

/// "torchrun", "mpirun", "mpiexec", "srun", "environment" or "none".
const char *nameOf(Launcher launcher);

/// What the command line says; it goes before the environment.
struct LaunchOptions {
  /// One of the names above; empty: whoever started the process.
  std::string launcher;
  std::optional<int64_t> rank, world;
  std::string address; ///< "HOST:PORT" where the process of rank 0 can be met
};

/// One process of a job.
struct Launch {
  Launcher launcher = Launcher::None;
  int64_t rank = 0, world = 1;
  /// The same for all processes of a job and for no other one that runs now; empty where the launcher gives none.
  std::string job;
  /// A number that only processes of this job know; empty where the launcher gives none.
  std::string secret;
  /// How many of the processes are on this host, where the launcher says so; 0: it does not.
  int64_t local = 0;
  /// How often the launcher has started the job anew.
  int64_t restart = 0;
  /// Where the process of rank 0 can be met; empty: only within this host.
  std::string address;
  int port = 0;
  /// The launcher itself serves the store at address:port.
  bool hasAgentStore = false;

  bool isAlone() const { return world == 1; }
  /// How many processes share this host, as far as it is known.
  int64_t onThisHost() const { return local ? local : world; }
  /// Whether they meet through MPI: they are on several hosts, and no address is given.
  bool meetsByMpi() const {
    return (launcher == Launcher::OpenMpi || launcher == Launcher::Pmi) && address.empty() && onThisHost() < world;
  }
};

/// Reads one environment variable; null when it is not set.
using Environment = std::function<const char *(const char *name)>;

/// Which process this is. An error names the variable or option that is missing or wrong.
Expected<Launch> readLaunch(const LaunchOptions &options, const Environment &environment);

/// The same from this process's own environment.
Expected<Launch> readLaunch(const LaunchOptions &options = {});

/// The first host of a list as Slurm writes it: "node[08-11,15],gpu3" is "node08".
std::string getFirstHost(const std::string &list);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_PROCESS_LAUNCH_H
