//===- LowerKernels.cpp - kernel ops to functions of loops ----------------===//

#include "LowerKernels.h"
#include "../CollectKernels.h"
#include "Emitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "spmd/Kernels/Passes.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_LOWERKERNELS
#include "spmd/Kernels/Passes.h.inc"

static const HostEmitters &getHostEmitters() {
  static const HostEmitters emitters = [] {
    HostEmitters all;
#define SPMD_HOST_EMITTERS(FAMILY) add##FAMILY##Emitters(all);
#include "lib/Kernels/HostEmitters.inc"
    return all;
  }();
  return emitters;
}

LogicalResult lowerKernel(Operation *op, ModuleOp target, const Cpu &cpu) {
  auto kernelOp = cast<KernelOpInterface>(op);
  KernelBuilder b(target, kernelOp.getSymbolAttr().getValue(), op, cpu);
  // Emitters add what is moved again.
  b.addMovedBytes(kernelOp.getBytesMoved());
  LogicalResult result = getHostEmitters().emit(b, op, "CPUs");
  b.finish();
  return result;
}

namespace {
struct LowerKernels : impl::LowerKernelsBase<LowerKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = collectKernels(module);
    if (failed(kernels))
      return signalPassFailure();
    OwningOpRef<ModuleOp> lowered = ModuleOp::create(module.getLoc());
    for (Operation *op : *kernels)
      if (failed(lowerKernel(op, *lowered, getCpu("x86-64-v4"))))
        return signalPassFailure();
    module.getBodyRegion().takeBody(lowered->getBodyRegion());
  }
};
} // namespace

} // namespace spmd::kernel
