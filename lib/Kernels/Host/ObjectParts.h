//===- ObjectParts.h - functions of kernels as a shared object --*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_HOST_OBJECTPARTS_H
#define SPMD_LIB_KERNELS_HOST_OBJECTPARTS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <array>

namespace spmd::kernel {

/// Half of the kernels, on its way to an object file.
struct ObjectPart {
  mlir::OwningOpRef<mlir::ModuleOp> functions;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  llvm::SmallVector<char, 0> object;
  std::string error;
};

/// Two parts whatever the machine, so that the bytes depend on the kernels alone.
using ObjectParts = std::array<ObjectPart, 2>;

/// The dialects of kernel functions and their translation to LLVM IR.
void insertObjectDialects(mlir::DialectRegistry &registry);

/// Gives each part an empty module of functions. A CPU that code cannot be generated for is an error at `module`.
mlir::LogicalResult beginParts(ObjectParts &parts, mlir::ModuleOp module, llvm::StringRef cpu);

/// Compiles the functions of all parts, in as many threads, and links them with the object files `others` to a shared
/// object at `path`. `complete` may add to the LLVM IR of part number `part` before. Errors are emitted at `module`.
mlir::LogicalResult writeParts(ObjectParts &parts, mlir::ModuleOp module, llvm::StringRef cpu, llvm::StringRef path,
                               llvm::ArrayRef<llvm::ArrayRef<char>> others = {},
                               llvm::function_ref<void(unsigned part, llvm::Module &module)> complete = {});

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_OBJECTPARTS_H
