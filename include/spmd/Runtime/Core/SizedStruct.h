//===- SizedStruct.h - Structs that begin with their size ---------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_SIZEDSTRUCT_H
#define SPMD_RUNTIME_CORE_SIZEDSTRUCT_H

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

namespace spmd::runtime {

/// Fills the `size` bytes of a caller's struct: with `defaults`, and zeros where a later version has members.
template <typename T>
void initSized(T *given, size_t size, T defaults) {
  defaults.size = size;
  std::memset(static_cast<void *>(given), 0, size);
  std::memcpy(static_cast<void *>(given), &defaults, std::min(size, sizeof defaults));
}

/// No version's struct is larger: a size beyond was never set.
inline constexpr size_t kLargestSize = 4096;

/// A caller's struct, of which members that it does not know are `defaults`. Nothing when there is none, when its size is
/// none, or when it has set a member that this version does not know.
template <typename T>
std::optional<T> readSized(const T *given, T defaults) {
  if (!given || given->size < sizeof given->size || given->size > kLargestSize)
    return std::nullopt;
  size_t common = std::min(given->size, sizeof defaults);
  const char *bytes = reinterpret_cast<const char *>(given);
  if (std::any_of(bytes + common, bytes + given->size, [](char byte) { return byte != 0; }))
    return std::nullopt;
  std::memcpy(static_cast<void *>(&defaults), bytes, common);
  return defaults;
}

/// Fills what a caller knows of a struct of its own with `filled`, and zeros where a later version has members. False:
/// there is none, or its size is none.
template <typename T>
bool fillSized(T *given, T filled) {
  if (!given || given->size < sizeof given->size || given->size > kLargestSize)
    return false;
  initSized(given, given->size, filled);
  return true;
}

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_SIZEDSTRUCT_H
