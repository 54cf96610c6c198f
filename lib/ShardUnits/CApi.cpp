//===- CApi.cpp - libspmd_units -------------------------------------------===//

#include "spmd/ShardUnits/Report.h"
#include "spmd/ShardUnits/units.h"

#include <cstdlib>
#include <cstring>
#include <exception>

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::JsonValue;
using runtime::Status;

static Expected<std::string> assign(const char *text, spmd_units_decide decide, void *context) {
  runtime::JsonDocument document("request", text);
  if (!document.status().ok())
    return document.status();
  JsonValue root = document.root();
  Expected<ModuleTree> tree = ModuleTree::read(root);
  if (!document.status().ok())
    return document.status();
  if (!tree)
    return tree.error();
  Request request;
  if (root.has("policy"))
    request.policy = readPolicy(root["policy"]);
  if (root.has("options"))
    request.defaults = readOptions(root["options"]);
  if (root.has("ignored_modules"))
    request.ignoredModules = root["ignored_modules"].asStrings();
  if (root.has("ignored_parameters"))
    request.ignoredParameters = root["ignored_parameters"].asStrings();
  if (root.has("exempt_classes"))
    request.exemptClasses = root["exempt_classes"].asStrings();
  if (root.has("units"))
    request.annotations = readAnnotations(root["units"]);
  request.strictTied = root.has("strict_tied") && root["strict_tied"].asBool();
  request.strictNames = !root.has("strict_names") || root["strict_names"].asBool();
  int64_t ranks = root.has("ranks") ? root["ranks"].asSize() : kRanksNotSaid;
  Expected<Mesh> mesh = chooseMesh(ranks, root.has("mesh") ? root["mesh"].asString() : "");
  if (mesh)
    request.mesh = *mesh;
  else
    root["mesh"].fail(mesh.error().message);
  if (mesh && mesh->tensor > 1)
    root["mesh"].fail(kNoTensorHere);
  request.isMeshOpen = !root.has("mesh");
  if (!document.status().ok())
    return document.status();
  Decide ask;
  if (decide)
    ask = [&](int32_t policy, size_t module, bool recurse, int64_t nonwrapped, std::string &options) {
      const char *answered = nullptr;
      int32_t answer = decide(context, policy, static_cast<int64_t>(module), recurse, nonwrapped, &answered);
      if (answered)
        options = answered;
      return answer;
    };
  Expected<ShardUnits> assigned = assignShardUnits(*tree, request, ask);
  if (!assigned)
    return assigned.error();
  return toJson(*tree, *assigned);
}

extern "C" {

__attribute__((visibility("default"))) int32_t spmd_units_assign(const char *request, spmd_units_decide decide,
                                                                 void *context, char **result) {
  Expected<std::string> text = Status::failed("out of memory");
  try {
    text = assign(request, decide, context);
  } catch (const std::exception &problem) {
    text = Status::failed(problem.what());
  }
  *result = strdup(text ? text->c_str() : text.error().message.c_str());
  return text ? 0 : static_cast<int32_t>(text.error().code);
}

__attribute__((visibility("default"))) void spmd_units_free(char *result) { std::free(result); }
}
