//===- CublasLt.h - GEMMs by NVIDIA's library -------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_CUBLASLT_H
#define SPMD_LIB_RUNTIME_CUDA_CUBLASLT_H

#include "AlgorithmCache.h"
#include "CudaMemory.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <memory>

namespace spmd::runtime::cuda {

namespace detail {
using namespace cublas;
/// The functions of cuBLASLt that are used.
struct CublasLtFunctions {
#define SPMD_DECLARE(name, parameters) cublas::Status(*name) parameters = nullptr;
  SPMD_CUBLASLT_FUNCTIONS(SPMD_DECLARE)
#undef SPMD_DECLARE
};
} // namespace detail

/// cuBLASLt, loaded.
class CublasLt : public detail::CublasLtFunctions {
public:
  static Expected<std::shared_ptr<const CublasLt>> load();
  /// How to get a newer one, which has what this one lacks.
  static constexpr const char *kHint = "update nvidia-cublas-cu12 or nvidia-cublas";

  spmd::runtime::Status check(cublas::Status result, const std::string &what) const;
  size_t version() const { return found; }
  LibraryVersion release() const {
    return {static_cast<int64_t>(found / 10000), static_cast<int64_t>(found % 10000 / 100)};
  }

private:
  static Expected<std::shared_ptr<const CublasLt>> open();
  size_t found = 0;
};

/// What the GEMMs of one rank share: a handle, and the algorithms that are known.
class GemmContext {
public:
  static Expected<std::unique_ptr<GemmContext>> make(std::shared_ptr<const CublasLt> library,
                                                     std::shared_ptr<const Gpu> gpu);
  ~GemmContext();

  const CublasLt &library() const { return *lib; }
  cublas::Handle handle() const { return opened; }
  AlgorithmCache &algorithms() { return cache; }

private:
  GemmContext() = default;
  std::shared_ptr<const CublasLt> lib;
  std::shared_ptr<const Gpu> gpu;
  cublas::Handle opened = nullptr;
  AlgorithmCache cache;
};

/// One GEMM of a plan, ready to be issued: its algorithm is chosen when it is made.
class CublasGemm {
public:
  /// `command` is a GEMM; `addresses`: what its references are on this rank. `context` outlives it.
  static Expected<std::unique_ptr<CublasGemm>> make(GemmContext &context, const Command &command,
                                                    const std::vector<Address> &addresses);
  ~CublasGemm();

  Status issue(StreamHandle stream) const;

private:
  explicit CublasGemm(const GemmContext &context) : context(context) {}
  /// The algorithm that is known for the problem, or the library's choice.
  Status choose(AlgorithmCache &cache, const GemmCommand &gemm, uint64_t mostBytes);
  const GemmContext &context;
  cublas::Description description = nullptr;
  cublas::Layout a = nullptr, b = nullptr, c = nullptr;
  Address left = 0, right = 0, added = 0, out = 0, workspace = 0;
  Address vector = 0;    ///< where a bias gradient goes
  Address auxiliary = 0; ///< what the gradient of an activation is taken at
  cublas::Algorithm algorithm = {};
  size_t workspaceBytes = 0;
  bool isDouble = false, adds = false;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_CUBLASLT_H
