//===- Epilogue.h - What is added to a GEMM ---------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_EPILOGUE_H
#define SPMD_RUNTIME_HOST_EPILOGUE_H

#include <cstdint>

namespace spmd::runtime {

/// What is added to each element of a GEMM before it is stored: (sum + bias) + residual. The residual may be C
/// itself, element upon element, but not otherwise overlap it.
template <typename Element>
struct EpilogueOf {
  const Element *bias = nullptr;     ///< n, one per column, or null
  const Element *residual = nullptr; ///< m x n, rows `ldr` apart, or null
  int64_t ldr = 0;
  int64_t strideR = 0; ///< between the residuals of a batch; all GEMMs share the bias
};

using Epilogue = EpilogueOf<float>;

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_EPILOGUE_H
