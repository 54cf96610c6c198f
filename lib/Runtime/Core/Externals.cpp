//===- Externals.cpp - Functions of others that kernels call --------------===//

#include "spmd/Runtime/Core/Externals.h"

#include <sstream>

using namespace spmd::runtime;

std::string spmd::runtime::formatExternals(const std::vector<External> &externals) {
  std::string text;
  for (const External &external : externals)
    text += external.pointer + ' ' + external.hash + ' ' + external.symbol + ' ' + external.file + '\n';
  return text;
}

std::vector<External> spmd::runtime::parseExternals(std::string_view table) {
  std::vector<External> externals;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    External external;
    std::istringstream words(line);
    words >> external.pointer >> external.hash >> external.symbol >> std::ws;
    std::getline(words, external.file); // which may have spaces
    externals.push_back(std::move(external));
  }
  return externals;
}
