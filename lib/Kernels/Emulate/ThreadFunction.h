//===- ThreadFunction.h - a GPU kernel as a function of one thread *- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EMULATE_THREADFUNCTION_H
#define SPMD_LIB_KERNELS_EMULATE_THREADFUNCTION_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <string>

namespace spmd::kernel {

/// What the emulator is told of a load, store, barrier or shuffle.
struct EmulatedOp {
  std::string text, source;
  int64_t bytes = 0, alignment = 1;
};

/// What the emulator is told of a kernel, read from the attributes of its gpu.func (../Gpu/GpuBuilder.h).
struct EmulatedKernel {
  std::string name;
  int64_t blockSize = 0, gridSize = 0, sharedBytes = 0;
  int64_t numOperands = 0;
  llvm::SmallVector<int64_t> argumentBytes;
  /// Constant arrays, which the kernel finds behind its arguments.
  llvm::SmallVector<mlir::LLVM::GlobalOp> tables;
  llvm::SmallVector<EmulatedOp> ops;
};

/// Reads the attributes and numbers the ops. Whatever the emulator could not run is an error at its op.
mlir::FailureOr<EmulatedKernel> readKernel(mlir::gpu::GPUFuncOp function);

/// Adds to `module` a function of one thread of `function`,
///
///   void NAME(Thread *thread, void *const *args, const int64_t *coords, char *shared, int64_t block, int64_t number)
///
/// whose barriers and shuffles, and with `isChecked` memory accesses, are calls of the emulator. Address spaces are
/// gone, and so are the promises of the arguments' attributes.
void addThreadFunction(mlir::ModuleOp module, mlir::gpu::GPUFuncOp function, const EmulatedKernel &kernel,
                       bool isChecked, llvm::StringRef name);

/// Declares in `module` what those functions call.
void declareEmulator(mlir::ModuleOp module);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_EMULATE_THREADFUNCTION_H
