//===- JsonWriter.h - JSON with one entry per line --------------*- C++ -*-===//
//
// Two plans are compared with diff, so every buffer and every command is one line, and keys keep their order.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CORE_JSONWRITER_H
#define SPMD_LIB_RUNTIME_CORE_JSONWRITER_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Json.h"

#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace spmd::runtime {

/// Writes one JSON object: a line per member, and a line per object of a list; what lies deeper has no spaces.
class JsonWriter {
public:
  /// `"key": value`. An optional without a value is null.
  template <typename T>
  void member(const char *key, const T &value) {
    startMember(key);
    writeValue(value);
  }

  /// The same where there is a value, else nothing.
  template <typename T>
  void optionalMember(const char *key, const std::optional<T> &value) {
    if (value)
      member(key, *value);
  }
  void optionalMember(const char *key, const std::string &value) {
    if (!value.empty())
      member(key, value);
  }

  /// `"key": {...}`; `write` writes its members.
  template <typename Write>
  void object(const char *key, Write write) {
    startMember(key);
    writeObject(write);
  }

  /// `"key": [{...}, ...]`; `write` writes the members of one, which it is given.
  template <typename Range, typename Write>
  void objects(const char *key, const Range &range, Write write) {
    startMember(key);
    text += '[';
    bool isOuter = depth == 0, isFirst = true;
    for (const auto &element : range) {
      text += isFirst ? "" : ",";
      text += isOuter ? "\n  " : "";
      isFirst = false;
      writeObject([&] { write(element); });
    }
    text += isOuter && !isFirst ? "\n]" : "]";
  }

  /// The text; call it last.
  std::string finish() { return std::move(text) + "\n}\n"; }

private:
  void startMember(const char *key) {
    text += hasMember ? "," : "";
    text += depth == 0 ? "\n" : "";
    appendQuotedJson(text, key);
    text += depth == 0 ? ": " : ":";
    hasMember = true;
  }

  template <typename Write>
  void writeObject(Write write) {
    text += '{';
    ++depth, hasMember = false;
    write();
    --depth, hasMember = true;
    text += '}';
  }

  void writeValue(const std::string &value) { appendQuotedJson(text, value); }
  void writeValue(const char *value) { appendQuotedJson(text, value); }
  void writeValue(DType value) { writeValue(nameOf(value)); }
  void writeValue(bool value) { text += value ? "true" : "false"; }
  /// With as many digits as tell every double from its neighbours.
  void writeValue(double value) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.17g", value);
    text += digits;
  }
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
  void writeValue(T value) {
    text += std::to_string(value);
  }
  template <typename T>
  void writeValue(const std::optional<T> &value) {
    value ? writeValue(*value) : void(text += "null");
  }
  template <typename T>
  void writeValue(const std::vector<T> &list) {
    text += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      text += i == 0 ? "" : ",";
      writeValue(list[i]);
    }
    text += ']';
  }

  std::string text = "{";
  int depth = 0;
  bool hasMember = false;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CORE_JSONWRITER_H
