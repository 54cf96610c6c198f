//===- Annotation.cpp - what a model's code says of its units --------------===//

#include "spmd/ShardUnits/Annotation.h"

using namespace spmd;
using namespace spmd::units;
using runtime::JsonValue;

std::vector<Annotation> units::readAnnotations(JsonValue json) {
  std::vector<Annotation> annotations;
  json.forEach([&](JsonValue entry) {
    Annotation &annotation = annotations.emplace_back();
    entry.forEachMember([&](const std::string &key, JsonValue value) {
      if (key == "modules")
        annotation.modules = value.asStrings();
      else if (key == "options")
        annotation.options = readOptions(value);
      else if (key == "ignored")
        annotation.ignored = value.asStrings();
      else if (key == "reached")
        annotation.reached = value.asBool();
      else
        value.fail("unknown member of an annotation; allowed: modules, options, ignored, reached");
    });
    if (annotation.modules.empty())
      entry.fail("names no modules");
  });
  return annotations;
}
