//===- Executor.h - The ranks of a process, running a plan -------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_EXECUTOR_H
#define SPMD_RUNTIME_TRAIN_EXECUTOR_H

#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Core/Status.h"

#include <chrono>
#include <string>
#include <vector>

namespace spmd::runtime {

class FiniteWatch;
class Profile;

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
  int64_t threads = 1; ///< of all ranks here together; each has at least one
  std::chrono::duration<double> timeout = std::chrono::seconds(60);
  Fault fault;
  Profile *profile = nullptr; ///< where to note when each command runs; null: nowhere
  FiniteWatch *finite = nullptr; ///< what is to look at what commands write; null: nothing. On the host only.
};

/// Where a stream of a rank stands in a step, in numbers of its commands.
struct StreamPosition {
  int64_t finished = 0; ///< are done
  int64_t issued = 0;   ///< were begun, or given to the device
  /// Whether the one after those that are done has begun; a device may not say how far it is between two collectives.
  bool isExact = true;
};

struct RankPosition {
  int64_t rank = 0;
  std::vector<StreamPosition> streams; ///< of the plan
  int64_t step = -1; ///< which it is in, or was in last, as the executor counts them; -1: the last that was issued
};

/// Runs a plan on the ranks of this process. What it needs is made beforehand: a step allocates nothing.
class Executor {
public:
  virtual ~Executor() = default;

  /// Issues one step, which may still run when this returns. After a failure every further step returns the same error.
  virtual Status step() = 0;

  /// Waits until all steps that were issued are done; the first error of them.
  virtual Status wait() = 0;

  /// Of how many of the last steps readBack() knows what they gave; 1: that is in the arena, until the next step.
  virtual int64_t keptSteps() const { return 1; }

  /// Copies outputs of a rank here, bytes of its arena, as they were when a step ended, one of those: `step` counts
  /// from 0. It waits for that step and no later one.
  virtual Status readBack(int64_t step, int64_t rank, int64_t offset, void *destination, int64_t bytes);

  /// Where the ranks here stand, for people; any thread may ask at any time. Of an executor that does not say: none.
  virtual std::vector<RankPosition> positions() const { return {}; }

  /// Ends what runs. False when something does not end, as a kernel that never returns: then the executor and the
  /// memory must stay where they are.
  virtual bool shutdown() = 0;
};

// What executors report in the same words.

/// That a rank ended because of Fault::Kind::Exit.
Status exitedOnPurpose(int64_t rank, int32_t id, const Command &command);

/// That nothing went on here for `seconds`, a rank being in `command`; null: it is not known which.
Status madeNoProgress(const RanksHere &here, double seconds, int64_t rank, int32_t id, const Command *command);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_EXECUTOR_H
