//===- RoundTrip.cpp - Artifacts read and written again -------------------===//
//
// spmd-round-trip ARTIFACT...: reads the manifest and the plans of each, writes them, and fails where a byte differs.
// What the compiler writes is then all that the runtime knows, and the other way round: a field that is written and not
// read, or read and not written, is found by the first artifact that has it.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <cstdio>

using namespace spmd::runtime;

/// The first line that differs, of both; nothing when none does.
static std::string findDifference(const std::string &before, const std::string &after) {
  if (before == after)
    return "";
  size_t at = 0;
  while (at < before.size() && at < after.size() && before[at] == after[at])
    ++at;
  size_t begin = before.rfind('\n', at ? at - 1 : 0);
  begin = begin == std::string::npos ? 0 : begin + 1;
  auto lineOf = [&](const std::string &text) { return text.substr(begin, text.find('\n', begin) - begin); };
  return "\n  it has " + lineOf(before) + "\n  and then " + lineOf(after);
}

static int failures = 0;

/// Reads `path` with `parse`, writes what came of it with `write`, and returns it.
template <typename Parse, typename Write>
static auto check(const std::string &path, Parse parse, Write write) -> decltype(parse("", "")) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  auto value = parse("'" + path + "'", *text);
  if (!value)
    return value;
  if (std::string difference = findDifference(*text, write(*value)); !difference.empty()) {
    ++failures;
    std::printf("'%s' is another after it was read and written:%s\n", path.c_str(), difference.c_str());
  }
  return value;
}

static void fail(const Status &status) {
  ++failures;
  std::printf("%s\n", status.message.c_str());
}

int main(int argc, char **argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    std::string folder = argv[i];
    Expected<Manifest> manifest = check(folder + "/manifest.json", parseManifest, writeManifest);
    if (!manifest) {
      fail(manifest.error());
      continue;
    }
    ++files;
    for (const ProgramEntry &program : manifest->programs) {
      ++files;
      if (Expected<Plan> plan = check(folder + "/" + program.plan, parsePlan, writePlan); !plan)
        fail(plan.error());
    }
  }
  std::printf("%d files, %d failures\n", files, failures);
  return failures != 0;
}
