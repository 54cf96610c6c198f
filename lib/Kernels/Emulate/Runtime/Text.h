//===- Text.h - builds messages without a library ---------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EMULATE_RUNTIME_TEXT_H
#define SPMD_LIB_KERNELS_EMULATE_RUNTIME_TEXT_H

#include <stddef.h>
#include <stdint.h>

namespace spmd::emulation {

/// A message of bounded length; what does not fit is cut off.
class Text {
public:
  Text &operator<<(const char *text) {
    while (*text && length + 1 < sizeof buffer)
      buffer[length++] = *text++;
    buffer[length] = 0;
    return *this;
  }
  Text &operator<<(int64_t value) {
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = 0;
    // Negated, because the lowest number has no positive.
    for (int64_t rest = value < 0 ? value : -value; rest || !digits[at]; rest /= 10)
      digits[--at] = static_cast<char>('0' - rest % 10);
    if (value < 0)
      digits[--at] = '-';
    return *this << digits + at;
  }
  const char *get() const { return buffer; }
  void clear() { buffer[length = 0] = 0; }

private:
  char buffer[1024] = "";
  size_t length = 0;
};

} // namespace spmd::emulation

#endif // SPMD_LIB_KERNELS_EMULATE_RUNTIME_TEXT_H
