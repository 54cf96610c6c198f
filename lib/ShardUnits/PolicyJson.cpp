//===- PolicyJson.cpp - policies and plan files as JSON ------------------===//

#include "spmd/ShardUnits/ShardUnits.h"

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::JsonValue;
using runtime::Status;

/// A string, or a list of them that is not empty.
static std::vector<std::string> readOneOrMore(JsonValue json) {
  if (json.kind() != JsonValue::Kind::Array)
    return {json.asString()};
  std::vector<std::string> list = json.asStrings();
  if (list.empty())
    json.fail("expected at least one name");
  return list;
}

static Policy readText(JsonValue json, const std::string &text) {
  Expected<Policy> policy = parsePolicy(text);
  if (policy)
    return *policy;
  json.fail(policy.error().message);
  return {};
}

static Policy readSizePolicy(JsonValue json) {
  Policy policy;
  policy.kind = Policy::Kind::bySize;
  policy.size = json["size"].asInt();
  policy.exact = json.has("exact") && json["exact"].asBool();
  if (json.has("force_leaf"))
    policy.forceLeaf = json["force_leaf"].asStrings();
  if (json.has("exclude"))
    policy.exclude = json["exclude"].asStrings();
  policy.text = "size:" + std::to_string(policy.size);
  return policy;
}

/// {path: options}: the modules that a policy of the caller has chosen.
static Policy readChosenModules(JsonValue json) {
  Policy policy;
  policy.kind = Policy::Kind::rules;
  json.forEachMember([&](const std::string &path, JsonValue options) {
    Policy &part = policy.parts.emplace_back();
    part.kind = Policy::Kind::modules;
    part.names = {path};
    part.options = readOptions(options);
  });
  policy.text = "modules";
  return policy;
}

Policy units::readPolicy(JsonValue json) {
  if (json.kind() == JsonValue::Kind::String)
    return readText(json, json.asString());
  Policy policy;
  if (json.has("class")) {
    policy.kind = Policy::Kind::byClass;
    policy.names = json["class"].asStrings();
    policy.exact = json.has("exact") && json["exact"].asBool();
    policy.text = "class";
  } else if (json.has("size")) {
    policy = readSizePolicy(json);
  } else if (json.has("callable") || json.has("custom")) {
    policy.kind = json.has("custom") ? Policy::Kind::custom : Policy::Kind::callable;
    policy.callable = static_cast<int32_t>(json[json.has("custom") ? "custom" : "callable"].asSize());
    policy.text = "callable";
  } else if (json.has("modules")) {
    policy = readChosenModules(json["modules"]);
  } else if (json.has("or")) {
    policy.kind = Policy::Kind::any;
    json["or"].forEach([&](JsonValue part) { policy.parts.push_back(readPolicy(part)); });
    policy.text = "or";
  } else {
    json.fail("expected a policy: text, or an object with class, size, callable, custom, modules or or");
  }
  return policy;
}

static Policy readRule(JsonValue json) {
  Policy rule;
  std::string matcher;
  bool unit = true;
  UnitOptions options;
  json.forEachMember([&](const std::string &key, JsonValue value) {
    if (key == "unit") {
      unit = value.asBool();
    } else if (key == "options") {
      options = readOptions(value);
    } else if (key != "module" && key != "class" && key != "name" && key != "policy") {
      value.fail("unknown member of a rule; allowed: module, class, name, policy, unit, options");
    } else if (!matcher.empty()) {
      value.fail("a rule has one of module, class, name and policy; this one has " + matcher + ", too");
    } else {
      matcher = key;
      if (key == "policy") {
        rule = readText(value, value.asString());
        if (rule.kind == Policy::Kind::automatic || rule.kind == Policy::Kind::annotations)
          value.fail(rule.text + " is no rule");
      } else if (key == "name") {
        rule = readText(value, "name:" + value.asString());
      } else {
        rule.kind = key == "module" ? Policy::Kind::modules : Policy::Kind::byClass;
        rule.names = readOneOrMore(value);
        rule.isOneUnit = key == "module" && rule.names.size() > 1;
        rule.text = key;
      }
    }
  });
  if (matcher.empty())
    json.fail("a rule needs one of module, class, name and policy");
  if (!unit && json.has("options"))
    json["options"].fail("a rule with \"unit\": false makes no unit that could have options");
  rule.location = json.location();
  rule.unit = unit;
  rule.options = options;
  return rule;
}

Policy units::readRules(JsonValue json) {
  Policy policy;
  policy.kind = Policy::Kind::rules;
  policy.text = "rules";
  json.forEach([&](JsonValue rule) { policy.parts.push_back(readRule(rule)); });
  return policy;
}

void units::readPlan(JsonValue root, Request &request) {
  if (std::string format = root["format"].asString(); format != "spmd-shard-units")
    root["format"].fail("expected \"spmd-shard-units\", found \"" + format + "\"");
  if (int64_t version = root["version"].asInt(); version != 1)
    root["version"].fail("expected version 1, found " + std::to_string(version));
  root.forEachMember([&](const std::string &key, JsonValue value) {
    if (key == "format" || key == "version")
      return;
    if (key == "rules")
      request.policy = readRules(value);
    else if (key == "options")
      request.defaults = readOptions(value).orElse(request.defaults);
    else if (key == "ignored_modules")
      request.ignoredModules = value.asStrings();
    else if (key == "ignored_parameters")
      request.ignoredParameters = value.asStrings();
    else if (key == "exempt_classes")
      request.exemptClasses = value.asStrings();
    else if (key == "override_placements")
      request.placements = readPlacements(value);
    else if (key == "strict_tied")
      request.strictTied |= value.asBool();
    else
      value.fail("unknown member of a plan; allowed: format, version, rules, options, ignored_modules, "
                 "ignored_parameters, override_placements, exempt_classes, strict_tied");
  });
  if (!root.has("rules"))
    (void)root["rules"].asStrings();
}

Status units::readPlanFile(const std::string &path, Request &request) {
  Expected<std::string> text = runtime::readFile(path);
  if (!text)
    return text.error();
  runtime::JsonDocument document(path, *text);
  if (document.status().ok())
    readPlan(document.root(), request);
  return document.status();
}
