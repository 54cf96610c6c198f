//===- CublasLtApi.h - The part of cuBLASLt's interface that is used -*- C++ -*-===//
//
// Declarations of our own, as in DriverApi.h: signatures and values of cublasLt.h
// of CUDA 12 and 13 (cuBLAS documentation, "Using the cuBLASLt API").
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_CUBLASLTAPI_H
#define SPMD_LIB_RUNTIME_CUDA_CUBLASLTAPI_H

#include "DriverApi.h"

namespace spmd::runtime::cublas {

using Status = int; ///< cublasStatus_t
using Handle = struct cublasLtContext *;
using Description = struct cublasLtMatmulDescOpaque *;
using Layout = struct cublasLtMatrixLayoutOpaque *;
using Preference = struct cublasLtMatmulPreferenceOpaque *;
using cuda::StreamHandle;

enum : Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };

enum Type : int { kF32 = 0, kF64 = 1, kF16 = 2, kBF16 = 14 };                  ///< cudaDataType_t
enum Compute : int { kCompute32F = 68, kCompute64F = 70, kCompute32FTF32 = 77 }; ///< cublasComputeType_t

enum Attribute : int { // cublasLtMatmulDescAttributes_t
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kEpilogueAuxPointer = 11,
  kEpilogueAuxLd = 12,
  kEpilogueAuxBatchStride = 13,
  kBiasDataType = 26,
  kEpilogueAuxDataType = 22,
};
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int { // cublasLtMatmulPreferenceAttributes_t
  kMaxWorkspaceBytes = 1,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8,
};
enum Epilogue : int {
  kEpilogueDefault = 1,
  kEpilogueRelu = 2,
  kEpilogueBias = 4,
  kEpilogueReluBias = 6,
  kEpilogueGelu = 32,
  kEpilogueGeluBias = 36,
  kEpilogueGeluAux = 160,
  kEpilogueGeluAuxBias = 164,
  kEpilogueDGelu = 192,
  kEpilogueDGeluBgrad = 208,
  kEpilogueBgradA = 256,
  kEpilogueBgradB = 512,
};

struct Algorithm { // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct HeuristicResult { // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspaceBytes;
  Status state;
  float wavesCount;
  int reserved[4];
};

#define SPMD_CUBLASLT_FUNCTIONS(X)                                                                                     \
  X(cublasLtCreate, (Handle * handle))                                                                                 \
  X(cublasLtDestroy, (Handle handle))                                                                                  \
  X(cublasLtMatmulAlgoCheck, (Handle handle, Description description, Layout a, Layout b, Layout c, Layout d,          \
                              const Algorithm *algorithm, HeuristicResult *result))                                    \
  X(cublasLtMatmulDescCreate, (Description * description, Compute compute, Type scale))                                \
  X(cublasLtMatmulDescDestroy, (Description description))                                                              \
  X(cublasLtMatmulDescSetAttribute, (Description description, Attribute attribute, const void *value, size_t bytes))   \
  X(cublasLtMatrixLayoutCreate, (Layout * layout, Type type, uint64_t rows, uint64_t columns, int64_t ld))             \
  X(cublasLtMatrixLayoutDestroy, (Layout layout))                                                                      \
  X(cublasLtMatrixLayoutSetAttribute, (Layout layout, LayoutAttribute attribute, const void *value, size_t bytes))     \
  X(cublasLtMatmulPreferenceCreate, (Preference * preference))                                                         \
  X(cublasLtMatmulPreferenceDestroy, (Preference preference))                                                          \
  X(cublasLtMatmulPreferenceSetAttribute,                                                                              \
    (Preference preference, PreferenceAttribute attribute, const void *value, size_t bytes))                           \
  X(cublasLtMatmulAlgoGetHeuristic, (Handle handle, Description description, Layout a, Layout b, Layout c, Layout d,   \
                                     Preference preference, int requested, HeuristicResult *results, int *found))      \
  X(cublasLtMatmul,                                                                                                    \
    (Handle handle, Description description, const void *alpha, const void *a, Layout aLayout, const void *b,          \
     Layout bLayout, const void *beta, const void *c, Layout cLayout, void *d, Layout dLayout,                         \
     const Algorithm *algorithm, void *workspace, size_t workspaceBytes, StreamHandle stream))

constexpr char kVersion[] = "cublasLtGetVersion"; ///< size_t()

} // namespace spmd::runtime::cublas

#endif // SPMD_LIB_RUNTIME_CUDA_CUBLASLTAPI_H
