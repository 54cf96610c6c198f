//===- Externals.h - Functions that kernels call ----------------*- C++ -*-===//
//
// [Note: functions of others] A kernel calls a function of the user's by a pointer in its file, which the runtime sets
// when it loads the artifact: the library is the artifact's own copy, whatever library of the same name the process has
// (include/spmd/Runtime/Core/Externals.h).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_EXTERNALS_H
#define SPMD_LIB_KERNELS_EXTERNALS_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class Module;
} // namespace llvm

namespace spmd::kernel {

/// Symbol of the pointer to the function that `op` calls.
std::string getPointerName(CustomCallOp op);

/// Defines the pointers of all functions that kernels of `kernels` call, and the table that says what they point to.
void addExternals(llvm::Module &module, mlir::ModuleOp kernels);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_EXTERNALS_H
