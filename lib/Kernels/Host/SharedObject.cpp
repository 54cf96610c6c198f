//===- SharedObject.cpp - kernels as a shared object ----------------------===//

#include "spmd/Kernels/SharedObject.h"
#include "../CollectKernels.h"
#include "../Externals.h"
#include "LowerKernels.h"
#include "ObjectParts.h"
#include "spmd/Kernels/KernelTable.h"
#include "spmd/Kernels/Passes.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_EMITKERNELS
#include "spmd/Kernels/Passes.h.inc"

LogicalResult emitSharedObject(ModuleOp module, StringRef cpu, StringRef path, std::vector<HostKernel> *described) {
  ObjectParts parts;
  if (failed(beginParts(parts, module, cpu)))
    return failure();
  auto kernels = collectKernels(module);
  if (failed(kernels))
    return failure();
  for (auto [i, op] : llvm::enumerate(*kernels)) {
    ModuleOp functions = *parts[i % parts.size()].functions;
    if (failed(lowerKernel(op, functions, getCpu(cpu))))
      return failure();
    if (described) {
      StringAttr symbol = cast<KernelOpInterface>(op).getSymbolAttr();
      auto moved = functions.lookupSymbol(symbol)->getAttrOfType<IntegerAttr>("spmd.moved_bytes");
      described->push_back({symbol.str(), moved.getInt()});
    }
  }
  FailureOr<std::string> table = getKernelTable(module);
  if (failed(table))
    return failure();
  return writeParts(parts, module, cpu, path, {}, [&](unsigned part, llvm::Module &llvmModule) {
    if (part != 0)
      return;
    addKernelTable(llvmModule, *table);
    addExternals(llvmModule, module);
  });
}

namespace {
struct EmitKernels : impl::EmitKernelsBase<EmitKernels> {
  using EmitKernelsBase::EmitKernelsBase;
  void getDependentDialects(DialectRegistry &registry) const override { insertObjectDialects(registry); }
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
