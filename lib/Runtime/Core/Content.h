//===- Content.h - Which values bytes hold ------------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_CONTENT_H
#define SPMD_RUNTIME_CORE_CONTENT_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spmd::runtime {

/// Bytes [offset, offset + bytes) of a value. Values below 0 are no one's: see constantValue, kUnwritten.
struct Piece {
  int32_t value;
  int64_t offset, bytes;

  bool operator==(const Piece &other) const {
    return value == other.value && offset == other.offset && bytes == other.bytes;
  }
};

/// The value all of whose bytes are `byte`.
constexpr int32_t constantValue(int32_t byte) { return -1 - byte; }
/// What nothing has written.
constexpr int32_t kUnwritten = -1000;

/// Appends the bytes of a number to a key of a table.
void appendKey(std::string &key, int64_t number);

/// What a range of bytes holds: pieces one after the other, none of them empty, and as few as there can be, so that
/// equal contents compare equal.
class Content {
public:
  Content() = default;
  /// A whole value.
  Content(int32_t value, int64_t bytes) { append({value, 0, bytes}); }

  void append(Piece piece);
  void append(const Content &other);
  /// Bytes [offset, offset + bytes).
  Content slice(int64_t offset, int64_t bytes) const;

  const std::vector<Piece> &pieces() const { return list; }
  int64_t bytes() const;
  bool operator==(const Content &other) const { return list == other.list; }
  bool operator!=(const Content &other) const { return !(*this == other); }
  /// The same bytes for equal contents, others for others, and none that begin as others.
  std::string key() const;
  void appendKey(std::string &key) const;

private:
  std::vector<Piece> list;
};

/// The content of one buffer.
class BufferContent {
public:
  void write(int64_t begin, const Content &content);
  Content read(int64_t begin, int64_t bytes) const;

private:
  std::map<int64_t, Piece> pieces; ///< by where they begin; apart from each other
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_CONTENT_H
