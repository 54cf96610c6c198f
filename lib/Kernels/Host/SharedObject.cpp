//===- SharedObject.cpp - kernels as a shared object ----------------------===//

#include "spmd/Kernels/SharedObject.h"
#include "../CollectKernels.h"
#include "ConvertToLLVM.h"
#include "LowerKernels.h"
#include "ObjectCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "spmd/Kernels/Passes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/thread.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_EMITKERNELS
#include "spmd/Kernels/Passes.h.inc"

namespace {

/// Half of the kernels, on its way to an object file.
struct Part {
  OwningOpRef<ModuleOp> loops;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  SmallVector<char, 0> object;
  std::string error;
};

} // namespace

LogicalResult emitSharedObject(ModuleOp module, StringRef cpu, StringRef path) {
  if (!llvm::is_contained(getKernelCpus(), cpu))
    return module.emitError("cannot generate kernels for cpu \"")
           << cpu << "\"; known are " << llvm::join(getKernelCpus(), ", ");
  auto kernels = collectKernels(module);
  if (failed(kernels))
    return failure();

  MLIRContext *context = module.getContext();
  context->loadDialect<LLVM::LLVMDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                       vector::VectorDialect>();
  DialectRegistry translations;
  registerBuiltinDialectTranslation(translations);
  registerLLVMDialectTranslation(translations);
  context->appendDialectRegistry(translations);

  // Two parts whatever the machine, so that the bytes depend on the module alone.
  constexpr unsigned kParts = 2;
  std::array<Part, kParts> parts;
  for (Part &part : parts)
    part.loops = ModuleOp::create(module.getLoc());
  for (auto [i, op] : llvm::enumerate(*kernels))
    if (failed(lowerKernel(op, *parts[i % kParts].loops, getAccumulators(cpu))))
      return failure();
  for (Part &part : parts) {
    if (failed(convertToLLVM(*part.loops)))
      return failure();
    part.module = translateModuleToLLVMIR(*part.loops, part.context, "kernels");
    if (!part.module)
      return failure();
  }
  auto compile = [cpu](Part &part) { part.error = generateObject(*part.module, cpu, part.object); };
  llvm::thread other([&] { compile(parts[1]); });
  compile(parts[0]);
  other.join();
  for (Part &part : parts)
    if (!part.error.empty())
      return module.emitError("code generation for ") << cpu << ": " << part.error;
  std::string error = linkSharedObject({ArrayRef<char>(parts[0].object), ArrayRef<char>(parts[1].object)}, path);
  if (!error.empty())
    return module.emitError("cannot link kernels: ") << error;
  return success();
}

namespace {
struct EmitKernels : impl::EmitKernelsBase<EmitKernels> {
  using EmitKernelsBase::EmitKernelsBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<LLVM::LLVMDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
  }
  void runOnOperation() override {
    if (path.empty()) {
      getOperation().emitError("spmd-emit-kernels needs the option path");
      return signalPassFailure();
    }
    if (failed(emitSharedObject(getOperation(), cpu, path)))
      signalPassFailure();
  }
};
} // namespace

} // namespace spmd::kernel
