//===- TestTree.h - module trees in a line -----------------------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_SHARDUNITS_TESTTREE_H
#define SPMD_TEST_UNIT_SHARDUNITS_TESTTREE_H

#include "spmd/ShardUnits/ShardUnits.h"

#include <gtest/gtest.h>

namespace spmd::units {

/// A module of class `className`, with one parameter `PATH.w` of `numel` elements unless that is 0.
struct TestModule {
  std::string path, className;
  int64_t numel = 0;
  std::vector<std::string> children = {};
  std::vector<std::string> bases = {};
};

inline ModuleTree makeTree(std::vector<TestModule> modules, std::vector<ParameterRecord> parameters = {},
                           const std::vector<std::pair<std::string, std::string>> &owners = {}) {
  std::vector<ModuleRecord> records;
  for (TestModule &module : modules) {
    ModuleRecord record{module.path, module.className, module.bases, {}, module.children};
    if (module.numel) {
      std::string name = module.path.empty() ? "w" : module.path + ".w";
      record.parameters.push_back(name);
      parameters.push_back({name, {}, {module.numel}});
    }
    for (auto &[path, name] : owners)
      if (path == module.path)
        record.parameters.push_back(name);
    records.push_back(std::move(record));
  }
  runtime::Expected<ModuleTree> tree = ModuleTree::create(std::move(records), std::move(parameters));
  EXPECT_TRUE(tree) << tree.error().message;
  return *tree;
}

/// Root (5) with a list of two blocks (10 each, and a linear of 20), of which the second is a subclass, and a head
/// (40).
inline ModuleTree makeBlocks() {
  return makeTree({{"", "m.Net", 5, {"h", "head"}},
                   {"h", "torch.nn.modules.container.ModuleList", 0, {"h.0", "h.1"}},
                   {"h.0", "m.Block", 10, {"h.0.fc"}},
                   {"h.0.fc", "torch.nn.modules.linear.Linear", 20},
                   {"h.1", "m.Wide", 10, {"h.1.fc"}, {"m.Block"}},
                   {"h.1.fc", "torch.nn.modules.linear.Linear", 20},
                   {"head", "torch.nn.modules.linear.Linear", 40}});
}

inline Request makeRequest(const std::string &policy) {
  Request request;
  runtime::Expected<Policy> parsed = parsePolicy(policy);
  EXPECT_TRUE(parsed) << parsed.error().message;
  if (parsed)
    request.policy = *parsed;
  return request;
}

/// "h.0: h.0.w h.0.fc.w; : w": units with their parameters, or the error.
inline std::string describe(const ModuleTree &tree, const Request &request, const Decide &decide = nullptr) {
  runtime::Expected<ShardUnits> units = assignShardUnits(tree, request, decide);
  if (!units)
    return units.error().message;
  std::string text;
  for (const Unit &unit : units->units) {
    text += (text.empty() ? "" : "; ") + tree.getModule(unit.modules.front()).path + ":";
    for (const UnitBuffer &buffer : unit.buffers)
      for (size_t parameter : buffer.parameters)
        text += " " + tree.getParameter(parameter).name;
  }
  return text;
}

/// The units alone: "h.0 h.1 (root)".
inline std::string names(const ModuleTree &tree, const Request &request, const Decide &decide = nullptr) {
  runtime::Expected<ShardUnits> units = assignShardUnits(tree, request, decide);
  if (!units)
    return units.error().message;
  std::string text;
  for (const Unit &unit : units->units)
    text += (text.empty() ? "" : " ") + formatPath(tree.getModule(unit.modules.front()).path);
  return text;
}

} // namespace spmd::units

#endif // SPMD_TEST_UNIT_SHARDUNITS_TESTTREE_H
