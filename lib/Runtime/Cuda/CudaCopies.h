//===- CudaCopies.h - Between an arena and the caller's tensors ---*- C++ -*-===//
//
// [Note: the caller's stream] A library that has tensors on the same GPU, PyTorch
// for one, issues work to streams of its own and gives memory back as soon as the
// host is through with it, for what that stream gets next. So the main stream
// waits for what the caller's has when a copy is issued, and the caller's stream
// for the copy: the order that the two calls would have on one stream. Neither the
// host waits, nor a stream of the caller's that does not use the tensors.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_CUDACOPIES_H
#define SPMD_LIB_RUNTIME_CUDA_CUDACOPIES_H

#include "Owned.h"
#include "spmd/Runtime/Train/DeviceCopies.h"

namespace spmd::runtime::cuda {

class CudaMemory;

/// Of one rank.
class CudaCopies final : public DeviceCopies {
public:
  static Expected<std::unique_ptr<CudaCopies>> make(CudaMemory &memory, int64_t rank);

  Status begin(CallerStream stream) override;
  Status copyIn(int64_t offset, const void *source, int64_t bytes) override;
  Status copyOut(int64_t offset, void *destination, int64_t bytes) override;
  Status fetch(const void *source, void *destination, int64_t bytes) override;
  Status finish() override;
  CallerStream ownStream() const override;

private:
  CudaCopies(CudaMemory &memory, int64_t rank, std::shared_ptr<const Gpu> gpu)
      : memory(memory), rank(rank), gpu(std::move(gpu)) {}

  CudaMemory &memory;
  int64_t rank;
  std::shared_ptr<const Gpu> gpu;
  std::unique_ptr<CudaStream> arrivals; ///< to which no step is issued
  OwnEvent given, copied;               ///< on the caller's stream; on the main stream
  OwnPinned pieces;                     ///< of what is fetched
  StreamHandle caller = nullptr;
  bool leaves = false; ///< something was copied out
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_CUDACOPIES_H
