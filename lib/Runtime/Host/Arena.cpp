//===- Arena.cpp ----------------------------------------------------------===//

#include "spmd/Runtime/Host/Arena.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace spmd::runtime;

Expected<Arena> Arena::allocate(int64_t bytes) {
  constexpr size_t hugePage = size_t(2) << 20;
  auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t size = (static_cast<size_t>(bytes) + page - 1) / page * page;
  size_t alignment = size >= hugePage ? hugePage : page;
  // Address space for the alignment is reserved, never touched.
  size_t mapped = size + alignment;
  void *mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return Status::failed("cannot allocate an arena of " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  auto address = reinterpret_cast<uintptr_t>(mapping);
  char *base = static_cast<char *>(mapping) + ((address + alignment - 1) / alignment * alignment - address);
  if (size >= hugePage)
    ::madvise(base, size, MADV_HUGEPAGE); // a hint: may fail
  return Arena(std::shared_ptr<char>(base, [mapping, mapped](char *) { ::munmap(mapping, mapped); }), bytes);
}
