//===- Driver.cpp ---------------------------------------------------------===//

#include "Driver.h"
#include "SharedLibrary.h"

#include <mutex>

namespace spmd::runtime::cuda {

Expected<std::shared_ptr<const Driver>> Driver::open() {
  Expected<void *> library = openLibrary("the CUDA driver", {"libcuda.so.1"});
  if (!library)
    return library.error();
  auto getProcAddress = reinterpret_cast<GetProcAddress>(findSymbol(*library, "cuGetProcAddress_v2"));
  auto tooOld = [&](const std::string &found) {
    return Status::badInput("the CUDA driver is too old: it is " + found + ", and " + formatCudaVersion(kOldestDriver) +
                            " is needed; " + kHint);
  };
  if (!getProcAddress)
    return tooOld("one of CUDA 11 or before");
  auto driver = std::make_shared<Driver>();
  auto look = [&](auto &function, const char *name, int version) {
    void *pointer = nullptr;
    int status = 0;
    if (getProcAddress(name, &pointer, version, 0, &status) != kSuccess)
      pointer = nullptr;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(pointer);
    return pointer != nullptr;
  };
  if (!look(driver->cuDriverGetVersion, "cuDriverGetVersion", 2020) ||
      driver->cuDriverGetVersion(&driver->found) != kSuccess)
    return tooOld("of no known version");
  if (driver->found < kOldestDriver)
    return tooOld("of CUDA " + formatCudaVersion(driver->found));
#define SPMD_LOOK(name, version, parameters)                                                                           \
  if (!look(driver->name, #name, version))                                                                             \
    return Status::badInput("the CUDA driver of version " + formatCudaVersion(driver->found) + " has no " #name "; " + \
                            std::string(kHint));
  SPMD_CUDA_DRIVER_FUNCTIONS(SPMD_LOOK)
#undef SPMD_LOOK
  if (Result result = driver->cuInit(0); result != kSuccess)
    return Status::badInput(driver->check(result, "cuInit").message +
                            (result == kNoDevice ? "; there is no GPU here, or CUDA_VISIBLE_DEVICES hides it"
                                                 : "; nvidia-smi says whether driver and GPU work"));
  return std::shared_ptr<const Driver>(std::move(driver));
}

Expected<std::shared_ptr<const Driver>> Driver::load() {
  static std::mutex mutex;
  static std::shared_ptr<const Driver> kept;
  std::lock_guard<std::mutex> lock(mutex);
  if (kept)
    return kept;
  Expected<std::shared_ptr<const Driver>> driver = open();
  if (driver)
    kept = *driver;
  return driver;
}

Status Driver::check(Result result, const std::string &what) const {
  if (result == kSuccess)
    return Status::success();
  const char *name = nullptr, *text = nullptr;
  if (!cuGetErrorName || cuGetErrorName(result, &name) != kSuccess || !name)
    name = "unknown";
  if (!cuGetErrorString || cuGetErrorString(result, &text) != kSuccess || !text)
    text = "an error";
  return Status::failed("CUDA: " + what + ": " + text + " (" + name + ", " + std::to_string(result) + ")");
}

} // namespace spmd::runtime::cuda
