//===- MappedFile.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Core/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace spmd::runtime;

Expected<MappedFile> MappedFile::open(const std::string &path) {
  auto failed = [&](const char *action) {
    return Status::badInput(std::string("cannot ") + action + " '" + path + "': " + std::strerror(errno));
  };
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return failed("read");
  struct stat info;
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return Status::badInput("'" + path + "' is not a regular file");
  }
  MappedFile file;
  file.bytes = static_cast<size_t>(info.st_size);
  void *address = file.bytes ? ::mmap(nullptr, file.bytes, PROT_READ, MAP_PRIVATE, descriptor, 0) : nullptr;
  ::close(descriptor);
  if (address == MAP_FAILED)
    return failed("map");
  if (address)
    file.mapping = std::shared_ptr<void>(address, [length = file.bytes](void *p) { ::munmap(p, length); });
  return file;
}
