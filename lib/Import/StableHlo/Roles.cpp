//===- Roles.cpp - What the arguments and results of a step are -----------===//

#include "Roles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace spmd;
using namespace spmd::stablehlo;
using llvm::StringRef;
using runtime::JsonValue;

Path spmd::stablehlo::parsePath(StringRef text) {
  Path path;
  while (!text.empty()) {
    if (text.consume_front("['") || text.consume_front("[\"")) {
      size_t end = text.find_first_of("'\"");
      path.push_back(text.take_front(end).str());
      text = text.drop_front(std::min(end, text.size()));
      if (!text.empty())
        text = text.drop_front();
      text.consume_front("]");
    } else if (text.consume_front("[") || text.consume_front(".") || text.consume_front("]")) {
    } else {
      size_t end = text.find_first_of("[].");
      path.push_back(text.take_front(end).str());
      text = text.drop_front(std::min(end, text.size()));
    }
  }
  return path;
}

std::string spmd::stablehlo::joinPath(llvm::ArrayRef<std::string> path) { return llvm::join(path, "."); }

static void checkMembers(JsonValue json, llvm::ArrayRef<StringRef> known) {
  json.forEachMember([&](const std::string &key, JsonValue item) {
    if (!llvm::is_contained(known, StringRef(key)))
      item.fail("unknown member; expected " + llvm::join(known, ", "));
  });
}

void Roles::readArgument(const std::string &key, JsonValue json) {
  Entry<ArgumentRole> &entry = arguments.emplace_back();
  entry.path = parsePath(key);
  entry.pointer = json.location();
  ArgumentRole &role = entry.role;
  bool isShort = json.kind() == JsonValue::Kind::String;
  std::string kind = isShort ? json.asString() : json["kind"].asString();
  auto members = [&](std::initializer_list<StringRef> known) {
    if (!isShort)
      checkMembers(json, llvm::ArrayRef(known.begin(), known.size()));
  };
  auto number = [&](const char *member) {
    if (!isShort && json.has(member))
      role.number = json[member].asDouble();
  };
  if (kind == "param" || kind == "buffer" || kind == "constant") {
    members({"kind"});
    role.kind = kind == "param"    ? step::InputKind::param
                : kind == "buffer" ? step::InputKind::buffer
                                   : step::InputKind::constant;
  } else if (kind == "state") {
    members({"kind", "state", "init"});
    role.kind = step::InputKind::state;
    role.state = isShort ? entry.path.empty() ? "" : entry.path.back() : json["state"].asString();
    number("init");
  } else if (kind == "hyper") {
    members({"kind", "name", "value"});
    role.kind = step::InputKind::hyper;
    role.state = !isShort && json.has("name") ? json["name"].asString() : joinPath(entry.path);
    number("value");
  } else if (kind == "batch") {
    members({"kind", "batch_dim", "shared"});
    role.kind = step::InputKind::batch;
    if (!isShort && json.has("batch_dim"))
      role.batchDim = json["batch_dim"].asSize();
    if (!isShort && json.has("shared") && json["shared"].asBool())
      role.batchDim = -1;
  } else {
    json.fail("expected param, buffer, constant, state, hyper or batch, found \"" + kind + "\"");
  }
}

void Roles::readResult(const std::string &key, JsonValue json) {
  Entry<ResultRole> &entry = results.emplace_back();
  entry.path = parsePath(key);
  entry.pointer = json.location();
  using Kind = ResultRole::Kind;
  if (json.kind() == JsonValue::Kind::Object) {
    checkMembers(json, {"updates"});
    entry.role = {Kind::update, parsePath(json["updates"].asString())};
    return;
  }
  std::string kind = json.asString();
  if (kind == "loss" || kind == "output")
    entry.role.kind = kind == "loss" ? Kind::loss : Kind::output;
  else
    json.fail("expected \"loss\", \"output\" or {\"updates\": ARGUMENT}, found \"" + kind + "\"");
}

runtime::Expected<Roles> Roles::read(const std::string &path) {
  runtime::Expected<std::string> text = runtime::readFile(path);
  if (!text)
    return text.error();
  runtime::JsonDocument document(path, *text);
  Roles roles;
  roles.file = path;
  if (document.status().ok()) {
    JsonValue root = document.root();
    checkMembers(root, {"name", "arguments", "results"});
    if (root.has("name"))
      roles.name = root["name"].asString();
    root["arguments"].forEachMember([&](const std::string &key, JsonValue json) { roles.readArgument(key, json); });
    root["results"].forEachMember([&](const std::string &key, JsonValue json) { roles.readResult(key, json); });
  }
  if (!document.status().ok())
    return document.status();
  return roles;
}

template <typename Role>
const Role *Roles::find(std::vector<Entry<Role>> &entries, const Path &path, Path &rest) {
  Entry<Role> *best = nullptr;
  for (Entry<Role> &entry : entries)
    if (entry.path.size() <= path.size() && std::equal(entry.path.begin(), entry.path.end(), path.begin()) &&
        (!best || best->path.size() < entry.path.size()))
      best = &entry;
  if (!best)
    return nullptr;
  best->isUsed = true;
  rest.assign(path.begin() + best->path.size(), path.end());
  return &best->role;
}

const ArgumentRole *Roles::findArgument(const Path &path, Path &rest) { return find(arguments, path, rest); }

const ResultRole *Roles::findResult(const Path &path, Path &rest) { return find(results, path, rest); }

std::string Roles::findUnused() const {
  for (const auto &entry : arguments)
    if (!entry.isUsed)
      return file + ": " + entry.pointer + ": the step has no such argument";
  for (const auto &entry : results)
    if (!entry.isUsed)
      return file + ": " + entry.pointer + ": the step has no such result";
  return "";
}
