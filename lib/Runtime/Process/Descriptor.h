//===- Descriptor.h - An open file, socket or process -------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_DESCRIPTOR_H
#define SPMD_LIB_RUNTIME_PROCESS_DESCRIPTOR_H

#include <unistd.h>
#include <utility>

namespace spmd::runtime {

/// Owns a file descriptor; -1 is none.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }

  int get() const { return fd; }
  bool isValid() const { return fd >= 0; }

private:
  int fd = -1;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_DESCRIPTOR_H
