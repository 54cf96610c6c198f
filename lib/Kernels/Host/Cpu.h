//===- Cpu.h - CPUs that kernels are generated for --------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_CPU_H
#define SPMD_LIB_KERNELS_HOST_CPU_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace spmd::kernel {

/// One level of x86-64, and what the machines have at least that run its code. No bit depends on it.
struct Cpu {
  llvm::StringLiteral name;
  /// Accumulators of products: what registers hold beside the operands, in vectors of 16 lanes of f32.
  int64_t accumulators;
  /// The second-level cache of a core.
  int64_t cacheBytes;
};

/// The CPU of that name, which must be one of getKernelCpus.
const Cpu &getCpu(llvm::StringRef name);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_CPU_H
