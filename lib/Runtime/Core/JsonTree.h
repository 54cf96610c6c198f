//===- JsonTree.h - A parsed JSON document ----------------------*- C++ -*-===//
//
// A plan of ten thousand commands has a million values. They lie side by side in blocks of memory, which go at once,
// and know in which array or object they are: where a value is, is found out when an error has to say it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CORE_JSONTREE_H
#define SPMD_LIB_RUNTIME_CORE_JSONTREE_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spmd::runtime {

struct JsonMember;

struct JsonNode {
  enum class Kind : uint8_t { Null, Bool, Signed, Unsigned, Real, String, Array, Object };

  Kind kind = Kind::Null;
  size_t size = 0; ///< bytes of a string, elements of an array, members of an object
  union {
    int64_t integer = 0; ///< Signed
    uint64_t number;     ///< Unsigned
    double real;
    bool boolean;
    const char *text;
    JsonNode *elements;
    JsonMember *members; ///< by key, each key once
  };
  const JsonNode *parent = nullptr;

  std::string_view string() const { return {text, size}; }
  /// The member `key` of an object; null if it has none.
  const JsonNode *find(std::string_view key) const;
  /// The JSON pointer of this value (RFC 6901); empty for the root.
  std::string pointer() const;
};

struct JsonMember {
  std::string_view key;
  JsonNode value;
};

/// The values of one document.
class JsonTree {
public:
  /// Parses `text`, of which nothing is kept. On failure `problem` says what is wrong with it, with line and column.
  static std::unique_ptr<JsonTree> parse(std::string_view text, std::string &problem);

  const JsonNode *root() const { return top; }

private:
  friend class JsonTreeBuilder;

  void *allocate(size_t bytes);

  std::vector<std::unique_ptr<char[]>> blocks;
  char *free = nullptr; ///< of the last block
  size_t left = 0;
  const JsonNode *top = nullptr;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CORE_JSONTREE_H
