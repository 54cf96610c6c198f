//===- AllocationCounter.cpp - malloc and friends, counted ----------------===//

#include "AllocationCounter.h"

#include "test/unit/Sanitized.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

// The program's definitions win over the C library's in every shared library,
// so operator new and all others come through here.
static std::atomic<int64_t> allocations{0};

int64_t countAllocations() { return allocations.load(); }

#if !SPMD_IS_SANITIZED
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
void *memalign(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **result, size_t alignment, size_t size) {
  ++allocations;
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}
}
#endif
