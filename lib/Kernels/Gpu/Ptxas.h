//===- Ptxas.h - NVIDIA's assembler ------------------------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_GPU_PTXAS_H
#define SPMD_LIB_KERNELS_GPU_PTXAS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace spmd::kernel {

/// What ptxas made of one kernel.
struct Cubin {
  std::string code;
  /// What `ptxas -v` said: registers, spills, shared memory.
  std::string log;
};

/// The program ptxas, run on one kernel at a time; may be run from several threads.
class Ptxas {
public:
  /// Finds it (see CudaOptions::toolkit).
  static llvm::Expected<Ptxas> find(llvm::StringRef toolkit);

  llvm::StringRef getPath() const { return path; }
  /// The line that tells releases apart, such as "Cuda compilation tools, release 13.0, V13.0.88".
  llvm::StringRef getVersion() const { return version; }

  /// Assembles `ptx` for `chip`.
  llvm::Expected<Cubin> run(llvm::StringRef ptx, llvm::StringRef chip) const;

private:
  std::string path, version;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_PTXAS_H
