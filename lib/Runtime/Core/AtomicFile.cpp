//===- AtomicFile.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Core/AtomicFile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace spmd::runtime;

static Status cannotWrite(const std::string &path, int error) {
  return Status::badInput("cannot write '" + path + "': " + std::strerror(error));
}

Expected<AtomicFile> AtomicFile::create(const std::string &target) {
  std::string path = target;
  struct stat info;
  if (::stat(target.c_str(), &info) == 0) {
    // A rename would take the place of a device, and of a link itself.
    if (!S_ISREG(info.st_mode))
      return Status::badInput("cannot write '" + target + "': not a regular file");
    if (std::unique_ptr<char, decltype(&std::free)> real(::realpath(target.c_str(), nullptr), &std::free); real)
      path = real.get();
  }
  std::string temporary = path + ".tmp." + std::to_string(::getpid());
  std::FILE *stream = std::fopen(temporary.c_str(), "wb");
  if (!stream)
    return cannotWrite(target, errno);
  return AtomicFile(std::move(path), std::move(temporary), stream);
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      stream(std::exchange(other.stream, nullptr)), error(other.error) {}

AtomicFile::~AtomicFile() {
  if (!stream)
    return;
  close();
  std::remove(temporary.c_str());
}

void AtomicFile::write(const void *data, size_t bytes) {
  if (!error && bytes && std::fwrite(data, 1, bytes, stream) != bytes)
    error = errno;
}

void AtomicFile::close() {
  if (std::fclose(std::exchange(stream, nullptr)) != 0 && !error)
    error = errno;
}

Status AtomicFile::commit() {
  // Data must be on disk before the name points to it.
  if (!error && (std::fflush(stream) != 0 || ::fsync(::fileno(stream)) != 0))
    error = errno;
  close();
  if (!error && std::rename(temporary.c_str(), path.c_str()) != 0)
    error = errno;
  if (!error)
    return Status::success();
  std::remove(temporary.c_str());
  return cannotWrite(path, error);
}

Status spmd::runtime::writeFile(const std::string &path, std::string_view text) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  file->write(text.data(), text.size());
  return file->commit();
}
