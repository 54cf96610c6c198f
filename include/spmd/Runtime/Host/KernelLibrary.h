//===- KernelLibrary.h - Compiled kernels of an artifact ---------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_KERNELLIBRARY_H
#define SPMD_RUNTIME_HOST_KERNELLIBRARY_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/Runtime/Host/Emulation.h"

#include <memory>
#include <string>
#include <string_view>

namespace spmd::runtime {

/// Runs iterations [begin, end) of a kernel's parallel loop. `arguments` are
/// pointers in the order of the command's references, `coordinates` the rank's
/// mesh coordinates.
using KernelFunction = void (*)(void *const *arguments, const int64_t *coordinates, int64_t begin, int64_t end);

class KernelLibrary {
public:
  /// Opens the library of the highest level that this processor runs, or the
  /// one for `cpu` when that is not empty.
  static Expected<KernelLibrary> open(const Artifact &artifact, const std::string &cpu);

  /// Null when there is no such symbol.
  KernelFunction find(const std::string &symbol) const;

  /// What each kernel takes (KernelTable.h).
  std::string_view table() const { return kernelTable; }

  const std::string &cpu() const { return level; }

  /// The emulator when these are kernels for GPUs, else null.
  Emulation *emulation() { return emulator ? &*emulator : nullptr; }
  const Emulation *emulation() const { return emulator ? &*emulator : nullptr; }

private:
  std::shared_ptr<void> handle;
  std::string_view kernelTable; ///< in the file
  std::string level;
  std::optional<Emulation> emulator;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_KERNELLIBRARY_H
