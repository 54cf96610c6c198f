//===- AttentionShape.cpp - What a plan says of an attention --------------===//

#include "AttentionShape.h"
#include "dialects/Kernel/AttentionMask.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace spmd;

static plan::ViewAttr translateView(kernel::ViewAttr view) {
  return plan::ViewAttr::get(view.getContext(), view.getOffset(), view.getBatch(), view.getHead(), view.getRow());
}

/// What the mask says beyond its window; null if nothing. What it takes or gives makes it one.
template <typename OpT>
static plan::AttentionMaskAttr getMask(OpT attention, kernel::KeyWindow window) {
  if (window.isExact && attention.getMaskInputs().empty())
    return {};
  bool isAdded = attention.getMask().front().getTerminator()->getOperand(0).getType().isF32();
  return plan::AttentionMaskAttr::get(attention.getContext(),
                                      isAdded ? plan::AttentionMask::added : plan::AttentionMask::condition);
}

template <typename OpT>
static plan::AttentionShapeAttr makeShape(OpT attention, plan::ViewAttr dout, plan::ViewAttr dq, plan::ViewAttr dk,
                                          plan::ViewAttr dv) {
  kernel::AttentionSizesAttr sizes = attention.getSizes();
  kernel::KeyWindow window = kernel::getKeyWindow(attention.getMask(), sizes);
  return plan::AttentionShapeAttr::get(
      attention.getContext(), getElementTypeOrSelf(attention.getQ().getType()), sizes.getBatch(), sizes.getHeads(),
      sizes.getKvHeads(), sizes.getQLen(), sizes.getKvLen(), sizes.getHeadDim(), sizes.getVDim(),
      attention.getScaleAttr(), getMask(attention, window), window.low, window.high,
      translateView(attention.getQView()), translateView(attention.getKView()), translateView(attention.getVView()),
      translateView(attention.getOutView()), dout, dq, dk, dv);
}

plan::AttentionShapeAttr spmd::getAttentionShape(kernel::AttentionOp attention) {
  return makeShape(attention, {}, {}, {}, {});
}

plan::AttentionShapeAttr spmd::getAttentionShape(kernel::AttentionBackwardOp attention) {
  return makeShape(attention, translateView(attention.getDoutView()), translateView(attention.getDqView()),
                   translateView(attention.getDkView()), translateView(attention.getDvView()));
}
