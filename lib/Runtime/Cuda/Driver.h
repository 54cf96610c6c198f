//===- Driver.h - CUDA's driver, loaded ---------------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_DRIVER_H
#define SPMD_LIB_RUNTIME_CUDA_DRIVER_H

#include "DriverApi.h"
#include "spmd/Runtime/Core/Manifest.h"

#include <memory>
#include <string>

namespace spmd::runtime::cuda {

/// The functions of the driver that are used. A process has one.
class Driver {
public:
  /// Loads and starts it. An error says what is missing or too old.
  static Expected<std::shared_ptr<const Driver>> load();
  /// How to get a newer one, which has what this one lacks.
  static constexpr const char *kHint = "update NVIDIA's driver";

#define SPMD_DECLARE(name, version, parameters) Result(*name) parameters = nullptr;
  SPMD_CUDA_DRIVER_FUNCTIONS(SPMD_DECLARE)
#undef SPMD_DECLARE

  /// Success, or "CUDA: WHAT: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  Status check(Result result, const std::string &what) const;

  LibraryVersion cudaVersion() const { return {found / 1000, found % 1000 / 10}; }

private:
  static Expected<std::shared_ptr<const Driver>> open();
  int found = 0;
};

} // namespace spmd::runtime::cuda

/// Returns the error of a call of the driver from a function that returns a Status or an Expected.
#define SPMD_CUDA_TRY(driver, function, ...)                                                                           \
  do {                                                                                                                 \
    if (::spmd::runtime::Status tried = (driver).check((driver).function(__VA_ARGS__), #function); !tried.ok())        \
      return tried;                                                                                                    \
  } while (0)

#endif // SPMD_LIB_RUNTIME_CUDA_DRIVER_H
