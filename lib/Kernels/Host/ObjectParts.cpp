//===- ObjectParts.cpp - functions of kernels as a shared object ----------===//

#include "ObjectParts.h"
#include "ConvertToLLVM.h"
#include "ObjectCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "spmd/Kernels/SharedObject.h"
#include "llvm/Support/thread.h"

using namespace mlir;

namespace spmd::kernel {

void insertObjectDialects(DialectRegistry &registry) {
  registry.insert<LLVM::LLVMDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

LogicalResult beginParts(ObjectParts &parts, ModuleOp module, StringRef cpu) {
  if (!llvm::is_contained(getKernelCpus(), cpu))
    return module.emitError("cannot generate kernels for cpu \"")
           << cpu << "\"; known are " << llvm::join(getKernelCpus(), ", ");
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  insertObjectDialects(registry);
  context->appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context->getOrLoadDialect(name);
  for (ObjectPart &part : parts)
    part.functions = ModuleOp::create(module.getLoc());
  return success();
}

LogicalResult writeParts(ObjectParts &parts, ModuleOp module, StringRef cpu, StringRef path,
                         ArrayRef<ArrayRef<char>> others, llvm::function_ref<void(unsigned, llvm::Module &)> complete) {
  for (auto [i, part] : llvm::enumerate(parts)) {
    if (failed(convertToLLVM(*part.functions)))
      return failure();
    part.module = translateModuleToLLVMIR(*part.functions, part.context, "kernels");
    if (!part.module)
      return failure();
    if (complete)
      complete(i, *part.module);
  }
  auto compile = [cpu](ObjectPart &part) { part.error = generateObject(*part.module, cpu, part.object); };
  llvm::thread other([&] { compile(parts[1]); });
  compile(parts[0]);
  other.join();
  SmallVector<ArrayRef<char>> objects;
  for (ObjectPart &part : parts) {
    if (!part.error.empty())
      return module.emitError("code generation for ") << cpu << ": " << part.error;
    objects.push_back(part.object);
  }
  llvm::append_range(objects, others);
  std::string error = linkSharedObject(objects, path);
  if (!error.empty())
    return module.emitError("cannot link kernels: ") << error;
  return success();
}

} // namespace spmd::kernel
