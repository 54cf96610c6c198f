//===- Target.h - what code is generated for ---------------------*- C++ -*-===//

#ifndef SPMD_KERNELS_TARGET_H
#define SPMD_KERNELS_TARGET_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace spmd::kernel {

/// The value of `--target`:
///
///   host                       kernels for this machine's kind of CPU
///   cuda:CHIP[,CHIP...]        cubin and PTX of GPU kernels, for each chip
///   emulate:CHIP               the GPU kernels of that chip, built for the CPU
struct Target {
  enum class Kind { host, cuda, emulate };
  Kind kind = Kind::host;
  /// In the order of the devices, each once; empty for host, one for emulate.
  std::vector<std::string> chips;

  /// As it was given, chips in order.
  std::string getText() const;
};

/// "host", "cuda", "emulate": what manifests call the kind.
llvm::StringRef getTargetName(Target::Kind kind);

/// What the GEMM library of a target does besides the product, and of which types: the options of
/// spmd-fuse-gemm-epilogues.
struct GemmEpilogues {
  llvm::StringRef epilogues, dtypes;
};
GemmEpilogues getGemmEpilogues(Target::Kind kind);

/// Most blocks that one long reduction is cut into: 64 for CPUs; for GPUs two for each multiprocessor of the largest
/// chip.
int64_t getReductionBlocks(const Target &target);

/// Reads a target. Nothing when it is none; `error` then says what is allowed.
std::optional<Target> parseTarget(llvm::StringRef text, std::string &error);

/// Chips that GPU kernels can be generated for, oldest first.
llvm::SmallVector<llvm::StringRef> getKernelChips();

} // namespace spmd::kernel

#endif // SPMD_KERNELS_TARGET_H
