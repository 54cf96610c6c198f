//===- Hash.h - Names of contents ---------------------------------*- C++ -*-===//
#ifndef SPMD_RUNTIME_CORE_HASH_H
#define SPMD_RUNTIME_CORE_HASH_H

#include "spmd/Runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace spmd::runtime {

/// FNV-1a, 64 bit: tells accidents, not attacks.
uint64_t hashBytes(std::string_view bytes);

/// A hash as manifests write it: 16 lower-case hex digits.
std::string formatHash(uint64_t hash);

/// An error when `bytes`, the content of the file `path`, do not have the hash that the manifest states. An empty
/// `expected` is not compared.
Status checkHash(const std::string &path, std::string_view bytes, const std::string &expected);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_HASH_H
