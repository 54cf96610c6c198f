//===- ModuleTree.cpp - modules and parameters of a model -----------------===//

#include "spmd/ShardUnits/ModuleTree.h"

#include <algorithm>
#include <unordered_set>

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::JsonValue;
using runtime::Status;

std::string units::formatPath(const std::string &path) { return path.empty() ? "(root)" : path; }

std::vector<std::string> units::splitText(const std::string &text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Expected<ModuleTree> ModuleTree::create(std::vector<ModuleRecord> modules, std::vector<ParameterRecord> parameters) {
  ModuleTree tree;
  tree.modules = std::move(modules);
  tree.parameters = std::move(parameters);
  if (tree.modules.empty())
    return Status::badInput("the module tree has no modules");
  for (size_t i = 0; i < tree.modules.size(); ++i)
    if (!tree.moduleNumbers.emplace(tree.modules[i].path, i).second)
      return Status::badInput("module '" + tree.modules[i].path + "' is in the module tree twice");
  for (size_t i = 0; i < tree.parameters.size(); ++i) {
    const ParameterRecord &parameter = tree.parameters[i];
    if (!tree.parameterNumbers.emplace(parameter.name, i).second)
      return Status::badInput("parameter '" + parameter.name + "' is there twice");
    for (const std::string &alias : parameter.aliases)
      tree.parameterNumbers.emplace(alias, i);
    tree.numels.push_back(runtime::numElements(parameter.shape));
    if (tree.numels.back() < 0)
      return Status::badInput("parameter '" + parameter.name + "' has more than 2^63 elements");
  }
  for (const ModuleRecord &module : tree.modules)
    for (const std::string &child : module.children)
      if (!tree.moduleNumbers.count(child))
        return Status::badInput("module '" + module.path + "' has a child '" + child + "' that is not in the tree");
  tree.connect();
  if (tree.postOrder.size() != tree.modules.size())
    for (size_t i = 0; i < tree.modules.size(); ++i)
      if (std::find(tree.postOrder.begin(), tree.postOrder.end(), i) == tree.postOrder.end())
        return Status::badInput("module '" + tree.modules[i].path + "' is a child of no module");
  tree.findAncestors();
  return tree;
}

namespace {

/// What the graph of a step does with parameters.
class GraphReader {
public:
  GraphReader(JsonValue root, const std::vector<ParameterRecord> &parameters);

  bool updates(size_t parameter) const { return updated[parameter]; }
  int64_t getFirstUse(size_t parameter) const { return uses.get(parameter); }

private:
  void read(JsonValue node);

  std::unordered_map<int64_t, size_t> byId;
  std::vector<bool> updated;
  FirstUses uses;
};

} // namespace

GraphReader::GraphReader(JsonValue root, const std::vector<ParameterRecord> &parameters)
    : updated(parameters.size(), false), uses(parameters.size()) {
  std::unordered_map<std::string, size_t> byName;
  for (size_t i = 0; i < parameters.size(); ++i)
    byName.emplace(parameters[i].name, i);
  if (root.has("inputs"))
    root["inputs"].forEach([&](JsonValue json) {
      if (json["kind"].asString() != "param")
        return;
      if (auto parameter = byName.find(json["name"].asString()); parameter != byName.end()) {
        byId.emplace(json["id"].asInt(), parameter->second);
        uses.setParameter(static_cast<uint64_t>(json["id"].asInt()), parameter->second);
      }
    });
  root["nodes"].forEach([&](JsonValue node) { read(node); });
}

void GraphReader::read(JsonValue node) {
  std::vector<std::string> mutates;
  if (node.has("mutates"))
    mutates = node["mutates"].asStrings();
  std::vector<uint64_t> operands, results;
  node["args"].forEach([&](JsonValue pair) {
    std::vector<JsonValue> parts;
    pair.forEach([&](JsonValue part) { parts.push_back(part); });
    if (parts.size() != 2)
      return;
    bool isWritten = std::find(mutates.begin(), mutates.end(), parts[0].asString()) != mutates.end();
    auto visit = [&](JsonValue id) {
      if (id.isNull())
        return;
      operands.push_back(static_cast<uint64_t>(id.asInt()));
      if (auto input = byId.find(id.asInt()); isWritten && input != byId.end())
        updated[input->second] = true;
    };
    if (parts[1].has("value"))
      visit(parts[1]["value"]);
    else if (parts[1].has("values"))
      parts[1]["values"].forEach(visit);
  });
  node["results"].forEach([&](JsonValue result) {
    if (result.has("id") && !result["id"].isNull())
      results.push_back(static_cast<uint64_t>(result["id"].asInt()));
  });
  uses.addOp(operands, results);
}

Expected<ModuleTree> ModuleTree::read(JsonValue root) {
  std::vector<ModuleRecord> modules;
  root["module_tree"].forEach([&](JsonValue json) {
    modules.push_back({json["name"].asString(), json["class"].asString(), json["bases"].asStrings(),
                       json["parameters"].asStrings(), json["children"].asStrings()});
  });
  std::unordered_map<std::string, int64_t> groups;
  if (root.has("optimizer")) {
    int64_t number = 0;
    root["optimizer"]["groups"].forEach([&](JsonValue json) {
      for (const std::string &name : json["parameters"].asStrings())
        groups.emplace(name, number);
      ++number;
    });
  }
  std::vector<ParameterRecord> parameters;
  root["parameters"].forEach([&](JsonValue json) {
    ParameterRecord parameter{json["name"].asString(), json["aliases"].asStrings(), json["shape"].asSizes(),
                              json["dtype"].asDType(), json["trainable"].asBool()};
    parameter.updated = parameter.trainable;
    if (auto group = groups.find(parameter.name); group != groups.end())
      parameter.group = group->second;
    parameters.push_back(std::move(parameter));
  });
  if (root.has("nodes")) {
    GraphReader graph(root, parameters);
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].updated = graph.updates(i);
      parameters[i].firstUse = graph.getFirstUse(i);
    }
  }
  return create(std::move(modules), std::move(parameters));
}

/// Numbers instead of names, owners, and the post-order.
void ModuleTree::connect() {
  auto addOnce = [](std::vector<size_t> &list, size_t value) {
    if (std::find(list.begin(), list.end(), value) == list.end())
      list.push_back(value);
  };
  children.resize(modules.size());
  own.resize(modules.size());
  owners.resize(parameters.size());
  for (size_t i = 0; i < modules.size(); ++i) {
    for (const std::string &child : modules[i].children)
      addOnce(children[i], moduleNumbers.at(child));
    for (const std::string &name : modules[i].parameters)
      if (const size_t *parameter = findParameter(name)) {
        addOnce(own[i], *parameter);
        addOnce(owners[*parameter], i);
      }
  }
  // A stack of modules with how many of their children are done: a tree may be deep.
  std::vector<bool> seen(modules.size(), false);
  std::vector<std::pair<size_t, size_t>> stack = {{0, 0}};
  seen[0] = true;
  while (!stack.empty()) {
    auto &[module, next] = stack.back();
    if (next == children[module].size()) {
      postOrder.push_back(module);
      stack.pop_back();
      continue;
    }
    size_t child = children[module][next++];
    if (!seen[child]) {
      seen[child] = true;
      stack.push_back({child, 0});
    }
  }
}

/// Dominators, by the iteration of Cooper, Harvey and Kennedy: one pass over a tree, a second to see that it is one.
void ModuleTree::findAncestors() {
  postNumber.resize(modules.size());
  for (size_t i = 0; i < postOrder.size(); ++i)
    postNumber[postOrder[i]] = i;
  std::vector<std::vector<size_t>> parents(modules.size());
  for (size_t i = 0; i < modules.size(); ++i)
    for (size_t child : children[i])
      parents[child].push_back(i);
  constexpr size_t unknown = SIZE_MAX;
  ancestors.assign(modules.size(), unknown);
  ancestors[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = postOrder.rbegin(); it != postOrder.rend(); ++it) {
      if (*it == 0)
        continue;
      std::vector<size_t> known;
      for (size_t parent : parents[*it])
        if (ancestors[parent] != unknown)
          known.push_back(parent);
      size_t ancestor = getCommonAncestor(known);
      changed |= ancestors[*it] != ancestor;
      ancestors[*it] = ancestor;
    }
  }
}

//===----------------------------------------------------------------------===//
// Asking
//===----------------------------------------------------------------------===//

size_t ModuleTree::getCommonAncestor(const std::vector<size_t> &of) const {
  if (of.empty())
    return 0;
  size_t common = of.front();
  for (size_t other : of)
    while (common != other) {
      // The one that comes earlier in post-order is not above the other.
      size_t &lower = postNumber[common] < postNumber[other] ? common : other;
      lower = ancestors[lower];
    }
  return common;
}

std::vector<size_t> ModuleTree::getSubtree(size_t module) const {
  std::vector<size_t> result, stack = {module};
  std::unordered_set<size_t> seen = {module};
  while (!stack.empty()) {
    size_t next = stack.back();
    stack.pop_back();
    result.push_back(next);
    const std::vector<size_t> &below = children[next];
    for (auto it = below.rbegin(); it != below.rend(); ++it)
      if (seen.insert(*it).second)
        stack.push_back(*it);
  }
  return result;
}

const size_t *ModuleTree::findModule(const std::string &path) const {
  auto found = moduleNumbers.find(path);
  return found == moduleNumbers.end() ? nullptr : &found->second;
}

const size_t *ModuleTree::findParameter(const std::string &name) const {
  auto found = parameterNumbers.find(name);
  return found == parameterNumbers.end() ? nullptr : &found->second;
}

static bool matchesFromEnd(const std::string &qualified, const std::string &name) {
  if (qualified.size() <= name.size())
    return qualified == name;
  size_t begin = qualified.size() - name.size();
  return qualified[begin - 1] == '.' && qualified.compare(begin, name.size(), name) == 0;
}

bool ModuleTree::isInstance(size_t module, const std::string &name, bool exact) const {
  auto matches = [&](const std::string &qualified) {
    return exact ? qualified == name : matchesFromEnd(qualified, name);
  };
  const ModuleRecord &record = modules[module];
  return matches(record.className) || std::any_of(record.bases.begin(), record.bases.end(), matches);
}
