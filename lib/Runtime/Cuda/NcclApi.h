//===- NcclApi.h - The part of NCCL's interface that is used ------*- C++ -*-===//
//
// Declarations of our own, as in DriverApi.h: signatures and values of nccl.h
// 2.27 and later (NVIDIA NCCL user guide).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_NCCLAPI_H
#define SPMD_LIB_RUNTIME_CUDA_NCCLAPI_H

#include "DriverApi.h"

#include <climits>

namespace spmd::runtime::nccl {

using Result = int; ///< ncclResult_t
using Comm = struct ncclComm *;
using Window = struct ncclWindow_vidmem *;
using cuda::StreamHandle;

enum : Result {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum DataType : int { kInt8, kUint8, kInt32, kUint32, kInt64, kUint64, kFloat16, kFloat32, kFloat64, kBfloat16 };
enum Reduction : int { kSum, kProd, kMax, kMin, kAvg };

enum : int { kWindowSymmetric = 1 };

struct UniqueId {
  char bytes[128];
};

/// ncclConfig_t of 2.27: later versions append, and read `size`.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22700;
  int blocking = INT_MIN;
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
  int trafficClass = INT_MIN;
  const char *commName = nullptr;
  int collnetEnable = INT_MIN;
  int ctaPolicy = INT_MIN;
  int shrinkShare = INT_MIN;
  int nvlsCTAs = INT_MIN;
};

#define SPMD_NCCL_FUNCTIONS(X)                                                                                         \
  X(ncclGetVersion, (int *version))                                                                                    \
  X(ncclGetUniqueId, (UniqueId * id))                                                                                  \
  X(ncclCommInitRankConfig, (Comm * comm, int ranks, UniqueId id, int rank, Config *config))                           \
  X(ncclCommFinalize, (Comm comm))                                                                                     \
  X(ncclCommDestroy, (Comm comm))                                                                                      \
  X(ncclCommAbort, (Comm comm))                                                                                        \
  X(ncclCommGetAsyncError, (Comm comm, Result * error))                                                                \
  X(ncclCommWindowRegister, (Comm comm, void *buffer, size_t bytes, Window *window, int flags))                        \
  X(ncclCommWindowDeregister, (Comm comm, Window window))                                                              \
  X(ncclGroupStart, ())                                                                                                \
  X(ncclGroupEnd, ())                                                                                                  \
  X(ncclAllGather, (const void *send, void *recv, size_t count, DataType type, Comm comm, StreamHandle stream))        \
  X(ncclReduceScatter,                                                                                                 \
    (const void *send, void *recv, size_t count, DataType type, Reduction how, Comm comm, StreamHandle stream))        \
  X(ncclAllReduce,                                                                                                     \
    (const void *send, void *recv, size_t count, DataType type, Reduction how, Comm comm, StreamHandle stream))

constexpr int kOldest = 22700; ///< windows
constexpr char kErrorString[] = "ncclGetErrorString"; ///< const char *(Result)
constexpr char kLastError[] = "ncclGetLastError";     ///< const char *(Comm)

} // namespace spmd::runtime::nccl

#endif // SPMD_LIB_RUNTIME_CUDA_NCCLAPI_H
