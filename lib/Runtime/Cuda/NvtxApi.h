//===- NvtxApi.h - How profilers take ranges ----------------------*- C++ -*-===//
//
// NVTX 3 is no library: a profiler names one of its own in the environment, and a
// program that has ranges to tell of loads it and lets it fill in tables of
// functions. Declarations of our own, as in DriverApi.h: what nvtx3/nvtxDetail
// does for programs that are compiled with it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_NVTXAPI_H
#define SPMD_LIB_RUNTIME_CUDA_NVTXAPI_H

#include <cstddef>
#include <cstdint>

namespace spmd::runtime::nvtx {

constexpr char kLibraryVariable[] = "NVTX_INJECTION64_PATH";
constexpr char kInitialize[] = "InitializeInjectionNvtx2"; ///< int (ExportTable)

using Function = void (*)();
using FunctionTable = Function **; ///< of a module: by number, where the tool puts its function
using ExportTable = const void *(*)(uint32_t id);

enum : uint32_t { kCallbacksTable = 1, kVersionTable = 3 };

struct CallbacksTable {
  size_t size;
  int (*getModuleFunctionTable)(int module, FunctionTable *table, unsigned *count);
};
struct VersionTable {
  size_t size;
  uint32_t version, reserved;
  void (*setInjectionVersion)(uint32_t version);
};

enum Module : int { kCore = 1, kCuda, kOpenCl, kCudaRuntime, kCore2, kSync, kModules };
/// How many functions each has, by its number; the first is none.
constexpr unsigned kFunctionsOf[kModules] = {0, 16, 9, 15, 7, 16, 7};

/// What is used, of module kCore2.
enum : unsigned { kRangePush = 4, kRangePop = 5, kRegisterString = 10, kCreateDomain = 12 };

using Domain = struct nvtxDomainRegistration_st *;
using String = struct nvtxStringRegistration_st *;

constexpr uint16_t kVersion = 3;
enum : int32_t { kAsciiText = 1, kRegisteredText = 3 };

struct EventAttributes {
  uint16_t version = kVersion;
  uint16_t size = sizeof(EventAttributes);
  uint32_t category = 0;
  int32_t colorType = 0;
  uint32_t color = 0;
  int32_t payloadType = 0;
  int32_t reserved = 0;
  uint64_t payload = 0;
  int32_t textType = 0;
  union {
    const char *ascii = nullptr;
    String registered;
  } text;
};

using RangePush = int (*)(Domain domain, const EventAttributes *attributes);
using RangePop = int (*)(Domain domain);
using RegisterString = String (*)(Domain domain, const char *text);
using CreateDomain = Domain (*)(const char *name);

} // namespace spmd::runtime::nvtx

#endif // SPMD_LIB_RUNTIME_CUDA_NVTXAPI_H
