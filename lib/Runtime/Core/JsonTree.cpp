//===- JsonTree.cpp - A parsed JSON document; nlohmann_json reads the text ===//

#include "JsonTree.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

using namespace spmd::runtime;
using Json = nlohmann::json;
using Kind = JsonNode::Kind;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const JsonNode *JsonNode::find(std::string_view key) const {
  const JsonMember *end = members + size;
  const JsonMember *found =
      std::lower_bound(static_cast<const JsonMember *>(members), end, key,
                       [](const JsonMember &member, std::string_view wanted) { return member.key < wanted; });
  return found != end && found->key == key ? &found->value : nullptr;
}

std::string JsonNode::pointer() const {
  if (!parent)
    return "";
  std::string text = parent->pointer() + "/";
  if (parent->kind == Kind::Array)
    return text + std::to_string(this - parent->elements);
  const JsonMember *member = parent->members;
  while (&member->value != this)
    ++member;
  for (char c : member->key)
    text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *JsonTree::allocate(size_t bytes) {
  bytes = (bytes + alignof(JsonMember) - 1) / alignof(JsonMember) * alignof(JsonMember);
  if (bytes > left) {
    left = std::max(bytes, std::min(size_t(4096) << blocks.size(), size_t(1) << 20));
    blocks.push_back(std::make_unique<char[]>(left));
    free = blocks.back().get();
  }
  void *result = free;
  free += bytes;
  left -= bytes;
  return result;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace spmd::runtime {

/// What nlohmann_json calls while it reads a text.
class JsonTreeBuilder {
public:
  JsonTreeBuilder(JsonTree &tree, std::string &problem) : tree(tree), problem(problem) {}

  bool null() { return add({}); }
  bool boolean(bool value) {
    JsonNode node;
    node.kind = Kind::Bool;
    node.boolean = value;
    return add(node);
  }
  bool number_integer(int64_t value) {
    JsonNode node;
    node.kind = Kind::Signed;
    node.integer = value;
    return add(node);
  }
  bool number_unsigned(uint64_t value) {
    JsonNode node;
    node.kind = Kind::Unsigned;
    node.number = value;
    return add(node);
  }
  bool number_float(double value, const std::string &) {
    JsonNode node;
    node.kind = Kind::Real;
    node.real = value;
    return add(node);
  }
  bool string(const std::string &value) {
    JsonNode node;
    node.kind = Kind::String;
    node.size = value.size();
    node.text = keep(value).data();
    return add(node);
  }
  bool binary(const Json::binary_t &) { return false; } // there is none in a text
  bool start_object(size_t) { return start(); }
  bool start_array(size_t) { return start(); }
  bool key(const std::string &value) {
    nextKey = keep(value);
    return true;
  }

  bool end_object() {
    sorted.clear();
    for (size_t i = containers.back().begin; i < open.size(); ++i)
      sorted.push_back(&open[i]);
    // Of equal keys the last one counts.
    std::sort(sorted.begin(), sorted.end(), [](const JsonMember *a, const JsonMember *b) {
      int order = a->key.compare(b->key);
      return order != 0 ? order < 0 : a < b;
    });
    JsonNode node;
    node.kind = Kind::Object;
    node.members = allocate<JsonMember>(sorted.size());
    for (size_t i = 0; i < sorted.size(); ++i)
      if (i + 1 == sorted.size() || sorted[i]->key != sorted[i + 1]->key)
        node.members[node.size++] = *sorted[i];
    for (size_t i = 0; i < node.size; ++i)
      adopt(node.members[i].value);
    return end(node);
  }

  bool end_array() {
    JsonMember *first = open.data() + containers.back().begin;
    JsonNode node;
    node.kind = Kind::Array;
    node.size = open.size() - containers.back().begin;
    node.elements = allocate<JsonNode>(node.size);
    for (size_t i = 0; i < node.size; ++i)
      adopt(node.elements[i] = first[i].value);
    return end(node);
  }

  bool parse_error(size_t, const std::string &, const Json::exception &error) {
    // The library's text holds line and column; its prefix is noise.
    problem = error.what();
    if (size_t prefix = problem.find("] "); prefix != std::string::npos)
      problem = problem.substr(prefix + 2);
    return false;
  }

  void finish() {
    JsonNode *root = allocate<JsonNode>(1);
    adopt(*root = open.front().value);
    tree.top = root;
  }

private:
  /// An array or object that is being read: its values are those of `open` from `begin` on.
  struct Container {
    size_t begin;
    std::string_view key;
  };

  template <typename T>
  T *allocate(size_t count) {
    return static_cast<T *>(tree.allocate(count * sizeof(T)));
  }
  std::string_view keep(const std::string &text) {
    char *bytes = allocate<char>(text.size());
    std::memcpy(bytes, text.data(), text.size());
    return {bytes, text.size()};
  }
  bool add(const JsonNode &node) {
    open.push_back({nextKey, node});
    return true;
  }
  bool start() {
    containers.push_back({open.size(), nextKey});
    return true;
  }
  bool end(const JsonNode &node) {
    open.resize(containers.back().begin);
    nextKey = containers.back().key;
    containers.pop_back();
    return add(node);
  }
  /// `node` is where it stays: what it holds can refer to it.
  static void adopt(JsonNode &node) {
    if (node.kind == Kind::Array)
      for (size_t i = 0; i < node.size; ++i)
        node.elements[i].parent = &node;
    if (node.kind == Kind::Object)
      for (size_t i = 0; i < node.size; ++i)
        node.members[i].value.parent = &node;
  }

  JsonTree &tree;
  std::string &problem;
  std::vector<JsonMember> open;
  std::vector<const JsonMember *> sorted; ///< of the object that ends
  std::vector<Container> containers;
  std::string_view nextKey;
};

} // namespace spmd::runtime

std::unique_ptr<JsonTree> JsonTree::parse(std::string_view text, std::string &problem) {
  auto tree = std::make_unique<JsonTree>();
  JsonTreeBuilder builder(*tree, problem);
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return nullptr;
  builder.finish();
  return tree;
}
