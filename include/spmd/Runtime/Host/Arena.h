//===- Arena.h - The one allocation of a rank --------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_ARENA_H
#define SPMD_RUNTIME_HOST_ARENA_H

#include "spmd/Runtime/Core/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace spmd::runtime {

/// A zeroed, page-aligned range of memory; 2 MiB aligned and hinted for huge
/// pages when it is large. Pages are only backed once they are touched, so the
/// first thread that writes them decides their NUMA node.
class Arena {
public:
  static Expected<Arena> allocate(int64_t bytes);

  /// Memory that somebody else has made so.
  Arena(std::shared_ptr<char> memory, int64_t bytes) : memory(std::move(memory)), bytes(bytes) {}

  char *data() const { return memory.get(); }
  int64_t size() const { return bytes; }

private:
  std::shared_ptr<char> memory;
  int64_t bytes;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_ARENA_H
