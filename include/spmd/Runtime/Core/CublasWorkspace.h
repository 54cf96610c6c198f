//===- CublasWorkspace.h - What cuBLASLt takes beside an arena -*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_CUBLASWORKSPACE_H
#define SPMD_RUNTIME_CORE_CUBLASWORKSPACE_H

#include "spmd/Runtime/Core/Manifest.h"

#include <cstdlib>

namespace spmd::runtime {

/// Bytes of the workspace of a rank's GEMMs on GPUs, of an artifact with kernels in `files`: what NVIDIA recommends,
/// 32 MiB from Hopper on, 4 MiB before. The manifest says it, and the runtime takes that.
inline int64_t cublasWorkspaceBytes(const std::vector<KernelFile> &files) {
  int64_t bytes = 4 << 20;
  for (const KernelFile &file : files)
    if (file.chip.size() > 3 && std::atoi(file.chip.c_str() + 3) >= 90)
      bytes = 32 << 20;
  return bytes;
}

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_CUBLASWORKSPACE_H
