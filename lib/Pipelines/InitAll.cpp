//===- InitAll.cpp - Registration of everything the tools know ------------===//

#include "spmd/InitAll.h"

#include "dialects/Aten/AtenDialect.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/Passes.h"
#include "spmd/Conversion/AtenToKernel/Passes.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Import/Passes.h"
#include "spmd/Kernels/Passes.h"
#include "spmd/Pipelines/Pipeline.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/Movement/Passes.h"
#include "spmd/Transforms/Optimizer/Passes.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/Recompute/Passes.h"
#include "spmd/Transforms/Units/Passes.h"

void spmd::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<aten::AtenDialect, kernel::KernelDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, plan::PlanDialect, SpmdDialect>();
  // What spmd-lower-kernels and spmd-lower-gpu-kernels write, so that the tools read it again.
  registry.insert<mlir::cf::ControlFlowDialect, mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
}

std::string spmd::loadDialectPlugins(const std::vector<std::string> &paths, mlir::DialectRegistry &registry) {
  for (const std::string &path : paths) {
    llvm::Expected<mlir::DialectPlugin> plugin = mlir::DialectPlugin::load(path);
    if (!plugin)
      return llvm::toString(plugin.takeError());
    plugin->registerDialectRegistryCallbacks(registry);
  }
  return "";
}

std::string spmd::loadPassPlugins(const std::vector<std::string> &paths) {
  for (const std::string &path : paths) {
    llvm::Expected<mlir::PassPlugin> plugin = mlir::PassPlugin::load(path);
    if (!plugin)
      return llvm::toString(plugin.takeError());
    plugin->registerPassRegistryCallbacks();
  }
  return "";
}

void spmd::registerAllPasses() {
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  spmd::registerAtenToKernelPasses();
  spmd::registerImportPasses();
  spmd::registerKernelToPlanPasses();
  spmd::registerPipelines();
  spmd::kernel::registerKernelsPasses();
  spmd::registerMovementPasses();
  spmd::registerRecomputePasses();
  spmd::registerOptimizerPasses();
  spmd::registerUnitsPasses();
  spmd::registerPartitionPasses();
  spmd::registerCollectivesPasses();
}
