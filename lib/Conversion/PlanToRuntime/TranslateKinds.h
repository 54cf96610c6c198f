//===- TranslateKinds.h - Kinds of the plan dialect in the runtime -*- C++ -*-===//

#ifndef SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEKINDS_H
#define SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEKINDS_H

#include "dialects/Plan/Plan.h"
#include "spmd/Runtime/Core/Command.h"

namespace spmd {

inline runtime::ReductionKind translateKind(plan::ReductionKind kind) {
  switch (kind) {
#define SPMD_REDUCTION_KIND(NAME, TEXT)                                                                                \
  case plan::ReductionKind::TEXT:                                                                                      \
    return runtime::ReductionKind::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown reduction");
}

inline runtime::Activation translateActivation(std::optional<plan::Activation> activation) {
  if (!activation)
    return runtime::Activation::None;
  switch (*activation) {
#define SPMD_ACTIVATION(NAME, TEXT)                                                                                    \
  case plan::Activation::TEXT:                                                                                         \
    return runtime::Activation::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown activation");
}

inline runtime::GemmOperand translateOperand(std::optional<plan::GemmOperand> operand) {
  if (!operand)
    return runtime::GemmOperand::None;
  switch (*operand) {
#define SPMD_GEMM_OPERAND(NAME, TEXT)                                                                                  \
  case plan::GemmOperand::TEXT:                                                                                        \
    return runtime::GemmOperand::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown operand");
}

inline runtime::AttentionMask translateMask(plan::AttentionMaskAttr mask) {
  if (!mask)
    return runtime::AttentionMask::None;
  switch (mask.getValue()) {
#define SPMD_ATTENTION_MASK(NAME, TEXT)                                                                                \
  case plan::AttentionMask::TEXT:                                                                                      \
    return runtime::AttentionMask::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown mask");
}

inline runtime::AttentionView translateView(plan::ViewAttr view) {
  if (!view)
    return {};
  return {view.getOffset(), view.getBatch(), view.getHead(), view.getRow()};
}

inline runtime::AttentionShape translateShape(plan::AttentionShapeAttr shape, runtime::DType dtype) {
  runtime::AttentionShape translated;
  translated.isBackward = shape.isBackward();
  translated.batch = shape.getBatch();
  translated.heads = shape.getHeads(), translated.kvHeads = shape.getKvHeads();
  translated.qLen = shape.getQLen(), translated.kvLen = shape.getKvLen();
  translated.headDim = shape.getHeadDim(), translated.vDim = shape.getVDim();
  translated.scale = shape.getScale().getValueAsDouble();
  translated.dtype = dtype;
  translated.mask = translateMask(shape.getMask());
  translated.windowLow = shape.getLow(), translated.windowHigh = shape.getHigh();
  translated.q = translateView(shape.getQ()), translated.k = translateView(shape.getK());
  translated.v = translateView(shape.getV()), translated.out = translateView(shape.getOut());
  translated.dout = translateView(shape.getDout()), translated.dq = translateView(shape.getDq());
  translated.dk = translateView(shape.getDk()), translated.dv = translateView(shape.getDv());
  return translated;
}

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_PLANTORUNTIME_TRANSLATEKINDS_H
