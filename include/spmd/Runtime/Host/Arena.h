//===- Arena.h - The one allocation of a rank --------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_ARENA_H
#define SPMD_RUNTIME_HOST_ARENA_H

#include "spmd/Runtime/Core/Status.h"

#include <cstddef>
#include <cstdint>

namespace spmd::runtime {

/// A zeroed, page-aligned range of memory; 2 MiB aligned and hinted for huge
/// pages when it is large. Pages are only backed once they are touched, so the
/// first thread that writes them decides their NUMA node.
class Arena {
public:
  static Expected<Arena> allocate(int64_t bytes);

  Arena(Arena &&other) noexcept;
  Arena &operator=(Arena &&other) noexcept;
  ~Arena();

  char *data() const { return base; }
  int64_t size() const { return bytes; }

private:
  Arena(void *mapping, size_t mappedBytes, char *base, int64_t bytes)
      : mapping(mapping), mappedBytes(mappedBytes), base(base), bytes(bytes) {}

  void *mapping;
  size_t mappedBytes;
  char *base;
  int64_t bytes;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_ARENA_H
