//===- SharedObject.h - kernels as a shared object --------------*- C++ -*-===//

#ifndef SPMD_KERNELS_SHAREDOBJECT_H
#define SPMD_KERNELS_SHAREDOBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace spmd::kernel {

/// CPUs that kernels can be generated for.
llvm::ArrayRef<llvm::StringRef> getKernelCpus();

/// What is known of a kernel beside its code.
struct HostKernel {
  std::string symbol;
  /// Bytes that all its iterations move between the second-level cache and memory.
  int64_t movedBytes;
};

/// Generates code for every kernel op in `module` that has a symbol and writes a shared object at `path`, which exports
/// one function per symbol:
///
///   void SYMBOL(void *const *args, const int64_t *coords, int64_t begin, int64_t end)
///
/// `args` are the operands' and then the results' addresses, `coords` the mesh coordinates of the rank, [begin, end) a
/// range of parallel iterations, and a table of what they take (KernelTable.h). The object needs no symbol from
/// outside. The same module and CPU give the same bytes, and the functions give the same bits on every CPU. Errors are
/// emitted at the op or module; nothing is left at `path` then. `described` gets an entry per kernel.
mlir::LogicalResult emitSharedObject(mlir::ModuleOp module, llvm::StringRef cpu, llvm::StringRef path,
                                     std::vector<HostKernel> *described = nullptr);

} // namespace spmd::kernel

#endif // SPMD_KERNELS_SHAREDOBJECT_H
