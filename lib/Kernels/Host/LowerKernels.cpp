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
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_LOWERKERNELS
#include "spmd/Kernels/Passes.h.inc"

LogicalResult lowerKernel(Operation *op, ModuleOp target, const Cpu &cpu) {
  auto kernelOp = cast<KernelOpInterface>(op);
  KernelBuilder b(target, kernelOp.getSymbolAttr().getValue(), op, cpu);
  // Emitters add what is moved again.
  b.addMovedBytes(kernelOp.getBytesMoved());
  LogicalResult result = llvm::TypeSwitch<Operation *, LogicalResult>(op)
                             .Case([&](ClusterOp cluster) { return emitCluster(b, cluster); })
                             .Case([&](SegmentedOp segmented) { return emitSegmented(b, segmented); })
                             .Case([&](AttentionOp attention) { return emitAttention(b, attention); })
                             .Case([&](AttentionBackwardOp backward) { return emitAttentionBackward(b, backward); })
                             .Case([&](GatherRowsOp gather) { return emitGatherRows(b, gather); })
                             .Case([&](ScatterRowsOp scatter) { return emitScatterRows(b, scatter); })
                             .Case([&](GroupedGemmOp gemm) { return emitGroupedGemm(b, gemm); })
                             .Case([&](GroupedOuterOp outer) { return emitGroupedOuter(b, outer); })
                             .Case([&](SortOp sort) { return emitSort(b, sort); })
                             .Case([&](CustomCallOp call) { return emitCustomCall(b, call); })
                             .Case([&](CopyOp copy) { return emitCopy(b, copy); })
                             .Default([](Operation *op) { return op->emitOpError("has no code generation for CPUs"); });
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
