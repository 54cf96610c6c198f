//===- TokenFile.h - A long row of token ids ---------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_RUN_TOKENFILE_H
#define SPMD_RUNTIME_RUN_TOKENFILE_H

#include "spmd/Runtime/Run/ArrayFile.h"

#include <string>

namespace spmd::runtime {

/// Token ids one after the other, mapped, as nanoGPT writes them (nothing but uint16) and llm.c (a header of 256 int32:
/// magic 20240520, version 1 and uint16, or magic 20240801, version 7 and uint32).
class TokenFile {
public:
  /// `type` is that of files without a header: "uint16" or "uint32".
  static Expected<TokenFile> open(const std::string &path, const std::string &type);

  int64_t size() const { return array.shape[0]; }
  /// Copies `count` ids from `first` on as `dtype`, an integer type.
  Status read(int64_t first, int64_t count, DType dtype, void *to) const { return array.read(first, count, dtype, to); }

private:
  ArrayFile array;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_TOKENFILE_H
