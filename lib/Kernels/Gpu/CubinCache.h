//===- CubinCache.h - machine code by what it was made from ------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_CUBINCACHE_H
#define SPMD_LIB_KERNELS_GPU_CUBINCACHE_H

#include "Ptxas.h"
#include <optional>

namespace spmd::kernel {

/// A folder of cubins, each named by the hash of PTX, chip and ptxas release. It may be used by several processes at
/// once, and lost or damaged at any time: an entry that is not whole is as good as none, and one that cannot be written
/// is not kept.
class CubinCache {
public:
  /// `folder` is made when something is put in; empty: nothing is kept.
  explicit CubinCache(llvm::StringRef folder) : folder(folder.str()) {}

  /// The key of an entry.
  static std::string getKey(llvm::StringRef ptx, llvm::StringRef chip, llvm::StringRef version);

  std::optional<Cubin> get(llvm::StringRef key) const;
  void put(llvm::StringRef key, const Cubin &cubin) const;

  /// Removes what has not been used for a month.
  void prune() const;

private:
  std::string getPath(llvm::StringRef key) const;

  std::string folder;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_CUBINCACHE_H
