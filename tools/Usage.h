//===- Usage.h - What is wrong with a command line --------------*- C++ -*-===//
#ifndef SPMD_TOOLS_USAGE_H
#define SPMD_TOOLS_USAGE_H

#include "spmd/ShardUnits/Policy.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace spmd {

/// The first word that is no option, with those that are nearest; empty when all options are known.
inline std::string describeUnknownOption(const CLI::App &app) {
  for (const std::string &word : app.remaining()) {
    std::string name = word.substr(0, word.find('='));
    if (name.compare(0, 2, "--") != 0)
      continue;
    std::vector<std::string> known;
    for (const CLI::Option *option : app.get_options())
      for (const std::string &longName : option->get_lnames())
        known.push_back("--" + longName);
    return name + ": there is no such option" + units::suggestNames(name, known);
  }
  return "";
}

/// What a tool says of a command line that it does not take: CLI::App::failure_message.
inline std::string explainUsage(const CLI::App *app, const CLI::Error &problem) {
  bool hasUnknown = problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  std::string unknown = hasUnknown ? describeUnknownOption(*app) : "";
  return (unknown.empty() ? problem.what() : unknown) + "\nRun with --help for more information.\n";
}

/// A check that the value of an option is one of these words.
inline CLI::Validator oneOf(const std::vector<std::string> &words) {
  return CLI::Validator(
      [words](std::string &text) -> std::string {
        std::string list;
        for (const std::string &word : words) {
          if (word == text)
            return "";
          list += (list.empty() ? "" : ", ") + word;
        }
        return "expected " + list + ", found " + text;
      },
      "{" + CLI::detail::join(words, ",") + "}");
}

} // namespace spmd

#endif // SPMD_TOOLS_USAGE_H
