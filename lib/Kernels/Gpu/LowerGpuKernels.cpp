//===- LowerGpuKernels.cpp - spmd-lower-gpu-kernels -----------------------===//

#include "LowerGpuKernels.h"
#include "../CollectKernels.h"
#include "GpuEmitters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "spmd/Kernels/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace spmd::kernel {

#define GEN_PASS_DEF_LOWERGPUKERNELS
#include "spmd/Kernels/Passes.h.inc"

static const GpuEmitters &getGpuEmitters() {
  static const GpuEmitters emitters = [] {
    GpuEmitters all;
#define SPMD_GPU_EMITTERS(FAMILY) addGpu##FAMILY##Emitters(all);
#include "lib/Kernels/GpuEmitters.inc"
    return all;
  }();
  return emitters;
}

LogicalResult lowerGpuKernel(Operation *op, gpu::GPUModuleOp target, const Device &device) {
  GpuBuilder b(target, cast<KernelOpInterface>(op).getSymbolAttr().getValue(), op);
  return getGpuEmitters().emit(b, op, "GPUs", device);
}

FailureOr<OwningOpRef<ModuleOp>> lowerGpuKernels(ModuleOp module, const Device &device) {
  auto kernels = collectKernels(module);
  if (failed(kernels))
    return failure();
  OwningOpRef<ModuleOp> lowered = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(lowered->getBody());
  auto target = gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
  for (Operation *op : *kernels)
    if (!isa<CustomCallOp>(op) && failed(lowerGpuKernel(op, target, device)))
      return failure();
  return lowered;
}

namespace {
struct LowerGpuKernels : impl::LowerGpuKernelsBase<LowerGpuKernels> {
  using LowerGpuKernelsBase::LowerGpuKernelsBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Device *device = findDevice(chip);
    if (!device) {
      auto chips = llvm::map_range(getDevices(), [](const Device &known) { return StringRef(known.chip); });
      module.emitError("spmd-lower-gpu-kernels: unknown chip \"")
          << chip << "\"; known are " << llvm::join(chips, ", ");
      return signalPassFailure();
    }
    Device part = *device;
    if (failed(limit(part.sms, sms, "sms")) || failed(limit(part.sharedBytesPerBlock, sharedBytes, "shared-bytes")) ||
        failed(limit(part.registersPerSM, registers, "registers")))
      return signalPassFailure();
    auto lowered = lowerGpuKernels(module, part);
    if (failed(lowered))
      return signalPassFailure();
    module.getBodyRegion().takeBody((*lowered)->getBodyRegion());
  }

  /// Sets what the device has to `limit`, where one is given.
  LogicalResult limit(int64_t &has, int64_t limit, StringRef option) {
    if (limit < 0 || limit > has)
      return getOperation().emitError("option ")
             << option << "=" << limit << " is not between 1 and the " << has << " of " << chip;
    if (limit)
      has = limit;
    return success();
  }
};
} // namespace

} // namespace spmd::kernel
