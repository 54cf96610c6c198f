//===- Externals.h - Functions of others that kernels call ------*- C++ -*-===//
//
// A file of kernels that call functions of the user's has a table of them, and for each a pointer, which whoever loads
// the file sets.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_EXTERNALS_H
#define SPMD_RUNTIME_CORE_EXTERNALS_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Status.h"

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

/// DLTensor of dlpack.h (DLPack 1.0), as such a function gets its arguments and results.
struct DlTensor {
  void *data;
  int32_t deviceType = 1, deviceId = 0; ///< kDLCPU
  int32_t ndim;
  uint8_t code, bits; ///< of an element
  uint16_t lanes = 1;
  int64_t *shape, *strides;
  uint64_t byteOffset = 0;
};

/// DLDataTypeCode.
uint8_t getDlTypeCode(DType dtype);

/// The function `symbol` of the library at `path`, which has a slash in it. The library stays loaded: threads of its
/// own may run.
Expected<void *> loadFunction(const std::string &path, const std::string &symbol);

std::string formatExternals(const std::vector<External> &externals);
std::vector<External> parseExternals(std::string_view table);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_EXTERNALS_H
