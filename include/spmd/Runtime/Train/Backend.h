//===- Backend.h - What runs plans of a target --------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_BACKEND_H
#define SPMD_RUNTIME_TRAIN_BACKEND_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Train/Communicator.h"
#include "spmd/Runtime/Train/Executor.h"
#include "spmd/Runtime/Train/RankMemory.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// What users may ask of a device.
struct DeviceOptions {
  std::string cpu;       ///< "x86-64-v3"; empty: the best this machine runs
  std::string emulation; ///< how emulated kernels run, see Emulation::configure
  /// On GPUs: steps are launched as one graph for each rank; else command by command.
  bool graph = true;
};

/// What runs one artifact: its kernels are loaded.
class Device {
public:
  virtual ~Device() = default;

  /// What the kernels in use are for: "x86-64-v4", "sm_90".
  virtual const std::string &kernels() const = 0;

  /// The name of the communicators to use when no others are asked for (Registry.h).
  virtual std::string communicators() const = 0;

  /// The communicators of its ranks, who meet by `processes`: those, or the device's own among them.
  virtual Expected<std::shared_ptr<CommunicatorFactory>> connect(std::shared_ptr<CommunicatorFactory> processes) {
    return processes;
  }

  /// What only ranks of this process may have, once it is connected: a text for the other processes. With those of all
  /// of them, by process, each says whether two have taken the same.
  virtual std::string claims() const { return ""; }
  virtual Status compareClaims(const std::vector<std::string> &ofProcesses) const { return Status::success(); }

  /// Zeroed arenas for the ranks here, which `communicators`, who outlive them, can use.
  virtual Expected<std::unique_ptr<RankMemory>> allocate(const RanksHere &ranks, int64_t bytes,
                                                         CommunicatorFactory &communicators) = 0;

  /// A stream of a rank here, to issue collectives to; null: there are none, everything is done when it returns.
  virtual Expected<std::unique_ptr<Stream>> makeStream(int64_t rank) = 0;

  /// An executor on `memory`, which the device allocated, with communicators of its own. What fails, here or in another
  /// process, is raised in `abort`. All of them outlive the executor.
  virtual Expected<std::unique_ptr<Executor>> makeExecutor(RankMemory &memory, CommunicatorFactory &communicators,
                                                           AbortState &abort, const ExecutorOptions &options) = 0;

  /// What ran so far, in lines for people; empty: nothing to say.
  virtual std::string formatRun() const { return ""; }
};

/// Runs artifacts of some targets.
class Backend {
public:
  virtual ~Backend() = default;

  /// What it runs of the manifest's `target`.
  virtual std::vector<std::string> targets() const = 0;

  /// That commands ask for nothing which the target does not have.
  virtual Status checkPlan(const Artifact &artifact) const = 0;

  /// Loads the kernels of an artifact that was checked, and that outlives the device.
  virtual Expected<std::unique_ptr<Device>> open(const Artifact &artifact, const DeviceOptions &options) const = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_BACKEND_H
