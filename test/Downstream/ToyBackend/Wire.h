//===- Wire.h - Values as bytes -------------------------------------*- C++ -*-===//

#ifndef SPMD_TEST_DOWNSTREAM_TOYBACKEND_WIRE_H
#define SPMD_TEST_DOWNSTREAM_TOYBACKEND_WIRE_H

#include "spmd/Runtime/Core/Collective.h"

#include <cstring>
#include <string>
#include <vector>

namespace toy {

/// All processes are of one program, so values are sent as they lie in memory.
class Writer {
public:
  template <typename T>
  Writer &operator<<(const T &value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    return *this;
  }
  Writer &operator<<(const std::string &text) {
    *this << text.size();
    bytes += text;
    return *this;
  }
  template <typename T>
  Writer &operator<<(const std::vector<T> &values) {
    *this << values.size();
    for (const T &value : values)
      *this << value;
    return *this;
  }

  std::string bytes;
};

class Reader {
public:
  explicit Reader(const std::string &bytes) : bytes(bytes) {}

  template <typename T>
  Reader &operator>>(T &value) {
    std::memcpy(&value, bytes.data() + position, sizeof value);
    position += sizeof value;
    return *this;
  }
  Reader &operator>>(std::string &text) {
    size_t size;
    *this >> size;
    text = bytes.substr(position, size);
    position += size;
    return *this;
  }
  template <typename T>
  Reader &operator>>(std::vector<T> &values) {
    size_t size;
    *this >> size;
    values.resize(size);
    for (T &value : values)
      *this >> value;
    return *this;
  }
  /// What was not read yet.
  const char *rest() const { return bytes.data() + position; }

private:
  const std::string &bytes;
  size_t position = 0;
};

inline std::string pack(const spmd::runtime::Status &status) {
  Writer writer;
  writer << status.code << status.message << status.rank << status.command << status.location;
  return writer.bytes;
}

inline spmd::runtime::Status unpackStatus(const std::string &bytes) {
  spmd::runtime::Status status;
  Reader(bytes) >> status.code >> status.message >> status.rank >> status.command >> status.location;
  return status;
}

inline std::string pack(const spmd::runtime::Collective &call) {
  Writer writer;
  writer << call.key.kind << call.key.dtype << call.key.counts << call.key.kinds << call.key.unit << call.id
         << call.traceHash << call.location << call.hash;
  return writer.bytes;
}

inline Reader &operator>>(Reader &reader, spmd::runtime::Collective &call) {
  return reader >> call.key.kind >> call.key.dtype >> call.key.counts >> call.key.kinds >> call.key.unit >> call.id >>
         call.traceHash >> call.location >> call.hash;
}

} // namespace toy

#endif // SPMD_TEST_DOWNSTREAM_TOYBACKEND_WIRE_H
