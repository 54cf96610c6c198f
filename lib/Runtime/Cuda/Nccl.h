//===- Nccl.h - Collectives by NCCL -------------------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_NCCL_H
#define SPMD_LIB_RUNTIME_CUDA_NCCL_H

#include "CudaMemory.h"
#include "NcclApi.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Train/Abort.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace spmd::runtime::cuda {

namespace detail {
using namespace nccl;
/// The functions of NCCL that are used.
struct NcclFunctions {
#define SPMD_DECLARE(name, parameters) nccl::Result(*name) parameters = nullptr;
  SPMD_NCCL_FUNCTIONS(SPMD_DECLARE)
#undef SPMD_DECLARE
  const char *(*ncclGetErrorString)(nccl::Result) = nullptr;
  const char *(*ncclGetLastError)(nccl::Comm) = nullptr;
};
} // namespace detail

/// NCCL, loaded.
class Nccl : public detail::NcclFunctions {
public:
  static Expected<std::shared_ptr<const Nccl>> load();
  /// How to get a newer one, which has what this one lacks.
  static constexpr const char *kHint = "update nvidia-nccl-cu12 or nvidia-nccl-cu13";
  /// `comm`, which may be null, says more.
  Status check(nccl::Result result, const std::string &what, nccl::Comm comm = nullptr) const;
  LibraryVersion release() const { return {found / 10000, found % 10000 / 100}; }

private:
  static Expected<std::shared_ptr<const Nccl>> open();
  int found = 0;
};

/// The ends of one communicator that are here.
class NcclGroup final : public CommunicatorGroup {
public:
  ~NcclGroup() override;
  Communicator &endpoint(int64_t rank) override;
  bool failEverywhere(const Status &status) override { return errors->failEverywhere(status); }

  /// Makes the arenas known, which the collectives' buffers are in: what can then be sent in place is. All ranks do.
  Status addArenas(const CudaMemory &memory);
  /// The error of the library that came up since, if any.
  Status poll() const;
  /// Tells what runs to end, and comes back; nothing can be called afterwards. The group ends after all graphs that it
  /// is in ([Note: aborts]).
  void abortAll();

private:
  friend class NcclFactory;
  struct End;
  NcclGroup();
  /// An error of a rank here becomes that of all.
  Status raise(const Status &status);

  std::shared_ptr<const Nccl> library;
  std::string name;
  RanksHere here;
  RankGroups groups;
  AbortState *abort = nullptr;
  std::chrono::steady_clock::duration timeout{};
  std::vector<std::unique_ptr<End>> ends;
  std::atomic<bool> isAborted{false};
  std::vector<std::thread> aborts;
  /// The same communicator of the processes as they meet otherwise: nothing is sent through it, but errors go both ways.
  std::unique_ptr<CommunicatorGroup> errors;
};

/// The processes of a job, as they meet otherwise, with collectives by NCCL.
class NcclFactory final : public CommunicatorFactory {
public:
  /// `gpus`: of the ranks here.
  NcclFactory(std::shared_ptr<const Nccl> library, std::shared_ptr<CommunicatorFactory> processes,
              std::vector<std::shared_ptr<const Gpu>> gpus)
      : library(std::move(library)), processes(std::move(processes)), gpus(std::move(gpus)) {}

  int64_t numProcesses() const override { return processes->numProcesses(); }
  int64_t process() const override { return processes->process(); }
  Expected<RanksHere> ranksHere(int64_t total) const override { return processes->ranksHere(total); }
  Status share(int64_t process, void *data, int64_t bytes, const AbortState &abort) override {
    return processes->share(process, data, bytes, abort);
  }
  Status gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                std::chrono::steady_clock::duration patience) override {
    return processes->gather(mine, bytes, all, abort, patience);
  }
  Expected<std::unique_ptr<CommunicatorGroup>> make(const std::string &name, const RanksHere &ranks,
                                                    const RankGroups &groups, AbortState &abort,
                                                    const CommunicatorOptions &options) override;
  Status findEnded(const RanksHere &ranks) const override { return processes->findEnded(ranks); }

private:
  std::shared_ptr<const Nccl> library;
  std::shared_ptr<CommunicatorFactory> processes;
  std::vector<std::shared_ptr<const Gpu>> gpus;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_NCCL_H
