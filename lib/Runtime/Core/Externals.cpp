//===- Externals.cpp - Functions of others that kernels call --------------===//

#include "spmd/Runtime/Core/Externals.h"

#include <dlfcn.h>
#include <sstream>

using namespace spmd::runtime;

uint8_t spmd::runtime::getDlTypeCode(DType dtype) {
  switch (dtype) {
  case DType::I1:
    return 6; // kDLBool
  case DType::BF16:
    return 4; // kDLBfloat
  case DType::F64:
  case DType::F32:
  case DType::F16:
    return 2; // kDLFloat
  case DType::U8:
    return 1; // kDLUInt
  case DType::I64:
  case DType::I32:
  case DType::I16:
  case DType::I8:
    return 0; // kDLInt
  }
  return 0;
}

Expected<void *> spmd::runtime::loadFunction(const std::string &path, const std::string &symbol) {
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library)
    return Status::badInput("cannot load the library of an operator of yours: " + std::string(::dlerror()));
  void *function = ::dlsym(library, symbol.c_str());
  ::dlclose(library);
  if (!function)
    return Status::badInput("'" + path + "' has no function '" + symbol + "'");
  return function;
}

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
