//===- EmulatedObject.h - GPU kernels built for the CPU ---------*- C++ -*-===//

#ifndef SPMD_KERNELS_EMULATEDOBJECT_H
#define SPMD_KERNELS_EMULATEDOBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace spmd::kernel {

/// Builds every gpu.func of `module` (spmd-lower-gpu-kernels) for `cpu` and writes a shared object at `path`. For each
/// kernel it exports
///
///   void SYMBOL(void *const *args, const int64_t *coords, int64_t begin, int64_t end)
///
/// which runs blocks [begin, end) of the grid, and beside them the functions of spmd/Runtime/Emulation.h. Like that of
/// emitSharedObject it needs no symbol from outside. The same module and CPU give the same bytes. Errors are emitted at
/// the op or module; nothing is left at `path` then. With `checkedOnly` kernels run with every access checked, whatever
/// is configured. `table` is that of the kernels that `module` was made from (KernelTable.h); empty: it is left out.
mlir::LogicalResult emitEmulatedObject(mlir::ModuleOp module, llvm::StringRef cpu, llvm::StringRef path,
                                       bool checkedOnly = false, llvm::StringRef table = "");

} // namespace spmd::kernel

#endif // SPMD_KERNELS_EMULATEDOBJECT_H
