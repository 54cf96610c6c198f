//===- WriteFile.h - bytes to a file -----------------------------*- C++ -*-===//

#ifndef SPMD_KERNELS_WRITEFILE_H
#define SPMD_KERNELS_WRITEFILE_H

#include "llvm/Support/raw_ostream.h"
#include <string>

namespace spmd::kernel {

/// Writes `bytes` to the file `path` (- is standard output). Returns an error message or nothing.
inline std::string writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << bytes;
    os.close();
    error = os.error();
    os.clear_error();
  }
  return error ? "cannot write '" + path.str() + "': " + error.message() : "";
}

} // namespace spmd::kernel

#endif // SPMD_KERNELS_WRITEFILE_H
