//===- ObjectCode.h - LLVM IR to machine code and shared objects *- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_OBJECTCODE_H
#define SPMD_LIB_KERNELS_HOST_OBJECTCODE_H

#include "mlir/Support/LLVM.h"
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace spmd::kernel {

/// Optimizes `module` for `cpu` and appends an object file to `object`. Returns an error message or nothing. May run in
/// several threads on modules of different contexts.
std::string generateObject(llvm::Module &module, llvm::StringRef cpu, llvm::SmallVectorImpl<char> &object);

/// Links object files to a freestanding shared object at `path`, in place of what was there. Returns an error message
/// or nothing.
std::string linkSharedObject(llvm::ArrayRef<llvm::ArrayRef<char>> objects, llvm::StringRef path);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_OBJECTCODE_H
