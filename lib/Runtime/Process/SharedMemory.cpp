//===- SharedMemory.cpp - Memory of the processes of a host ---------------===//

#include "SharedMemory.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace spmd::runtime {

Expected<Descriptor> makeSharedFile(int64_t bytes) {
  Descriptor file(::memfd_create("spmd", MFD_CLOEXEC));
  if (file.get() < 0 || ::ftruncate(file.get(), bytes) != 0)
    return Status::failed("cannot make " + std::to_string(bytes) + " bytes of shared memory: " + std::strerror(errno));
  return file;
}

std::string getSharedName(const Descriptor &file) {
  return std::to_string(::getpid()) + ":" + std::to_string(file.get());
}

Expected<Descriptor> openSharedFile(const std::string &name) {
  size_t colon = name.find(':');
  std::string path = colon == std::string::npos
                         ? ""
                         : "/proc/" + name.substr(0, colon) + "/fd/" + name.substr(colon + 1);
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0)
    return Status::failed("cannot open the memory of process " + name.substr(0, colon) + ": " + std::strerror(errno));
  return file;
}

Expected<std::shared_ptr<char>> mapSharedFile(const Descriptor &file, int64_t bytes) {
  constexpr size_t hugePage = size_t(2) << 20;
  auto fail = [&] {
    return Status::failed("cannot map " + std::to_string(bytes) + " bytes of shared memory: " + std::strerror(errno));
  };
  struct stat status;
  if (::fstat(file.get(), &status) != 0)
    return fail();
  // Beyond the end of a file its pages end the process that reads them.
  if (status.st_size < bytes)
    return Status::failed("shared memory has " + std::to_string(status.st_size) + " bytes, not " +
                          std::to_string(bytes));
  auto size = static_cast<size_t>(bytes);
  size_t reserved = size + hugePage;
  void *space = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED)
    return fail();
  auto address = reinterpret_cast<uintptr_t>(space);
  char *base = static_cast<char *>(space) + ((address + hugePage - 1) / hugePage * hugePage - address);
  void *mapped = ::mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0);
  std::shared_ptr<char> memory(base, [space, reserved](char *) { ::munmap(space, reserved); });
  if (mapped == MAP_FAILED)
    return fail();
  if (size >= hugePage)
    ::madvise(base, size, MADV_HUGEPAGE); // a hint: the system may not have it for shared memory
  return memory;
}

} // namespace spmd::runtime
