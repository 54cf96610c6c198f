//===- DriverApi.h - The part of CUDA's driver interface that is used -*- C++ -*-===//
//
// Declarations of our own: a clean clone builds without any file of NVIDIA's, and
// the driver is loaded when an artifact for GPUs is (Driver.h). Signatures and
// values are those of the CUDA driver API reference; each function is asked for
// by cuGetProcAddress at the version that its signature is of, since later
// headers rename (cuCtxCreate is _v4 in 13.0) and the library keeps all of them.
// HeadersTest compares this file with cuda.h where there is one.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_DRIVERAPI_H
#define SPMD_LIB_RUNTIME_CUDA_DRIVERAPI_H

#include <cstddef>
#include <cstdint>

namespace spmd::runtime::cuda {

using Result = int; ///< CUresult
using DeviceHandle = int;
using Address = unsigned long long; ///< CUdeviceptr
using Context = struct CUctx_st *;
using StreamHandle = struct CUstream_st *;
using Event = struct CUevent_st *;
using Module = struct CUmod_st *;
using Function = struct CUfunc_st *;
using Graph = struct CUgraph_st *;
using GraphNode = struct CUgraphNode_st *;
using GraphExec = struct CUgraphExec_st *;
using Allocation = unsigned long long; ///< CUmemGenericAllocationHandle

enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
  kMisalignedAddress = 716,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
};

enum : int { // CUdevice_attribute
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kVirtualMemoryManagement = 102,
};

enum : unsigned {
  kStreamNonBlocking = 1,
  kEventDisableTiming = 2,
  kEventDefault = 0,
  kEventRecordExternal = 1, ///< in a capture: a node that records whenever the graph runs
};

enum : int {
  kMaxDynamicSharedBytes = 8, ///< CUfunction_attribute
  kCaptureThreadLocal = 1,    ///< CUstreamCaptureMode
  kLocationDevice = 1,        ///< CUmemLocationType
  kAllocationPinned = 1,      ///< CUmemAllocationType
  kHandlePosixFile = 1,       ///< CUmemAllocationHandleType
  kGranularityRecommended = 1,
  kAccessReadWrite = 3,
  kGraphUseNodePriority = 8, ///< CUgraphInstantiate_flags
};

struct DeviceUuid { // CUuuid
  unsigned char bytes[16];
};

struct MemoryLocation { // CUmemLocation
  int type;
  int id;
};

struct AllocationProperties { // CUmemAllocationProp
  int type;
  int requestedHandleTypes;
  MemoryLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};

struct AccessDescription { // CUmemAccessDesc
  MemoryLocation location;
  int flags;
};

struct LaunchConfig { // CUlaunchConfig
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  StreamHandle stream;
  void *attributes;
  unsigned numAttributes;
};

/// What is used: X(result of the table, name that is asked for, CUDA version of the signature, parameters).
#define SPMD_CUDA_DRIVER_FUNCTIONS(X)                                                                                  \
  X(cuInit, 2000, (unsigned flags))                                                                                    \
  X(cuDriverGetVersion, 2020, (int *version))                                                                          \
  X(cuGetErrorName, 6000, (Result result, const char **text))                                                          \
  X(cuGetErrorString, 6000, (Result result, const char **text))                                                        \
  X(cuDeviceGetCount, 2000, (int *count))                                                                              \
  X(cuDeviceGet, 2000, (DeviceHandle * device, int ordinal))                                                           \
  X(cuDeviceGetName, 2000, (char *name, int bytes, DeviceHandle device))                                               \
  X(cuDeviceGetAttribute, 2000, (int *value, int attribute, DeviceHandle device))                                      \
  X(cuDeviceGetUuid, 11040, (DeviceUuid * uuid, DeviceHandle device))                                                  \
  X(cuDevicePrimaryCtxRetain, 7000, (Context * context, DeviceHandle device))                                          \
  X(cuDevicePrimaryCtxRelease, 11000, (DeviceHandle device))                                                           \
  X(cuCtxSetCurrent, 4000, (Context context))                                                                          \
  X(cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest))                                                    \
  X(cuMemGetInfo, 3020, (size_t *available, size_t *total))                                                            \
  X(cuMemGetAllocationGranularity, 10020, (size_t *granularity, const AllocationProperties *properties, int option))   \
  X(cuMemAddressReserve, 10020,                                                                                        \
    (Address * address, size_t bytes, size_t alignment, Address wish, unsigned long long flags))                       \
  X(cuMemAddressFree, 10020, (Address address, size_t bytes))                                                          \
  X(cuMemCreate, 10020,                                                                                                \
    (Allocation * allocation, size_t bytes, const AllocationProperties *properties, unsigned long long flags))         \
  X(cuMemRelease, 10020, (Allocation allocation))                                                                      \
  X(cuMemMap, 10020, (Address address, size_t bytes, size_t offset, Allocation allocation, unsigned long long flags))  \
  X(cuMemUnmap, 10020, (Address address, size_t bytes))                                                                \
  X(cuMemSetAccess, 10020, (Address address, size_t bytes, const AccessDescription *access, size_t count))             \
  X(cuMemHostAlloc, 2020, (void **pointer, size_t bytes, unsigned flags))                                              \
  X(cuMemFreeHost, 2000, (void *pointer))                                                                              \
  X(cuModuleLoadData, 2000, (Module * module, const void *image))                                                      \
  X(cuModuleUnload, 2000, (Module module))                                                                             \
  X(cuModuleGetFunction, 2000, (Function * function, Module module, const char *name))                                 \
  X(cuFuncSetAttribute, 9000, (Function function, int attribute, int value))                                           \
  X(cuFuncLoad, 12040, (Function function))                                                                            \
  X(cuStreamCreateWithPriority, 5050, (StreamHandle * stream, unsigned flags, int priority))                           \
  X(cuStreamDestroy, 4000, (StreamHandle stream))                                                                      \
  X(cuStreamWaitEvent, 3020, (StreamHandle stream, Event event, unsigned flags))                                       \
  X(cuStreamSynchronize, 2000, (StreamHandle stream))                                                                  \
  X(cuStreamQuery, 2000, (StreamHandle stream))                                                                        \
  X(cuEventCreate, 2000, (Event * event, unsigned flags))                                                              \
  X(cuEventDestroy, 4000, (Event event))                                                                               \
  X(cuEventRecord, 2000, (Event event, StreamHandle stream))                                                           \
  X(cuEventRecordWithFlags, 11010, (Event event, StreamHandle stream, unsigned flags))                                 \
  X(cuEventQuery, 2000, (Event event))                                                                                 \
  X(cuEventSynchronize, 2000, (Event event))                                                                           \
  X(cuEventElapsedTime, 2000, (float *milliseconds, Event begin, Event end))                                           \
  X(cuLaunchKernelEx, 11060, (const LaunchConfig *config, Function function, void **parameters, void **extra))         \
  X(cuMemcpyHtoDAsync, 3020, (Address to, const void *from, size_t bytes, StreamHandle stream))                        \
  X(cuMemcpyDtoHAsync, 3020, (void *to, Address from, size_t bytes, StreamHandle stream))                              \
  X(cuMemcpyDtoDAsync, 3020, (Address to, Address from, size_t bytes, StreamHandle stream))                            \
  X(cuMemsetD8Async, 3020, (Address to, unsigned char value, size_t bytes, StreamHandle stream))                       \
  X(cuStreamBeginCapture, 10010, (StreamHandle stream, int mode))                                                      \
  X(cuStreamEndCapture, 10000, (StreamHandle stream, Graph * graph))                                                   \
  X(cuGraphGetNodes, 10000, (Graph graph, GraphNode * nodes, size_t *count))                                           \
  X(cuGraphInstantiateWithFlags, 11040, (GraphExec * exec, Graph graph, unsigned long long flags))                     \
  X(cuGraphUpload, 11010, (GraphExec exec, StreamHandle stream))                                                       \
  X(cuGraphLaunch, 10000, (GraphExec exec, StreamHandle stream))                                                       \
  X(cuGraphDestroy, 10000, (Graph graph))                                                                              \
  X(cuGraphExecDestroy, 10000, (GraphExec exec))

/// cuGetProcAddress_v2: the one function that is looked up by its symbol.
using GetProcAddress = Result (*)(const char *name, void **function, int version, uint64_t flags, int *status);

/// The driver of CUDA 12.4 is the oldest that is taken: cuFuncLoad, priorities of graph nodes.
constexpr int kOldestDriver = 12040;

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_DRIVERAPI_H
