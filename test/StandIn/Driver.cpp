//===- Driver.cpp - Devices, entry points, settings, what is found --------===//

#include "Core.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <sstream>
#include <unistd.h>
#include <vector>

using namespace standin;

namespace standin {
size_t takenBytes();
size_t peakBytes();
size_t numReservations();
size_t numStreams();
extern size_t numEvents, numGraphs, numModules;
} // namespace standin

namespace {

std::map<std::string, std::string> &settings() {
  static std::map<std::string, std::string> read = [] {
    std::map<std::string, std::string> map;
    const char *text = std::getenv("STANDIN");
    for (std::string rest = text ? text : ""; !rest.empty();) {
      size_t end = std::min(rest.find(' '), rest.size());
      std::string word = rest.substr(0, end);
      size_t equals = word.find('=');
      if (equals != std::string::npos)
        map[word.substr(0, equals)] = word.substr(equals + 1);
      rest.erase(0, end + 1);
    }
    return map;
  }();
  return read;
}

/// What was found, said when the process ends.
struct Findings {
  std::map<std::string, int> reports;
  std::map<std::string, int64_t> calls;
  int64_t numCalls = 0;
  FILE *log = nullptr;

  Findings() {
    if (const char *file = standInSetting("log")) {
      std::string name = file;
      if (const char *rank = std::getenv("RANK"))
        name += std::string(".") + rank;
      log = std::fopen(name.c_str(), "w");
    }
  }
  ~Findings() {
    if (log)
      std::fclose(log);
    for (auto &[text, times] : reports)
      std::fprintf(stderr, "stand-in: %s (%d times)\n", text.c_str(), times);
    if (const char *leaks = standInSetting("leaks"); leaks && std::strcmp(leaks, "0") != 0) {
      auto say = [&](const char *what, size_t count) {
        if (count) {
          std::fprintf(stderr, "stand-in: leak: %zu %s\n", count, what);
          reports["leak"] = 1;
        }
      };
      say("bytes of device memory", takenBytes());
      say("reserved addresses", numReservations());
      say("streams", numStreams());
      say("events", numEvents);
      say("graphs", numGraphs);
      say("modules", numModules);
    }
    if (standInSetting("peak"))
      std::fprintf(stderr, "stand-in: %zu bytes of device memory at most\n", peakBytes());
    if (!reports.empty()) {
      std::fflush(nullptr);
      ::_exit(97);
    }
  }
};

Findings &findings() {
  static Findings all;
  return all;
}

CUctx_st contexts[64];

bool isMeant() {
  const char *wanted = standInSetting("rank");
  for (const char *name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char *rank = std::getenv(name); wanted && rank)
      return std::strcmp(wanted, rank) == 0;
  return true;
}

/// The GPUs of the machine that the process sees, by number: those of CUDA_VISIBLE_DEVICES up to the first that is
/// none.
std::vector<int> visibleDevices() {
  const char *given = standInSetting("devices"), *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  int count = given ? std::atoi(given) : 8;
  std::vector<int> numbers;
  if (!visible)
    for (int i = 0; i < count; ++i)
      numbers.push_back(i);
  std::istringstream words(visible ? visible : "");
  for (std::string word; std::getline(words, word, ',');) {
    char *end = nullptr;
    long number = std::strtol(word.c_str(), &end, 10);
    if (word.empty() || *end || number < 0 || number >= count)
      break;
    numbers.push_back(static_cast<int>(number));
  }
  return numbers;
}

int numDevices() { return static_cast<int>(visibleDevices().size()); }

/// Which symbol an application gets that was written for a CUDA version (cudaTypedefs.h).
struct Versioned {
  const char *name;
  int version;
  const char *symbol;
};
const Versioned kVersioned[] = {{"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
                                {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
                                {"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"},
                                {"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"},
                                {"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"},
                                {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
                                {"cuEventDestroy", 4000, "cuEventDestroy_v2"},
                                {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
                                {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"}};

} // namespace

STANDIN_API const char *standInSetting(const char *name) {
  auto it = settings().find(name);
  return it == settings().end() ? nullptr : it->second.c_str();
}

STANDIN_API void standInReport(const char *text) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  ++findings().reports[text];
}

STANDIN_API int standInEnter(const char *function) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  Findings &all = findings();
  int64_t number = ++all.calls[function];
  if (all.log) {
    std::fprintf(all.log, "%s\n", function);
    std::fflush(all.log);
  }
  // fail=FUNCTION:N[:RESULT], skip=FUNCTION:N and stop=FUNCTION:N: its n-th call, in the process of rank=R alone where
  // that is given.
  for (const char *how : {"fail", "skip", "stop"}) {
    const char *told = isMeant() ? standInSetting(how) : nullptr;
    std::string text = told ? told : "";
    size_t colon = text.find(':');
    if (!told || text.substr(0, colon) != function)
      continue;
    char *end = nullptr;
    if (std::strtoll(text.c_str() + colon + 1, &end, 10) != number)
      continue;
    if (std::strcmp(how, "stop") == 0)
      ::raise(SIGSTOP); // until somebody sends SIGCONT
    else
      return std::strcmp(how, "skip") == 0 ? kLeftOut : *end == ':' ? std::atoi(end + 1) : 999;
  }
  return 0;
}

extern "C" void standInWatchHost();

#define ENTER(function)                                                                                                \
  std::lock_guard<std::recursive_mutex> lock(mutex);                                                                   \
  if (Result result = standInEnter(function))                                                                          \
  return result == kLeftOut ? kSuccess : result

STANDIN_API Result cuInit(unsigned) {
  ENTER("cuInit");
  if (numDevices() == 0)
    return kNoDevice;
  standInWatchHost();
  return kSuccess;
}

STANDIN_API Result cuDriverGetVersion(int *version) {
  ENTER("cuDriverGetVersion");
  const char *given = standInSetting("driver");
  *version = given ? std::atoi(given) : 13000;
  return kSuccess;
}

STANDIN_API Result cuDeviceGetCount(int *count) {
  ENTER("cuDeviceGetCount");
  *count = numDevices();
  return kSuccess;
}

STANDIN_API Result cuDeviceGet(DeviceHandle *device, int ordinal) {
  ENTER("cuDeviceGet");
  *device = ordinal;
  return ordinal < numDevices() ? kSuccess : 101;
}

STANDIN_API Result cuDeviceGetName(char *name, int bytes, DeviceHandle) {
  ENTER("cuDeviceGetName");
  std::snprintf(name, static_cast<size_t>(bytes), "Stand-in");
  return kSuccess;
}

/// Hosts that are played by one (SPMD_HOST) have GPUs of their own.
STANDIN_API Result cuDeviceGetUuid_v2(DeviceUuid *uuid, DeviceHandle device) {
  ENTER("cuDeviceGetUuid");
  const char *host = std::getenv("SPMD_HOST");
  std::snprintf(reinterpret_cast<char *>(uuid->bytes), sizeof uuid->bytes, "%02d %s",
                visibleDevices()[static_cast<size_t>(device)], host ? host : "");
  return kSuccess;
}

STANDIN_API Result cuDeviceGetAttribute(int *value, int attribute, DeviceHandle) {
  ENTER("cuDeviceGetAttribute");
  const char *given = standInSetting("chip");
  int chip = given ? std::atoi(given) : 90;
  switch (attribute) {
  case kComputeCapabilityMajor:
    *value = chip / 10;
    break;
  case kComputeCapabilityMinor:
    *value = chip % 10;
    break;
  case kMultiprocessorCount:
    *value = 132;
    break;
  case kVirtualMemoryManagement:
    *value = 1;
    break;
  default:
    *value = 0;
  }
  return kSuccess;
}

STANDIN_API Result cuDevicePrimaryCtxRetain(Context *context, DeviceHandle device) {
  ENTER("cuDevicePrimaryCtxRetain");
  contexts[device].device = device;
  ++contexts[device].users;
  *context = &contexts[device];
  return kSuccess;
}

STANDIN_API Result cuDevicePrimaryCtxRelease_v2(DeviceHandle device) {
  ENTER("cuDevicePrimaryCtxRelease");
  --contexts[device].users;
  return kSuccess;
}

STANDIN_API Result cuGetErrorName(Result result, const char **text) {
  static thread_local char buffer[32];
  std::snprintf(buffer, sizeof buffer, "CUDA_ERROR_%d", result);
  *text = buffer;
  return kSuccess;
}

STANDIN_API Result cuGetErrorString(Result result, const char **text) {
  switch (result) {
  case kOutOfMemory:
    *text = "out of memory";
    break;
  case kNoDevice:
    *text = "no CUDA-capable device is detected";
    break;
  case kInvalidValue:
    *text = "invalid argument";
    break;
  case kNoBinaryForGpu:
    // A driver compiles or picks what it loads; here only emulated kernels run.
    *text = "no kernel image is available for execution on the device; a stand-in runs kernels that were compiled with "
            "--emulation";
    break;
  default:
    *text = "an error of the stand-in";
  }
  return kSuccess;
}

STANDIN_API Result cuGetProcAddress_v2(const char *name, void **pointer, int version, uint64_t, int *status) {
  std::string symbol = name;
  for (const Versioned &entry : kVersioned)
    if (symbol == entry.name && version >= entry.version)
      symbol = entry.symbol;
  static void *self = [] {
    Dl_info info;
    ::dladdr(reinterpret_cast<void *>(&cuInit), &info);
    return ::dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  const char *missing = standInSetting("without");
  *pointer = missing && symbol.rfind(missing, 0) == 0 ? nullptr : ::dlsym(self, symbol.c_str());
  if (status)
    *status = *pointer ? 0 : 1;
  return *pointer ? kSuccess : kNotFound;
}
