//===- Hash.cpp -----------------------------------------------------------===//

#include "spmd/Runtime/Core/Hash.h"

#include <cstdio>

using namespace spmd::runtime;

uint64_t spmd::runtime::hashBytes(std::string_view bytes) {
  uint64_t hash = 14695981039346656037ull;
  for (char c : bytes)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::string spmd::runtime::formatHash(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Status spmd::runtime::checkHash(const std::string &path, std::string_view bytes, const std::string &expected) {
  if (expected.empty() || formatHash(hashBytes(bytes)) == expected)
    return Status::success();
  return Status::badInput("'" + path + "': its content has the hash " + formatHash(hashBytes(bytes)) +
                          ", the manifest says " + expected + ": the file was changed after it was compiled");
}
