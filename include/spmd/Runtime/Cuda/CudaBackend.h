//===- CudaBackend.h - Artifacts on NVIDIA's GPUs -----------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CUDA_CUDABACKEND_H
#define SPMD_RUNTIME_CUDA_CUDABACKEND_H

namespace spmd::runtime {

/// Registers the backend of target "cuda". Driver and libraries are loaded when an artifact is.
void registerCuda();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CUDA_CUDABACKEND_H
