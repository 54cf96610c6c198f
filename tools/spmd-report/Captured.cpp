//===- Captured.cpp - spmd-report captured --------------------------------===//
//
// What the step's Python read when a step package was captured: ahead of time
// there is no Python that could read it again.
//
//===----------------------------------------------------------------------===//

#include "Captured.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Text.h"
#include "tools/Usage.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdio>
#include <filesystem>

using namespace spmd::runtime;

/// A value as JSON: the shortest text that gives a number back.
static std::string toText(JsonValue value) {
  switch (value.kind()) {
  case JsonValue::Kind::Bool:
    return value.asBool() ? "true" : "false";
  case JsonValue::Kind::Integer:
    return std::to_string(value.asInt());
  case JsonValue::Kind::Real: {
    char digits[32];
    return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value.asDouble()).ptr);
  }
  default:
    return quoteJson(value.asString());
  }
}

static Status report(const std::string &step, bool json) {
  std::filesystem::path path = step;
  if (std::filesystem::is_directory(path))
    path /= "step.json";
  Expected<std::string> text = readFile(path.string());
  if (!text)
    return text.error();
  JsonDocument document(path.string(), *text);
  if (!document.status().ok())
    return document.status();
  JsonValue root = document.root();
  if (std::string format = root["format"].asString(); format != "spmd-step")
    root["format"].fail("expected \"spmd-step\", found \"" + format + "\"");
  std::vector<std::vector<std::string>> rows = {{"read", "value", "line"}};
  std::string lines;
  if (root.has("reads"))
    root["reads"].forEach([&](JsonValue read) {
      std::string value = toText(read["value"]), file = read["file"].asString(), line = std::to_string(read["line"].asInt());
      rows.push_back({read["path"].asString(), value, file + ":" + line});
      lines += (lines.empty() ? "  {\"path\": " : ",\n  {\"path\": ") + quoteJson(read["path"].asString()) + ", \"value\": " + value +
               ", \"file\": " + quoteJson(file) + ", \"line\": " + line + "}";
    });
  if (!document.status().ok())
    return document.status();
  if (rows.size() == 1)
    rows = {{"none"}};
  std::fputs((json ? "[\n" + lines + "\n]\n" : formatTable(rows)).c_str(), stdout);
  return Status::success();
}

int reportCaptured(int argc, char **argv) {
  CLI::App app("Prints the Python values that are constants of a step package's graph: the capture read them outside "
               "of the step's own variables.",
               "spmd-report captured");
  app.failure_message(spmd::explainUsage);
  std::string step;
  bool json = false;
  app.add_option("step", step, "step package, or its step.json")->required();
  app.add_flag("--json", json, "as JSON");
  try {
    app.parse(argc, argv);
    Status status = report(step, json);
    if (status.ok())
      return 0;
    std::fprintf(stderr, "spmd-report: error: %s\n", status.message.c_str());
    return static_cast<int>(status.code);
  } catch (const CLI::ParseError &problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "spmd-report: error: %s\n", problem.what());
    return 3;
  }
}
