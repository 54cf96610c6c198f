//===- CudaExecutor.h - Steps on GPUs -----------------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_CUDAEXECUTOR_H
#define SPMD_LIB_RUNTIME_CUDA_CUDAEXECUTOR_H

#include "CublasLt.h"
#include "CudaKernels.h"
#include "Nccl.h"
#include "spmd/Runtime/Train/Executor.h"

namespace spmd::runtime::cuda {

/// What the executors of a device share.
struct CudaCode {
  const Artifact &artifact;
  /// Those of each rank of this process, on its device.
  std::vector<std::shared_ptr<const CudaKernels>> kernels;
  std::shared_ptr<const CublasLt> cublas; ///< null: the plan has no GEMMs
  bool useGraph = true;
};

/// Steps are issued to streams, from the second on as one graph for each rank ([Note: graphs] in CudaExecutor.cpp).
Expected<std::unique_ptr<Executor>> makeCudaExecutor(const CudaCode &code, CudaMemory &memory,
                                                     CommunicatorFactory &communicators, AbortState &abort,
                                                     const ExecutorOptions &options);

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_CUDAEXECUTOR_H
