//===- Json.h - Reading JSON with errors that name the place -----*- C++ -*-===//
//
// Reading a document is straight-line code: every accessor returns a value of
// the asked type; the first thing that is missing or of another type becomes
// the document's error, with the JSON pointer of the bad place, and from then
// on accessors return empty values. The reader looks at the error once, at the
// end. No exception leaves this interface.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_JSON_H
#define SPMD_RUNTIME_CORE_JSON_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Status.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spmd::runtime {

class JsonDocument;
class JsonTree;
struct JsonNode;

/// One value of a document, and where it is. Valid as long as the document.
class JsonValue {
public:
  /// The member `key` of an object; an error when it is missing.
  JsonValue operator[](const char *key) const;

  /// True when this is an object with a member `key` that is not null.
  bool has(const char *key) const;
  bool isNull() const;

  enum class Kind { Null, Bool, Integer, Real, String, Array, Object };
  /// What this is; Null after an error.
  Kind kind() const;

  int64_t asInt() const;
  /// An integer from 0 to 2^50, so that sums and small products of sizes do not
  /// overflow.
  int64_t asSize() const;
  double asDouble() const;
  bool asBool() const;
  std::string asString() const;
  DType asDType() const;
  std::vector<int64_t> asInts() const;
  std::vector<int64_t> asSizes() const;
  std::vector<std::string> asStrings() const;

  /// Calls `visit` for every element of an array.
  void forEach(const std::function<void(JsonValue)> &visit) const;
  /// Calls `visit` for every member of an object, in the order of the keys.
  void forEachMember(const std::function<void(const std::string &, JsonValue)> &visit) const;

  /// The JSON pointer of this place: "/nodes/3/args".
  std::string location() const;

  /// Records an error at this place: "file: /pointer: message".
  void fail(const std::string &message) const;

private:
  friend class JsonDocument;
  JsonValue(JsonDocument *document, const JsonNode *node) : document(document), node(node) {}

  JsonDocument *document;
  const JsonNode *node; ///< null after an error
};

class JsonDocument {
public:
  /// Parses `text`; `name` is what errors call the document.
  JsonDocument(std::string name, std::string_view text);
  ~JsonDocument();
  JsonDocument(const JsonDocument &) = delete;
  JsonDocument &operator=(const JsonDocument &) = delete;

  JsonValue root();

  /// The first error, or success.
  const Status &status() const { return error; }

private:
  friend class JsonValue;
  /// Records an error at `pointer`, if it is the first.
  void fail(const std::string &pointer, const std::string &message);

  std::string name;
  std::unique_ptr<JsonTree> tree;
  Status error;
};

/// `text` as a JSON string with its quotes; bytes that are not UTF-8 are
/// replaced.
std::string quoteJson(std::string_view text);

/// The same behind what `json` is already.
void appendQuotedJson(std::string &json, std::string_view text);

/// The content of a file.
Expected<std::string> readFile(const std::string &path);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_JSON_H
