//===- HeadersTest.cpp - Our declarations beside NVIDIA's -----------------===//
//
// Built where cuda.h, nccl.h and cublasLt.h are: every signature is as the caller
// of the library must have it, and every constant and struct is theirs. Most of
// it fails to compile when it is not so.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/CublasLtApi.h"
#include "lib/Runtime/Cuda/NcclApi.h"
#include "lib/Runtime/Cuda/NvtxApi.h"

#include <cublasLt.h>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <gtest/gtest.h>
#include <nccl.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif
#include <type_traits>

// They name the newest version of each; we ask for those in the table.
#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuMemGetInfo
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync
#undef cuStreamBeginCapture
#undef cuEventElapsedTime

using namespace spmd::runtime;

namespace {

/// What the calling convention sees of a parameter: enums are integers, pointers are pointers.
template <typename T>
struct Passed {
  static constexpr int kind = std::is_pointer_v<T> ? 1 : std::is_floating_point_v<T> ? 2 : std::is_class_v<T> ? 3 : 0;
  static constexpr size_t bytes = sizeof(T);
};

template <typename A, typename B>
constexpr bool isPassedAlike = Passed<A>::kind == Passed<B>::kind && Passed<A>::bytes == Passed<B>::bytes;

template <typename A, typename B>
struct Alike : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct Alike<R(A...), S(B...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return isPassedAlike<R, S> && (isPassedAlike<A, B> && ...);
  }
  static constexpr bool value = check();
};

namespace ours {
using namespace cuda;
#define X(name, version, parameters) using name = cuda::Result parameters;
SPMD_CUDA_DRIVER_FUNCTIONS(X)
#undef X
} // namespace ours
namespace oursNccl {
using namespace nccl;
#define X(name, parameters) using name = nccl::Result parameters;
SPMD_NCCL_FUNCTIONS(X)
#undef X
} // namespace oursNccl
namespace oursCublas {
using namespace cublas;
#define X(name, parameters) using name = cublas::Status parameters;
SPMD_CUBLASLT_FUNCTIONS(X)
#undef X
} // namespace oursCublas

#define X(name, version, parameters)                                                                                   \
  static_assert(Alike<ours::name, std::remove_pointer_t<PFN_##name##_v##version>>::value, #name);
SPMD_CUDA_DRIVER_FUNCTIONS(X)
#undef X
#define X(name, parameters) static_assert(Alike<oursNccl::name, decltype(::name)>::value, #name);
SPMD_NCCL_FUNCTIONS(X)
#undef X
#define X(name, parameters) static_assert(Alike<oursCublas::name, decltype(::name)>::value, #name);
SPMD_CUBLASLT_FUNCTIONS(X)
#undef X

#define SAME(a, b) static_assert(static_cast<long long>(a) == static_cast<long long>(b), #b)
SAME(cuda::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(cuda::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(cuda::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(cuda::kNoDevice, CUDA_ERROR_NO_DEVICE);
SAME(cuda::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
SAME(cuda::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(cuda::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME(cuda::kIllegalState, CUDA_ERROR_ILLEGAL_STATE);
SAME(cuda::kNotFound, CUDA_ERROR_NOT_FOUND);
SAME(cuda::kNotReady, CUDA_ERROR_NOT_READY);
SAME(cuda::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(cuda::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SAME(cuda::kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(cuda::kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(cuda::kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(cuda::kCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
SAME(cuda::kCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(cuda::kCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SAME(cuda::kCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME(cuda::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(cuda::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(cuda::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(cuda::kVirtualMemoryManagement, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(cuda::kEventDefault, CU_EVENT_DEFAULT);
SAME(cuda::kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME(cuda::kEventRecordExternal, CU_EVENT_RECORD_EXTERNAL);
SAME(cuda::kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(cuda::kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(cuda::kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(cuda::kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(cuda::kHandlePosixFile, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(cuda::kGranularityRecommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(cuda::kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(cuda::kGraphUseNodePriority, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
SAME(sizeof(cuda::AllocationProperties), sizeof(CUmemAllocationProp));
SAME(offsetof(cuda::AllocationProperties, location), offsetof(CUmemAllocationProp, location));
SAME(offsetof(cuda::AllocationProperties, allocFlags), offsetof(CUmemAllocationProp, allocFlags));
SAME(sizeof(cuda::DeviceUuid), sizeof(CUuuid));
SAME(sizeof(cuda::AccessDescription), sizeof(CUmemAccessDesc));
SAME(offsetof(cuda::AccessDescription, flags), offsetof(CUmemAccessDesc, flags));
SAME(sizeof(cuda::LaunchConfig), sizeof(CUlaunchConfig));
SAME(offsetof(cuda::LaunchConfig, sharedBytes), offsetof(CUlaunchConfig, sharedMemBytes));
SAME(offsetof(cuda::LaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(cuda::LaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
SAME(offsetof(cuda::LaunchConfig, numAttributes), offsetof(CUlaunchConfig, numAttrs));

SAME(nccl::kUnhandledCudaError, ncclUnhandledCudaError);
SAME(nccl::kSystemError, ncclSystemError);
SAME(nccl::kInternalError, ncclInternalError);
SAME(nccl::kInvalidArgument, ncclInvalidArgument);
SAME(nccl::kInvalidUsage, ncclInvalidUsage);
SAME(nccl::kRemoteError, ncclRemoteError);
SAME(nccl::kInProgress, ncclInProgress);
SAME(nccl::kInt8, ncclInt8);
SAME(nccl::kUint8, ncclUint8);
SAME(nccl::kInt32, ncclInt32);
SAME(nccl::kInt64, ncclInt64);
SAME(nccl::kFloat16, ncclFloat16);
SAME(nccl::kFloat32, ncclFloat32);
SAME(nccl::kFloat64, ncclFloat64);
SAME(nccl::kBfloat16, ncclBfloat16);
SAME(nccl::kSum, ncclSum);
SAME(nccl::kMax, ncclMax);
SAME(nccl::kMin, ncclMin);
SAME(nccl::kWindowSymmetric, NCCL_WIN_COLL_SYMMETRIC);
SAME(sizeof(nccl::UniqueId), sizeof(ncclUniqueId));
static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t), "ncclConfig_t");
SAME(offsetof(nccl::Config, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(nccl::Config, version), offsetof(ncclConfig_t, version));
SAME(offsetof(nccl::Config, blocking), offsetof(ncclConfig_t, blocking));
SAME(offsetof(nccl::Config, maxCTAs), offsetof(ncclConfig_t, maxCTAs));
SAME(offsetof(nccl::Config, netName), offsetof(ncclConfig_t, netName));
SAME(offsetof(nccl::Config, commName), offsetof(ncclConfig_t, commName));
SAME(offsetof(nccl::Config, nvlsCTAs), offsetof(ncclConfig_t, nvlsCTAs));

SAME(cublas::kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(cublas::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
SAME(cublas::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(cublas::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(cublas::kF32, CUDA_R_32F);
SAME(cublas::kF64, CUDA_R_64F);
SAME(cublas::kF16, CUDA_R_16F);
SAME(cublas::kBF16, CUDA_R_16BF);
SAME(cublas::kCompute32F, CUBLAS_COMPUTE_32F);
SAME(cublas::kCompute64F, CUBLAS_COMPUTE_64F);
SAME(cublas::kCompute32FTF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(cublas::kTransA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(cublas::kTransB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(cublas::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(cublas::kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(cublas::kEpilogueAuxPointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME(cublas::kEpilogueAuxLd, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME(cublas::kEpilogueAuxBatchStride, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
SAME(cublas::kBiasDataType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(cublas::kEpilogueAuxDataType, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE);
SAME(cublas::kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(cublas::kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(cublas::kMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(cublas::kMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(cublas::kMinAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(cublas::kMinAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(cublas::kMinAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(cublas::kEpilogueDefault, CUBLASLT_EPILOGUE_DEFAULT);
SAME(cublas::kEpilogueRelu, CUBLASLT_EPILOGUE_RELU);
SAME(cublas::kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
SAME(cublas::kEpilogueReluBias, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(cublas::kEpilogueGelu, CUBLASLT_EPILOGUE_GELU);
SAME(cublas::kEpilogueGeluBias, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(cublas::kEpilogueGeluAux, CUBLASLT_EPILOGUE_GELU_AUX);
SAME(cublas::kEpilogueGeluAuxBias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME(cublas::kEpilogueDGelu, CUBLASLT_EPILOGUE_DGELU);
SAME(cublas::kEpilogueDGeluBgrad, CUBLASLT_EPILOGUE_DGELU_BGRAD);
SAME(cublas::kEpilogueBgradA, CUBLASLT_EPILOGUE_BGRADA);
SAME(cublas::kEpilogueBgradB, CUBLASLT_EPILOGUE_BGRADB);
SAME(sizeof(cublas::Algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(cublas::HeuristicResult), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(cublas::HeuristicResult, workspaceBytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(cublas::HeuristicResult, state), offsetof(cublasLtMatmulHeuristicResult_t, state));

#ifdef NVTX_VERSION
SAME(nvtx::kVersion, NVTX_VERSION);
SAME(nvtx::kAsciiText, NVTX_MESSAGE_TYPE_ASCII);
SAME(nvtx::kRegisteredText, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(nvtx::kCallbacksTable, NVTX_ETID_CALLBACKS);
SAME(nvtx::kVersionTable, NVTX_ETID_VERSIONINFO);
SAME(nvtx::kFunctionsOf[NVTX_CB_MODULE_CORE], NVTX_CBID_CORE_SIZE);
SAME(nvtx::kFunctionsOf[NVTX_CB_MODULE_CUDA], NVTX_CBID_CUDA_SIZE);
SAME(nvtx::kFunctionsOf[NVTX_CB_MODULE_OPENCL], NVTX_CBID_OPENCL_SIZE);
SAME(nvtx::kFunctionsOf[NVTX_CB_MODULE_CUDART], NVTX_CBID_CUDART_SIZE);
SAME(nvtx::kFunctionsOf[NVTX_CB_MODULE_CORE2], NVTX_CBID_CORE2_SIZE);
SAME(nvtx::kFunctionsOf[NVTX_CB_MODULE_SYNC], NVTX_CBID_SYNC_SIZE);
SAME(nvtx::kModules, NVTX_CB_MODULE_SIZE);
SAME(nvtx::kCore2, NVTX_CB_MODULE_CORE2);
SAME(nvtx::kRangePush, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(nvtx::kRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME(nvtx::kRegisterString, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(nvtx::kCreateDomain, NVTX_CBID_CORE2_DomainCreateA);
SAME(sizeof(nvtx::CallbacksTable), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(nvtx::CallbacksTable, getModuleFunctionTable),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
SAME(sizeof(nvtx::VersionTable), sizeof(NvtxExportTableVersionInfo));
SAME(offsetof(nvtx::VersionTable, setInjectionVersion), offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
SAME(sizeof(nvtx::EventAttributes), sizeof(nvtxEventAttributes_t));
SAME(offsetof(nvtx::EventAttributes, payload), offsetof(nvtxEventAttributes_t, payload));
SAME(offsetof(nvtx::EventAttributes, textType), offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(nvtx::EventAttributes, text), offsetof(nvtxEventAttributes_t, message));
#endif

TEST(CudaHeaders, ConfigIsReadByItsSize) {
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  nccl::Config mine;
  EXPECT_EQ(mine.magic, theirs.magic);
  EXPECT_LE(mine.version, theirs.version);
}

} // namespace
