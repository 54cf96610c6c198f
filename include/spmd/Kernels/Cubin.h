//===- Cubin.h - GPU kernels as machine code ---------------------*- C++ -*-===//

#ifndef SPMD_KERNELS_CUBIN_H
#define SPMD_KERNELS_CUBIN_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <optional>
#include <string>
#include <vector>

namespace spmd::kernel {

/// Where the assembler is, and what it has made before.
struct CudaOptions {
  /// Folder of a CUDA toolkit, which has bin/ptxas. Empty: $CUDA_HOME, the PATH, /usr/local/cuda, or NVIDIA's Python
  /// package as scripts/setup --cuda or the active virtual environment has it.
  std::string toolkit;
  /// Folder of machine code by the hash of what it was made from; empty: none.
  std::string cache;
};

/// The user's cache folder for machine code, under $XDG_CACHE_HOME; empty when there is no home.
std::string getUserKernelCache();

/// What keeps kernels from being compiled with these options: no ptxas, or one that does not run. Empty when nothing
/// does.
std::string findCudaProblem(const CudaOptions &options);

/// Chips that GPU kernels can be generated for, oldest first.
llvm::SmallVector<llvm::StringRef> getKernelChips();
/// Of one of them.
int64_t getMultiprocessors(llvm::StringRef chip);
/// 90 of sm_90.
int64_t getCapability(llvm::StringRef chip);

/// One kernel for one chip: how it is launched, and what ptxas says of it.
struct GpuKernel {
  std::string symbol;
  int64_t blocks = 1, threads = 1;
  /// 32-bit registers of a thread.
  int64_t registers = 0;
  /// Bytes of a block: known when compiled, and asked for at launch.
  int64_t staticSharedBytes = 0, dynamicSharedBytes = 0;
  /// Bytes of a thread in local memory, of them those that registers were spilled to.
  int64_t localBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0;
  int64_t barriers = 0;
  /// Pointers it takes, and mesh coordinates after them.
  int64_t pointers = 0, coordinates = 0;
  /// Bytes read from and written to global memory by a launch, when the skeleton knows.
  std::optional<int64_t> movedBytes;
  /// Where its cubin lies in the archive.
  int64_t offset = 0, bytes = 0;
  /// Of a kernel of the user's: how it is launched.
  LaunchAttr launch;
};

/// Kernels of the user's for one chip, and the cubins that have them, in the order in which they are first used.
struct UserKernels {
  std::vector<GpuKernel> kernels;
  std::vector<std::pair<std::string, std::string>> cubins; ///< name, bytes
  std::vector<size_t> cubinOf;                             ///< of each kernel
};

/// The kernels of a module for one chip.
struct CubinArchive {
  /// An ar archive of one cubin per kernel.
  std::string code;
  /// All kernels as one PTX module, for newer chips.
  std::string ptx;
  std::vector<GpuKernel> kernels;
};

/// The generated kernels of `module` (kernel ops with symbols) as they run on `chip`: a module of one gpu.module, as
/// spmd-lower-gpu-kernels makes it. Errors are emitted at the op or the module.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> lowerGpuKernels(mlir::ModuleOp module, llvm::StringRef chip);

/// What each kernel in a module from lowerGpuKernels says of its launch, in order; what ptxas will say is not known
/// yet.
std::vector<GpuKernel> describeGpuKernels(mlir::ModuleOp module);

/// Compiles every gpu.func of `module` for `chip`, on all cores; the bytes do not depend on how many there are.
/// `module` is used up. Errors (an unknown chip, no ptxas, what ptxas says) are emitted at the module.
/// The kernels of `user` are in the archive, too, and not in its PTX.
mlir::FailureOr<CubinArchive> compileCubins(mlir::ModuleOp module, llvm::StringRef chip, const CudaOptions &options,
                                            UserKernels user = {});

/// The kernels of the user's that `module` calls (kernel.custom_call), from their files in the folder `libraries`. What
/// a cubin has is compared with what the launch gives it: errors, at the op, are no cubin for the chip, another file
/// than the step was captured with, no such kernel, other parameters.
mlir::FailureOr<UserKernels> readUserKernels(mlir::ModuleOp module, llvm::StringRef chip, llvm::StringRef libraries);

} // namespace spmd::kernel

#endif // SPMD_KERNELS_CUBIN_H
