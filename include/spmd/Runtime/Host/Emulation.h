//===- Emulation.h - kernels for GPUs that run on the CPU --------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_EMULATION_H
#define SPMD_RUNTIME_HOST_EMULATION_H

#include "spmd/Runtime/Core/Status.h"
#include "spmd/Runtime/Emulation.h"

#include <optional>
#include <string>

namespace spmd::runtime {

/// The emulator inside of a kernel library (docs/emulation.md).
class Emulation {
public:
  /// The emulator of a library that dlopen gave, or nothing when its kernels are the CPU's own.
  static std::optional<Emulation> find(void *library);

  /// STRENGTH[,SCHEDULE[,SEED]]: plain or checked; forward, reverse, random or warp-greedy; a number for random. Empty:
  /// checked,forward.
  Status configure(const std::string &text);

  bool isChecked() const { return checked; }
  /// The message of the first check that failed, or null.
  const char *error() const { return getError(); }
  /// The arguments of the launch that failed: whose kernel it was.
  void *const *failedArguments() const { return getFailedArguments(); }
  SpmdEmulationCounts counts() const;

private:
  decltype(&spmd_emulation_configure) set = nullptr;
  decltype(&spmd_emulation_error) getError = nullptr;
  decltype(&spmd_emulation_failed_arguments) getFailedArguments = nullptr;
  decltype(&spmd_emulation_counts) getCounts = nullptr;
  bool checked = false;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_EMULATION_H
