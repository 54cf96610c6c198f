//===- SharedLibrary.h - Libraries that are found when they are needed -*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_SHAREDLIBRARY_H
#define SPMD_LIB_RUNTIME_CUDA_SHAREDLIBRARY_H

#include "spmd/Runtime/Core/Status.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// Opens the first of `names` that is found: in the folders of SPMD_CUDA_LIBRARIES (separated by colons), then where the
/// system's loader looks, then in those of SPMD_CUDA_PACKAGES, where our Python names NVIDIA's packages, which are
/// PyTorch's. Stays open until the process ends. `what` is what errors call it: "cuBLASLt".
Expected<void *> openLibrary(const std::string &what, const std::vector<std::string> &names);

/// A symbol of it; null: there is none.
void *findSymbol(void *library, const char *name);

/// "13.0" of 13000, as CUDA counts.
std::string formatCudaVersion(int version);

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CUDA_SHAREDLIBRARY_H
