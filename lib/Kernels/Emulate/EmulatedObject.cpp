//===- EmulatedObject.cpp - GPU kernels built for the CPU -----------------===//

#include "spmd/Kernels/EmulatedObject.h"
#include "../Host/ConvertToLLVM.h"
#include "../Host/ObjectCode.h"
#include "DescribeKernels.h"
#include "EmulatorObject.h"
#include "ThreadFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "spmd/Kernels/Passes.h"
#include "spmd/Kernels/SharedObject.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/thread.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_EMULATEKERNELS
#include "spmd/Kernels/Passes.h.inc"

namespace {

/// Some of the kernels, on their way to an object file.
struct Part {
  std::vector<EmulatedKernel> kernels;
  OwningOpRef<ModuleOp> functions;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  SmallVector<char, 0> object;
  std::string error;
};

} // namespace

/// Adds the functions of one thread of `function`, and the tables that they read.
static LogicalResult addKernel(Part &part, gpu::GPUFuncOp function) {
  FailureOr<EmulatedKernel> kernel = readKernel(function);
  if (failed(kernel))
    return failure();
  OpBuilder builder = OpBuilder::atBlockBegin(part.functions->getBody());
  for (LLVM::GlobalOp table : kernel->tables)
    if (!part.functions->lookupSymbol(table.getSymName()))
      cast<LLVM::GlobalOp>(builder.clone(*table)).setAddrSpace(0);
  for (bool isChecked : {false, true})
    addThreadFunction(*part.functions, function, *kernel, isChecked, getThreadFunctionName(kernel->name, isChecked));
  part.kernels.push_back(std::move(*kernel));
  return success();
}

LogicalResult emitEmulatedObject(ModuleOp module, StringRef cpu, StringRef path) {
  if (!llvm::is_contained(getKernelCpus(), cpu))
    return module.emitError("cannot generate kernels for cpu \"")
           << cpu << "\"; known are " << llvm::join(getKernelCpus(), ", ");
  MLIRContext *context = module.getContext();
  context->loadDialect<LLVM::LLVMDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                       vector::VectorDialect>();
  DialectRegistry translations;
  registerBuiltinDialectTranslation(translations);
  registerLLVMDialectTranslation(translations);
  context->appendDialectRegistry(translations);

  // Two parts whatever the machine, so that the bytes depend on the module alone.
  std::array<Part, 2> parts;
  for (Part &part : parts) {
    part.functions = ModuleOp::create(module.getLoc());
    declareEmulator(*part.functions);
  }
  size_t next = 0;
  for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
    for (auto function : gpuModule.getOps<gpu::GPUFuncOp>())
      if (failed(addKernel(parts[next++ % parts.size()], function)))
        return failure();
  for (Part &part : parts) {
    if (failed(convertToLLVM(*part.functions)))
      return failure();
    part.module = translateModuleToLLVMIR(*part.functions, part.context, "kernels");
    if (!part.module)
      return failure();
    for (const EmulatedKernel &kernel : part.kernels)
      describeKernel(*part.module, kernel);
  }
  auto compile = [cpu](Part &part) { part.error = generateObject(*part.module, cpu, part.object); };
  llvm::thread other([&] { compile(parts[1]); });
  compile(parts[0]);
  other.join();
  for (Part &part : parts)
    if (!part.error.empty())
      return module.emitError("code generation for ") << cpu << ": " << part.error;
  std::string error = linkSharedObject({parts[0].object, parts[1].object, getEmulatorObject()}, path);
  if (!error.empty())
    return module.emitError("cannot link kernels: ") << error;
  return success();
}

namespace {
struct EmulateKernels : impl::EmulateKernelsBase<EmulateKernels> {
  using EmulateKernelsBase::EmulateKernelsBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<LLVM::LLVMDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
  }
  void runOnOperation() override {
    if (path.empty()) {
      getOperation().emitError("spmd-emulate-kernels needs the option path");
      return signalPassFailure();
    }
    if (failed(emitEmulatedObject(getOperation(), cpu, path)))
      signalPassFailure();
  }
};
} // namespace

} // namespace spmd::kernel
