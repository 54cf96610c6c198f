//===- KernelTable.h - What the kernels in a file take ----------*- C++ -*-===//

#ifndef SPMD_KERNELS_KERNELTABLE_H
#define SPMD_KERNELS_KERNELTABLE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace spmd::kernel {

struct CubinArchive;

/// A line for each generated kernel of `module` with its symbol, its parallel iterations and its arguments, operands
/// before results: "k12 512 r:f32:2048 w:f32:64". A plan that launches it otherwise could make it leave its bytes, so a
/// loader compares (spmd/Runtime/Core/KernelTable.h). `blocks`: how often those are launched whose iterations are the
/// blocks of a grid, by symbol.
mlir::FailureOr<std::string> getKernelTable(mlir::ModuleOp module, const llvm::StringMap<int64_t> &blocks = {});

/// Exports the table from `module` as constant text, under runtime::kKernelTableSymbol.
void addKernelTable(llvm::Module &module, llvm::StringRef table);

/// Puts the table behind the cubins and the PTX ([Note: tables of GPU code]).
void addKernelTable(CubinArchive &archive, llvm::StringRef table);

} // namespace spmd::kernel

#endif // SPMD_KERNELS_KERNELTABLE_H
