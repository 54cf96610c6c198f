//===- TranslateOperation.cpp - What a plan.compute computes --------------===//

#include "TranslateOperation.h"
#include "TranslateKinds.h"
#include "dialects/Spmd/ElementType.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;

static FailureOr<runtime::DType> translateDType(plan::ComputeOp op, Type type) {
  if (std::optional<runtime::DType> dtype = getDType(type))
    return *dtype;
  return op.emitOpError("has dtype ") << type << ", which the runtime has not";
}

/// Operands are read and results written, in this order.
static runtime::KernelOperation launchOf(plan::ComputeOp op, FlatSymbolRefAttr kernel) {
  runtime::KernelOperation translated{kernel.getValue().str(), {}};
  translated.arguments.assign(op.getOperands().size(), runtime::Access::Read);
  translated.arguments.insert(translated.arguments.end(), op.getValues().size(), runtime::Access::Write);
  return translated;
}

static runtime::Operation translateAttention(plan::ComputeOp op, plan::AttentionOperationAttr attention,
                                             runtime::DType dtype) {
  return runtime::AttentionOperation{launchOf(op, attention.getKernel()), translateShape(attention.getShape(), dtype)};
}

static runtime::Operation translateGemm(plan::GemmOperationAttr gemm, runtime::DType dtype) {
  runtime::GemmSizes sizes;
  sizes.m = gemm.getM(), sizes.n = gemm.getN(), sizes.k = gemm.getK();
  sizes.lda = gemm.getLda(), sizes.ldb = gemm.getLdb(), sizes.ldc = gemm.getLdc();
  sizes.transA = gemm.getTransA(), sizes.transB = gemm.getTransB();
  sizes.batch = gemm.getBatch();
  sizes.strideA = gemm.getStrideA(), sizes.strideB = gemm.getStrideB(), sizes.strideC = gemm.getStrideC();
  if (plan::ActivationAttr activation = gemm.getActivation())
    sizes.activation = translateActivation(activation.getValue());
  if (plan::GemmOperandAttr operand = gemm.getBiasGradientOf())
    sizes.biasGradientOf = translateOperand(operand.getValue());
  runtime::GemmOperation translated(sizes, dtype);
  translated.hasBias = gemm.getBias();
  translated.hasResidual = gemm.getResidual();
  translated.hasPreActivation = gemm.getPreActivation();
  return translated;
}

static runtime::Operation translateCollective(plan::CollectiveOperationAttr collective, runtime::DType dtype) {
  runtime::CollectiveOperation translated;
  translated.kind = collective.getKind();
  translated.dtype = dtype;
  translated.counts = collective.getCounts().vec();
  for (plan::ReductionKind reduction : collective.getReductions())
    translated.kinds.push_back(translateKind(reduction));
  if (StringAttr unit = collective.getUnit())
    translated.unit = unit.str();
  for (StringAttr axis : collective.getAxes())
    translated.axes.push_back(axis.str());
  return translated;
}

static runtime::Operation translateCheck(plan::CheckIndexOperationAttr check, runtime::DType dtype) {
  return runtime::CheckIndexCommand{check.getCount(),    dtype, check.getLow(), check.getHigh(), check.getIgnoreIndex(),
                                    check.getUse().str()};
}

FailureOr<runtime::Operation> spmd::translateOperation(plan::ComputeOp op) {
  using Result = FailureOr<runtime::Operation>;
  auto withDType = [&](auto attribute, auto translate) -> Result {
    FailureOr<runtime::DType> dtype = translateDType(op, attribute.getDtype());
    if (failed(dtype))
      return failure();
    return translate(attribute, *dtype);
  };
  return llvm::TypeSwitch<Attribute, Result>(op.getWhat())
      .Case([&](plan::KernelOperationAttr kernel) -> Result { return {launchOf(op, kernel.getKernel())}; })
      .Case([&](plan::AttentionOperationAttr attention) -> Result {
        FailureOr<runtime::DType> dtype = translateDType(op, attention.getShape().getDtype());
        if (failed(dtype))
          return failure();
        return translateAttention(op, attention, *dtype);
      })
      .Case([&](plan::GemmOperationAttr gemm) { return withDType(gemm, translateGemm); })
      .Case([&](plan::CollectiveOperationAttr collective) { return withDType(collective, translateCollective); })
      .Case([&](plan::CheckIndexOperationAttr check) { return withDType(check, translateCheck); });
}
