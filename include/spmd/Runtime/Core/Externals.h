//===- Externals.h - Functions of others that kernels call ------*- C++ -*-===//
//
// A file of kernels that call functions of the user's has a table of them, and for each a pointer, which whoever loads
// the file sets.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_EXTERNALS_H
#define SPMD_RUNTIME_CORE_EXTERNALS_H

#include <string>
#include <string_view>
#include <vector>

namespace spmd::runtime {

/// The table: a line "POINTER HASH SYMBOL FILE" for each function.
constexpr char kExternalTableSymbol[] = "spmd_external_table";

/// Where an artifact or step package has libraries.
constexpr char kLibraryFolder[] = "libraries";

struct External {
  std::string pointer; ///< symbol of the pointer in the file of kernels
  std::string hash;    ///< of the library's bytes
  std::string symbol;  ///< the function's
  std::string file;    ///< in the artifact's folder of libraries
};

std::string formatExternals(const std::vector<External> &externals);
std::vector<External> parseExternals(std::string_view table);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_EXTERNALS_H
