//===- AlgorithmCache.h - What cuBLASLt chose before --------------*- C++ -*-===//
//
// Asking the library for an algorithm takes it a while for each product, and the
// answer is the same whenever library, device and problem are. So answers are kept
// in a file of the user's cache folder, one for each library version and device. It
// is only to be faster: one that cannot be read or written changes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_CUDA_ALGORITHMCACHE_H
#define SPMD_LIB_RUNTIME_CUDA_ALGORITHMCACHE_H

#include "CublasLtApi.h"
#include "Gpu.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spmd::runtime::cuda {

class AlgorithmCache {
public:
  /// What is kept of a library of this version on this device; a file that is broken is said to be on stderr.
  static AlgorithmCache open(size_t version, const Gpu &gpu);

  std::optional<cublas::Algorithm> find(const std::string &problem) const;
  /// `problem` is one line.
  void add(const std::string &problem, const cublas::Algorithm &algorithm);
  /// Writes the file, where something was added.
  void save();

private:
  bool read(std::string_view text);
  std::string format() const;

  std::string folder, path, header; ///< no path: nothing is kept
  std::map<std::string, cublas::Algorithm> known;
  bool isChanged = false;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_ALGORITHMCACHE_H
