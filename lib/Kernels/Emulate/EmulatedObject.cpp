//===- EmulatedObject.cpp - GPU kernels built for the CPU -----------------===//

#include "spmd/Kernels/EmulatedObject.h"
#include "../Host/ObjectParts.h"
#include "DescribeKernels.h"
#include "EmulatorObject.h"
#include "ThreadFunction.h"
#include "spmd/Kernels/KernelTable.h"
#include "spmd/Kernels/Passes.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_EMULATEKERNELS
#include "spmd/Kernels/Passes.h.inc"

/// Adds the functions of one thread of `function`, and the tables that they read.
static LogicalResult addKernel(ModuleOp functions, std::vector<EmulatedKernel> &kernels, gpu::GPUFuncOp function,
                               bool checkedOnly) {
  FailureOr<EmulatedKernel> kernel = readKernel(function);
  if (failed(kernel))
    return failure();
  OpBuilder builder = OpBuilder::atBlockBegin(functions.getBody());
  for (LLVM::GlobalOp table : kernel->tables)
    if (!functions.lookupSymbol(table.getSymName()))
      cast<LLVM::GlobalOp>(builder.clone(*table)).setAddrSpace(0);
  for (bool isChecked : {false, true})
    if (isChecked || !checkedOnly)
      addThreadFunction(functions, function, *kernel, isChecked, getThreadFunctionName(kernel->name, isChecked));
  kernels.push_back(std::move(*kernel));
  return success();
}

LogicalResult emitEmulatedObject(ModuleOp module, StringRef cpu, StringRef path, bool checkedOnly, StringRef table) {
  ObjectParts parts;
  if (failed(beginParts(parts, module, cpu)))
    return failure();
  for (ObjectPart &part : parts)
    declareEmulator(*part.functions);
  std::array<std::vector<EmulatedKernel>, std::tuple_size_v<ObjectParts>> kernels;
  size_t next = 0;
  for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
    for (auto function : gpuModule.getOps<gpu::GPUFuncOp>()) {
      size_t part = next++ % parts.size();
      if (failed(addKernel(*parts[part].functions, kernels[part], function, checkedOnly)))
        return failure();
    }
  return writeParts(parts, module, cpu, path, getEmulatorObject(), [&](unsigned part, llvm::Module &llvmModule) {
    for (const EmulatedKernel &kernel : kernels[part])
      describeKernel(llvmModule, kernel);
    if (part == 0 && !table.empty())
      addKernelTable(llvmModule, table);
  });
}

namespace {
struct EmulateKernels : impl::EmulateKernelsBase<EmulateKernels> {
  using EmulateKernelsBase::EmulateKernelsBase;
  void getDependentDialects(DialectRegistry &registry) const override { insertObjectDialects(registry); }
  void runOnOperation() override {
    if (path.empty()) {
      getOperation().emitError("spmd-emulate-kernels needs the option path");
      return signalPassFailure();
    }
    std::string text;
    if (!table.empty()) {
      auto file = llvm::MemoryBuffer::getFile(table);
      if (!file) {
        getOperation().emitError("cannot read '") << table << "': " << file.getError().message();
        return signalPassFailure();
      }
      text = (*file)->getBuffer().str();
    }
    if (failed(emitEmulatedObject(getOperation(), cpu, path, checkedOnly, text)))
      signalPassFailure();
  }
};
} // namespace

} // namespace spmd::kernel
