//===- Json.cpp - The only reader that sees nlohmann_json -------------===//

#include "spmd/Runtime/Core/Json.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace spmd::runtime;
using Json = nlohmann::json;

static const Json *nodeOf(const void *node) { return static_cast<const Json *>(node); }

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
  try {
    tree = std::make_shared<Json>(Json::parse(text.begin(), text.end()));
  } catch (const Json::exception &problem) {
    // The library's text holds line and column; its prefix is noise.
    std::string message = problem.what();
    if (size_t end = message.find("] "); end != std::string::npos)
      message = message.substr(end + 2);
    error = Status::badInput(this->name + ": not valid JSON: " + message);
  }
}

JsonDocument::~JsonDocument() = default;

JsonValue JsonDocument::root() { return {this, tree.get(), ""}; }

void JsonValue::fail(const std::string &message) const {
  if (document->error.ok())
    document->error = Status::badInput(document->name + ": " + (pointer.empty() ? "/" : pointer) + ": " + message);
}

/// A key as part of a JSON pointer (RFC 6901).
static std::string escapeKey(const std::string &key) {
  std::string text;
  for (char c : key)
    text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

JsonValue JsonValue::operator[](const char *key) const {
  JsonValue member(document, nullptr, pointer + "/" + escapeKey(key));
  if (!node)
    return member;
  if (!nodeOf(node)->is_object()) {
    fail(std::string("expected an object, found ") + nodeOf(node)->type_name());
    return member;
  }
  auto found = nodeOf(node)->find(key);
  if (found == nodeOf(node)->end())
    member.fail("is missing");
  else
    member.node = &*found;
  return member;
}

bool JsonValue::has(const char *key) const {
  if (!node || !nodeOf(node)->is_object())
    return false;
  auto found = nodeOf(node)->find(key);
  return found != nodeOf(node)->end() && !found->is_null();
}

bool JsonValue::isNull() const { return !node || nodeOf(node)->is_null(); }

JsonValue::Kind JsonValue::kind() const {
  if (isNull())
    return Kind::Null;
  const Json &json = *nodeOf(node);
  if (json.is_boolean())
    return Kind::Bool;
  if (json.is_number_integer())
    return Kind::Integer;
  if (json.is_number())
    return Kind::Real;
  if (json.is_string())
    return Kind::String;
  return json.is_array() ? Kind::Array : Kind::Object;
}

static void expected(const JsonValue &value, const Json *node, const char *what) {
  value.fail(std::string("expected ") + what + ", found " + (node->is_structured() ? node->type_name() : node->dump()));
}

int64_t JsonValue::asInt() const {
  if (!node)
    return 0;
  const Json *json = nodeOf(node);
  if (!json->is_number_integer() ||
      (json->is_number_unsigned() && json->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
    expected(*this, json, "an integer");
    return 0;
  }
  return json->get<int64_t>();
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
  if (!nodeOf(node)->is_number()) {
    expected(*this, nodeOf(node), "a number");
    return 0;
  }
  return nodeOf(node)->get<double>();
}

bool JsonValue::asBool() const {
  if (!node)
    return false;
  if (!nodeOf(node)->is_boolean()) {
    expected(*this, nodeOf(node), "true or false");
    return false;
  }
  return nodeOf(node)->get<bool>();
}

std::string JsonValue::asString() const {
  if (!node)
    return {};
  if (!nodeOf(node)->is_string()) {
    expected(*this, nodeOf(node), "a string");
    return {};
  }
  return nodeOf(node)->get<std::string>();
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
  if (!nodeOf(node)->is_array())
    return expected(*this, nodeOf(node), "an array");
  size_t index = 0;
  for (const Json &element : *nodeOf(node))
    visit({document, &element, pointer + "/" + std::to_string(index++)});
}

void JsonValue::forEachMember(const std::function<void(const std::string &, JsonValue)> &visit) const {
  if (!node)
    return;
  if (!nodeOf(node)->is_object())
    return expected(*this, nodeOf(node), "an object");
  for (auto &[key, member] : nodeOf(node)->items())
    visit(key, {document, &member, pointer + "/" + escapeKey(key)});
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

std::string spmd::runtime::quoteJson(const std::string &text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
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
