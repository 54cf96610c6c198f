//===- Json.cpp - Reading JSON with errors that name the place ------------===//

#include "spmd/Runtime/Core/Json.h"
#include "JsonTree.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace spmd::runtime;
using Json = nlohmann::json;

/// Readers follow nested values by recursion; our formats nest about ten levels.
static constexpr int kMaxNesting = 100;

/// The line where `text` opens more than kMaxNesting brackets, or 0.
static size_t findDeepNesting(std::string_view text) {
  int depth = 0;
  size_t line = 1;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    line += c == '\n';
    if (inString) {
      i += c == '\\';
      inString = c != '"';
      continue;
    }
    inString = c == '"';
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > kMaxNesting)
      return line;
  }
  return 0;
}

JsonDocument::JsonDocument(std::string name, std::string_view text) : name(std::move(name)) {
  if (size_t line = findDeepNesting(text)) {
    error = Status::badInput(this->name + ": line " + std::to_string(line) + ": arrays and objects nested more than " +
                             std::to_string(kMaxNesting) + " levels deep");
    return;
  }
  std::string problem;
  tree = JsonTree::parse(text, problem);
  if (!tree)
    error = Status::badInput(this->name + ": not valid JSON: " + problem);
}

JsonDocument::~JsonDocument() = default;

JsonValue JsonDocument::root() { return {this, tree ? tree->root() : nullptr}; }

void JsonDocument::fail(const std::string &pointer, const std::string &message) {
  if (error.ok())
    error = Status::badInput(name + ": " + (pointer.empty() ? "/" : pointer) + ": " + message);
}

std::string JsonValue::location() const { return node ? node->pointer() : ""; }

void JsonValue::fail(const std::string &message) const {
  if (document->error.ok())
    document->fail(location(), message);
}

static bool isStructured(const JsonNode &node) {
  return node.kind == JsonNode::Kind::Array || node.kind == JsonNode::Kind::Object;
}

static bool isNumber(const JsonNode &node) {
  return node.kind == JsonNode::Kind::Signed || node.kind == JsonNode::Kind::Unsigned ||
         node.kind == JsonNode::Kind::Real;
}

static const char *typeName(const JsonNode &node) {
  switch (node.kind) {
  case JsonNode::Kind::Null:
    return "null";
  case JsonNode::Kind::Bool:
    return "boolean";
  case JsonNode::Kind::String:
    return "string";
  case JsonNode::Kind::Array:
    return "array";
  case JsonNode::Kind::Object:
    return "object";
  default:
    return "number";
  }
}

/// A value that is no array or object, as JSON.
static std::string dumpScalar(const JsonNode &node) {
  switch (node.kind) {
  case JsonNode::Kind::Bool:
    return node.boolean ? "true" : "false";
  case JsonNode::Kind::Signed:
    return std::to_string(node.integer);
  case JsonNode::Kind::Unsigned:
    return std::to_string(node.number);
  case JsonNode::Kind::Real:
    return Json(node.real).dump();
  case JsonNode::Kind::String:
    return quoteJson(node.string());
  default:
    return "null";
  }
}

JsonValue JsonValue::operator[](const char *key) const {
  if (!node)
    return *this;
  if (node->kind != JsonNode::Kind::Object) {
    fail(std::string("expected an object, found ") + typeName(*node));
    return {document, nullptr};
  }
  const JsonNode *member = node->find(key);
  if (!member && document->error.ok())
    document->fail(location() + "/" + key, "is missing");
  return {document, member};
}

bool JsonValue::has(const char *key) const {
  const JsonNode *member = node && node->kind == JsonNode::Kind::Object ? node->find(key) : nullptr;
  return member && member->kind != JsonNode::Kind::Null;
}

bool JsonValue::isNull() const { return !node || node->kind == JsonNode::Kind::Null; }

JsonValue::Kind JsonValue::kind() const {
  if (!node)
    return Kind::Null;
  switch (node->kind) {
  case JsonNode::Kind::Null:
    return Kind::Null;
  case JsonNode::Kind::Bool:
    return Kind::Bool;
  case JsonNode::Kind::Signed:
  case JsonNode::Kind::Unsigned:
    return Kind::Integer;
  case JsonNode::Kind::Real:
    return Kind::Real;
  case JsonNode::Kind::String:
    return Kind::String;
  case JsonNode::Kind::Array:
    return Kind::Array;
  case JsonNode::Kind::Object:
    return Kind::Object;
  }
  return Kind::Null;
}

static void expected(const JsonValue &value, const JsonNode &node, const char *what) {
  value.fail(std::string("expected ") + what + ", found " + (isStructured(node) ? typeName(node) : dumpScalar(node)));
}

int64_t JsonValue::asInt() const {
  if (!node)
    return 0;
  if (node->kind == JsonNode::Kind::Signed)
    return node->integer;
  if (node->kind == JsonNode::Kind::Unsigned && node->number <= static_cast<uint64_t>(INT64_MAX))
    return static_cast<int64_t>(node->number);
  expected(*this, *node, "an integer");
  return 0;
}

int64_t JsonValue::asSize() const {
  int64_t value = asInt();
  if (value < 0 || value > int64_t(1) << 50) {
    fail("expected a size from 0 to 2^50, found " + std::to_string(value));
    return 0;
  }
  return value;
}

double JsonValue::asDouble() const {
  if (!node)
    return 0;
  if (!isNumber(*node)) {
    expected(*this, *node, "a number");
    return 0;
  }
  return node->kind == JsonNode::Kind::Real     ? node->real
         : node->kind == JsonNode::Kind::Signed ? static_cast<double>(node->integer)
                                                : static_cast<double>(node->number);
}

bool JsonValue::asBool() const {
  if (!node)
    return false;
  if (node->kind != JsonNode::Kind::Bool) {
    expected(*this, *node, "true or false");
    return false;
  }
  return node->boolean;
}

std::string JsonValue::asString() const {
  if (!node)
    return {};
  if (node->kind != JsonNode::Kind::String) {
    expected(*this, *node, "a string");
    return {};
  }
  return std::string(node->string());
}

DType JsonValue::asDType() const {
  std::string text = asString();
  std::optional<DType> dtype = parseDType(text);
  if (!dtype && node)
    fail("unknown dtype '" + text + "'");
  return dtype.value_or(DType::F32);
}

void JsonValue::forEach(const std::function<void(JsonValue)> &visit) const {
  if (!node)
    return;
  if (node->kind != JsonNode::Kind::Array)
    return expected(*this, *node, "an array");
  for (size_t i = 0; i < node->size; ++i)
    visit({document, &node->elements[i]});
}

void JsonValue::forEachMember(const std::function<void(const std::string &, JsonValue)> &visit) const {
  if (!node)
    return;
  if (node->kind != JsonNode::Kind::Object)
    return expected(*this, *node, "an object");
  for (size_t i = 0; i < node->size; ++i)
    visit(std::string(node->members[i].key), {document, &node->members[i].value});
}

std::vector<int64_t> JsonValue::asInts() const {
  std::vector<int64_t> values;
  forEach([&](JsonValue element) { values.push_back(element.asInt()); });
  return values;
}

std::vector<int64_t> JsonValue::asSizes() const {
  std::vector<int64_t> values;
  forEach([&](JsonValue element) { values.push_back(element.asSize()); });
  return values;
}

std::vector<std::string> JsonValue::asStrings() const {
  std::vector<std::string> values;
  forEach([&](JsonValue element) { values.push_back(element.asString()); });
  return values;
}

void spmd::runtime::appendQuotedJson(std::string &json, std::string_view text) {
  // As most are: nothing to escape.
  bool isPlain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (isPlain)
    json.append(1, '"').append(text).append(1, '"');
  else
    json += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string spmd::runtime::quoteJson(std::string_view text) {
  std::string json;
  appendQuotedJson(json, text);
  return json;
}

Expected<std::string> spmd::runtime::readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  // Nothing to insert is a failure to the stream: an empty file.
  bool isEmpty = stream && stream.peek() == std::ifstream::traits_type::eof() && !stream.bad();
  if (!isEmpty && (!stream || !(content << stream.rdbuf())))
    return Status::badInput("cannot read '" + path + "': " + std::strerror(errno ? errno : EIO));
  return content.str();
}
