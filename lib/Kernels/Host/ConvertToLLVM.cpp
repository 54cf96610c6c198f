//===- ConvertToLLVM.cpp - loops of kernels to the LLVM dialect -----------===//

#include "ConvertToLLVM.h"
#include "../ExpandMath.h"
#include "../NarrowFloats.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace spmd::kernel {

LogicalResult convertToLLVM(ModuleOp module) {
  widenNarrowFloats(module);
  expandNarrowFloats(module);
  PassManager pm(module.getContext());
  // Loops of kernels are full of repeated index arithmetic.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (failed(pm.run(module)) || failed(expandMath(module)))
    return failure();
  PassManager lower(module.getContext());
  lower.addPass(createSCFToControlFlowPass());
  lower.addPass(createConvertMathToLLVMPass());
  lower.addPass(createConvertVectorToLLVMPass());
  lower.addPass(createArithToLLVMConversionPass());
  lower.addPass(createConvertControlFlowToLLVMPass());
  lower.addPass(createUBToLLVMConversionPass());
  lower.addPass(createReconcileUnrealizedCastsPass());
  return lower.run(module);
}

} // namespace spmd::kernel
