//===- ConvertToNVVM.cpp - gpu.func to the LLVM dialect -------------------===//

#include "ConvertToNVVM.h"
#include "../ExpandMath.h"
#include "../NarrowFloats.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace spmd::kernel {

void registerNVVMDependencies(DialectRegistry &registry) {
  registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

void loadNVVMDependencies(MLIRContext *context) {
  DialectRegistry registry;
  registerNVVMDependencies(registry);
  context->appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context->getOrLoadDialect(name);
}

/// Everything in `module` to LLVM and NVVM. Upstream's pass will not have llvm.intr.sqrt beside it: math becomes calls
/// of libdevice there.
static LogicalResult convertGpuOps(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(context, options);
  configureGpuToNVVMTypeConverter(converter);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  ConversionTarget target(*context);
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp, UnrealizedConversionCastOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

/// What a kernel is given starts at a multiple of 16 bytes, the widest access.
static void alignArguments(gpu::GPUModuleOp module) {
  Builder b(module.getContext());
  for (auto kernel : module.getOps<LLVM::LLVMFuncOp>())
    for (BlockArgument argument : kernel.getArguments())
      if (isa<LLVM::LLVMPointerType>(argument.getType()))
        kernel.setArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(16));
}

/// For the assembler, which divides the registers of an SM by it.
static void setResidentBlocks(gpu::GPUModuleOp module) {
  Builder b(module.getContext());
  for (auto kernel : module.getOps<LLVM::LLVMFuncOp>())
    if (auto blocks = kernel->getAttrOfType<IntegerAttr>("spmd.resident_blocks"))
      kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(blocks.getInt()));
}

/// Powers of two that may be approximate are one instruction, ex2.approx.ftz.
static void convertApproximations(ModuleOp module) {
  SmallVector<math::Exp2Op> ops;
  module.walk([&](math::Exp2Op op) {
    if (op.getType().isF32() && arith::bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      ops.push_back(op);
  });
  for (math::Exp2Op op : ops) {
    OpBuilder b(op);
    auto power = LLVM::CallIntrinsicOp::create(b, op.getLoc(), op.getType(),
                                               b.getStringAttr("llvm.nvvm.ex2.approx.ftz.f"), op->getOperands());
    op.getResult().replaceAllUsesWith(power.getResult(0));
    op.erase();
  }
}

/// Comparisons and selections that are the larger or smaller of two f32, not-a-number where one is: one instruction,
/// max.NaN or min.NaN. Only of which bits a not-a-number is, and which of two zeros a reduction gives, may differ.
static void convertLimits(ModuleOp module) {
  auto isLimit = [](Value value) {
    Attribute attribute;
    if (!matchPattern(value, m_Constant(&attribute)))
      return false;
    auto splat = dyn_cast<SplatElementsAttr>(attribute);
    auto number = splat ? splat.getSplatValue<FloatAttr>() : dyn_cast<FloatAttr>(attribute);
    return number && !number.getValue().isNaN() && !number.getValue().isZero();
  };
  module.walk([&](arith::SelectOp select) {
    Value a = select.getTrueValue(), b = select.getFalseValue();
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    if (!compare || !getElementTypeOrSelf(select.getType()).isF32())
      return;
    auto replace = [&](bool isMax, Value x, Value y) {
      OpBuilder builder(select);
      Value best = isMax ? Value(arith::MaximumFOp::create(builder, select.getLoc(), x, y))
                         : Value(arith::MinimumFOp::create(builder, select.getLoc(), x, y));
      select.replaceAllUsesWith(best);
      select.erase();
    };
    Value left = compare.getLhs(), right = compare.getRhs();
    // x < limit ? limit : x, and limit < x ? limit : x.
    if (compare.getPredicate() == arith::CmpFPredicate::OLT && isLimit(a) &&
        ((left == b && right == a) || (left == a && right == b)))
      return replace(/*isMax=*/left == b, b, a);
    // CodeBuilder::combine: x is NaN ? x : x better than y ? x : y.
    auto inner = b.getDefiningOp<arith::SelectOp>();
    auto better = inner ? inner.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
    if (compare.getPredicate() != arith::CmpFPredicate::UNO || left != a || right != a || !better ||
        better.getLhs() != a || better.getRhs() != inner.getFalseValue() || inner.getTrueValue() != a)
      return;
    if (better.getPredicate() == arith::CmpFPredicate::OGT || better.getPredicate() == arith::CmpFPredicate::OLT)
      replace(better.getPredicate() == arith::CmpFPredicate::OGT, a, better.getRhs());
  });
}

LogicalResult convertToNVVM(ModuleOp module) {
  loadNVVMDependencies(module.getContext());
  PassManager simplify(module.getContext());
  // Skeletons are full of repeated index arithmetic.
  simplify.addNestedPass<gpu::GPUModuleOp>(createCanonicalizerPass());
  simplify.addNestedPass<gpu::GPUModuleOp>(createCSEPass());
  if (failed(simplify.run(module)))
    return failure();
  // Here the roundings stay: they are instructions, and nothing after this merges two of them.
  widenNarrowFloats(module);
  convertApproximations(module);
  if (failed(expandMath(module)))
    return failure();
  convertLimits(module);
  PassManager lower(module.getContext());
  OpPassManager &nested = lower.nest<gpu::GPUModuleOp>();
  nested.addPass(createSCFToControlFlowPass());
  nested.addPass(createConvertMathToLLVMPass());
  // Vectors of more than one dim, transposes and shuffles to what the patterns below know.
  nested.addPass(createConvertVectorToLLVMPass());
  if (failed(lower.run(module)))
    return failure();
  for (auto kernels : module.getOps<gpu::GPUModuleOp>()) {
    if (failed(convertGpuOps(kernels)))
      return failure();
    alignArguments(kernels);
    setResidentBlocks(kernels);
  }
  PassManager clean(module.getContext());
  clean.addNestedPass<gpu::GPUModuleOp>(createReconcileUnrealizedCastsPass());
  return clean.run(module);
}

} // namespace spmd::kernel
