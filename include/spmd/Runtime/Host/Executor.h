//===- Executor.h - N ranks of one process running a plan --------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_EXECUTOR_H
#define SPMD_RUNTIME_HOST_EXECUTOR_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Host/KernelLibrary.h"
#include "spmd/Runtime/Host/Profile.h"

#include <chrono>
#include <memory>
#include <vector>

namespace spmd::runtime {

/// A rank misbehaves on purpose when it reaches a command: for tests of what
/// happens to the others.
struct Fault {
  enum class Kind {
    None,
    Exit,  ///< the rank ends with an error
    Stall, ///< the rank never goes on
    Skip,  ///< the rank leaves the command out
  };
  Kind kind = Kind::None;
  int64_t rank = -1;
  int64_t command = -1;
};

/// "exit:RANK:COMMAND", "stall:..." or "skip:...".
Expected<Fault> parseFault(const std::string &text);

struct ExecutorOptions {
  int64_t threads = 1; ///< of all ranks together; each has at least one
  std::chrono::duration<double> timeout = std::chrono::seconds(60);
  Fault fault;
  Profile *profile = nullptr; ///< where to note when each command runs; null: nowhere
};

/// Runs a plan on all ranks: per rank one thread for each stream that has
/// commands, and helpers for the parallel loops of the first stream. All
/// threads and pointers are made by the constructor; a step allocates nothing.
class Executor {
public:
  /// Resolves kernels and pointers and starts the threads. `artifact` must
  /// outlive the executor; `arenas` has one base pointer per rank.
  static Expected<std::unique_ptr<Executor>> create(const Artifact &artifact, const KernelLibrary &kernels,
                                                    const std::vector<char *> &arenas, const ExecutorOptions &options);

  virtual ~Executor() = default;

  /// Runs one step on all ranks and returns when all are done. After a failure
  /// every further step returns the same error.
  virtual Status step() = 0;

  /// Ends the threads. False when one does not come back, because its kernel
  /// never returns: then the executor and its arenas must stay where they are.
  virtual bool shutdown() = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_EXECUTOR_H
