//===- spmd-mutate.cpp - Writes an artifact whose plan is broken ----------===//
//
// What the certificate must refuse: one field, reference or binding is another, everything else is as compiled.
// Exit codes: 0 done, 2 usage or input.
//
//===----------------------------------------------------------------------===//

#include "Mutant.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>

using namespace spmd::mutation;
namespace fs = std::filesystem;

namespace {
struct Arguments {
  std::string artifact, output, className;
  uint64_t seed = 1;
  bool firstStep = false, list = false;
};
} // namespace

static int fail(const std::string &message) {
  std::fprintf(stderr, "spmd-mutate: error: %s\n", message.c_str());
  return 2;
}

static int printClasses() {
  for (const MutationClass &entry : mutationClasses())
    std::printf("%-20s %s\n", entry.name, entry.what);
  return 0;
}

static int runTool(const Arguments &arguments) {
  if (arguments.list)
    return printClasses();
  if (arguments.artifact.empty() || arguments.output.empty())
    return fail("expected an artifact, and -o with the folder to write");
  if (fs::exists(arguments.output))
    return fail("'" + arguments.output + "' exists");
  fs::copy(arguments.artifact, arguments.output, fs::copy_options::recursive);
  spmd::runtime::Expected<Mutant> mutant =
      writeMutant(arguments.artifact, arguments.output, arguments.firstStep, arguments.className, arguments.seed);
  if (!mutant) {
    fs::remove_all(arguments.output);
    return fail(mutant.error().message);
  }
  std::printf("%s: %s\n", mutant->mutationClass->name, mutant->done.c_str());
  return 0;
}

int main(int argc, char **argv) {
  CLI::App app("Writes a copy of an artifact with one change in its plan, or in the names bound to it.",
               "spmd-mutate");
  Arguments arguments;
  app.add_option("artifact", arguments.artifact, "folder made by spmd-compile");
  app.add_option("-o", arguments.output, "folder to write");
  std::vector<std::string> names;
  for (const MutationClass &entry : mutationClasses())
    names.push_back(entry.name);
  app.add_option("--class", arguments.className, "what is changed (default: any)")->check(CLI::IsMember(names));
  app.add_option("--seed", arguments.seed, "another seed changes another place");
  app.add_flag("--first-step", arguments.firstStep, "change the program of the first step");
  app.add_flag("--list", arguments.list, "print the classes");
  try {
    app.parse(argc, argv);
    return runTool(arguments);
  } catch (const CLI::ParseError &problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const std::exception &problem) {
    return fail(problem.what());
  }
}
