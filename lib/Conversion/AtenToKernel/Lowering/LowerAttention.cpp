//===- LowerAttention.cpp - attention, forward and backward ---------------===//

#include "../Fusion/ScalarFunction.h"
#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenHeavy.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;

namespace spmd::fusion {

namespace {

/// [batch, heads, rows, columns] with contiguous columns.
std::optional<kernel::ViewAttr> getHeadView(MLIRContext *context, const Ref &ref) {
  if (ref.node->isVirtual() || !ref.layout.getCoordStrides().empty() || ref.layout.getOffset() < 0)
    return std::nullopt;
  auto strides = ref.layout.getStrides(ref.shape);
  if (!strides || ((*strides)[3] != 1 && ref.shape[3] != 1))
    return std::nullopt;
  if (llvm::any_of(*strides, [](int64_t stride) { return stride < 0; }))
    return std::nullopt;
  return kernel::ViewAttr::get(context, ref.layout.getOffset(), (*strides)[0], (*strides)[1], (*strides)[2]);
}

/// One operand of an attention: a base tensor and where its heads lie in it.
struct Heads {
  Ref ref;
  kernel::ViewAttr view;
};

Heads asHeads(GraphBuilder &g, MLIRContext *context, Ref ref) {
  if (std::optional<kernel::ViewAttr> view = getHeadView(context, ref))
    return {ref, *view};
  ref = g.copyOperand(ref);
  return {ref, *getHeadView(context, ref)};
}

/// Attention results are stored [batch, rows, heads, columns]: the projection after it wants heads side by side.
struct HeadResult {
  SmallVector<int64_t> storedShape;
  kernel::ViewAttr view;

  HeadResult(MLIRContext *context, int64_t batch, int64_t heads, int64_t rows, int64_t columns)
      : storedShape({batch, rows, heads, columns}),
        view(kernel::ViewAttr::get(context, 0, rows * heads * columns, columns, heads * columns)) {}

  Ref add(GraphBuilder &g, Node *anchor, Type type) const {
    return g.permute(g.addResult(anchor, storedShape, type), {0, 2, 1, 3});
  }
};

/// The scores that may be seen, as a mask: i1 or f32 of shape [batch, heads, queries, keys].
std::optional<Ref> getMask(GraphBuilder &g, Value attnMask, bool isCausal, ArrayRef<int64_t> shape) {
  std::optional<Ref> mask;
  Type i1 = IntegerType::get(g.getContext(), 1);
  if (attnMask) {
    mask = g.get(attnMask);
    if (!mask->getElementType().isInteger(1))
      mask = g.cast(*mask, Float32Type::get(g.getContext()));
  }
  if (isCausal) {
    Type i64 = IntegerType::get(g.getContext(), 64);
    Ref query = g.reshape(g.iota(shape[2], i64), {shape[2], 1}), key = g.iota(shape[3], i64);
    Ref sees = g.pointwise({key, query}, i1, [i64](ImplicitLocOpBuilder &b, ValueRange args) {
      return ScalarBuilder(b, i64).compare("le", args[0], args[1]);
    });
    if (!mask) {
      mask = sees;
    } else {
      Type type = mask->getElementType();
      double never = type.isInteger(1) ? 0 : -std::numeric_limits<double>::infinity();
      mask = g.pointwise({sees, *mask}, type, [type, never](ImplicitLocOpBuilder &b, ValueRange args) {
        ScalarBuilder s(b, type);
        return s.select(args[0], args[1], s.constant(never));
      });
    }
  }
  if (mask)
    mask = g.expand(*mask, shape);
  return mask;
}

/// What forward and backward have in common.
template <typename OpTy>
struct AttentionProblem {
  kernel::AttentionSizesAttr sizes;
  APFloat scale;
  Heads q, k, v;
  std::shared_ptr<const ScalarFunction> mask;

  AttentionProblem(GraphBuilder &g, OpTy op)
      : scale(op.getScale() ? op.getScale()->convertToDouble()
                            : 1 / std::sqrt(static_cast<double>(typeOf(op.getQuery()).getDimSize(3)))) {
    MLIRContext *context = op.getContext();
    Ref query = g.get(op.getQuery()), key = g.get(op.getKey()), value = g.get(op.getValue());
    int64_t batch = query.shape[0], heads = query.shape[1], qLen = query.shape[2], headDim = query.shape[3];
    int64_t kvLen = key.shape[2];
    sizes = kernel::AttentionSizesAttr::get(context, batch, heads, key.shape[1], qLen, kvLen, headDim, value.shape[3]);
    q = asHeads(g, context, query);
    k = asHeads(g, context, key);
    v = asHeads(g, context, value);
    int64_t shape[] = {batch, heads, qLen, kvLen};
    if (std::optional<Ref> ref = getMask(g, op.getAttnMask(), op.getIsCausal(), shape)) {
      mask = ScalarFunction::get(*ref, shape);
      if (!mask)
        mask = ScalarFunction::get(g.materialize(*ref), shape);
    }
  }

  void appendMaskInputs(SmallVector<Ref> &inputs) const {
    if (mask)
      llvm::append_range(inputs, mask->getInputs());
  }
  unsigned getNumMaskInputs() const { return mask ? mask->getInputs().size() : 0; }
  ArrayAttr getMaskMaps(OpBuilder &b) const {
    return b.getAffineMapArrayAttr(mask ? mask->getMaps(b.getContext()) : SmallVector<AffineMap>());
  }
  void emitMask(Region &region, Location loc) const {
    if (mask)
      mask->emit(region, loc);
  }
};

template <typename OpTy>
LogicalResult checkAttention(OpTy op) {
  RankedTensorType type = typeOf(op.getQuery());
  if (type.getRank() != 4)
    return op.emitOpError("has no kernel for a query of rank ") << type.getRank() << ", only for rank 4";
  if (!isa<Float32Type, Float16Type, BFloat16Type>(type.getElementType()))
    return op.emitOpError("has no kernel for element type ") << type.getElementType() << ", only for f32, bf16 and f16";
  if (op.getDropoutP().convertToDouble() != 0)
    return op.emitOpError("has no kernel for dropout ") << op.getDropoutP().convertToDouble();
  return success();
}

LogicalResult lowerAttention(GraphBuilder &g, aten::SdpaOp op) {
  if (failed(checkAttention(op)))
    return failure();
  AttentionProblem<aten::SdpaOp> p(g, op);
  kernel::AttentionSizesAttr s = p.sizes;
  HeadResult out(op.getContext(), s.getBatch(), s.getHeads(), s.getQLen(), s.getVDim());
  SmallVector<Ref> inputs = {p.q.ref, p.k.ref, p.v.ref};
  p.appendMaskInputs(inputs);
  kernel::ViewAttr outView = out.view;
  Node *anchor = g.addAnchor(
      inputs, [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
        auto attention = kernel::AttentionOp::create(b, loc, results[0], results[1], operands[0], operands[1],
                                                     operands[2], operands.drop_front(3), p.sizes, p.scale, p.q.view,
                                                     p.k.view, p.v.view, p.getMaskMaps(b), outView,
                                                     /*symbol=*/StringAttr());
        p.emitMask(attention.getMask(), loc);
        return {attention.getOut(), attention.getLse()};
      });
  Type type = typeOf(op.getOut()).getElementType();
  g.set(op.getOut(), out.add(g, anchor, type));
  RankedTensorType lse = typeOf(op.getLogsumexp());
  g.set(op.getLogsumexp(), g.addResult(anchor, lse.getShape(), lse.getElementType()));
  return success();
}

/// `ref` summed to `shape`, which broadcasts to its own.
Ref sumTo(GraphBuilder &g, Ref ref, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> padded(ref.shape.size() - shape.size(), 1), dims;
  llvm::append_range(padded, shape);
  for (auto [dim, size] : llvm::enumerate(padded))
    if (size == 1 && ref.shape[dim] != 1)
      dims.push_back(dim);
  if (!dims.empty())
    ref = g.reduce(kernel::ReduceKind::Add, ref, dims, /*keepDims=*/true);
  return g.reshape(ref, shape);
}

LogicalResult lowerAttentionBackward(GraphBuilder &g, aten::SdpaBackwardOp op) {
  if (failed(checkAttention(op)))
    return failure();
  MLIRContext *context = op.getContext();
  AttentionProblem<aten::SdpaBackwardOp> p(g, op);
  kernel::AttentionSizesAttr s = p.sizes;
  Heads dout = asHeads(g, context, g.get(op.getGradOut())), out = asHeads(g, context, g.get(op.getOut()));
  HeadResult dq(context, s.getBatch(), s.getHeads(), s.getQLen(), s.getHeadDim());
  HeadResult dk(context, s.getBatch(), s.getKvHeads(), s.getKvLen(), s.getHeadDim());
  HeadResult dv(context, s.getBatch(), s.getKvHeads(), s.getKvLen(), s.getVDim());
  SmallVector<Ref> inputs = {dout.ref, p.q.ref, p.k.ref, p.v.ref};
  p.appendMaskInputs(inputs);
  inputs.push_back(out.ref);
  inputs.push_back(g.contiguous(g.get(op.getLogsumexp())));
  bool hasMaskGrad = op.getGradMask() != nullptr;
  kernel::ViewAttr doutView = dout.view, outView = out.view;
  Node *anchor = g.addAnchor(inputs, nullptr);
  anchor->gradientViews = {dq.view, dk.view, dv.view};
  anchor->emit = [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
    unsigned maskInputs = p.getNumMaskInputs();
    ArrayRef<kernel::ViewAttr> views = anchor->gradientViews;
    auto attention = kernel::AttentionBackwardOp::create(
        b, loc, hasMaskGrad ? results.drop_back() : results, hasMaskGrad ? results.back() : Type(), operands[0],
        operands[1], operands[2], operands[3], operands.slice(4, maskInputs), operands[4 + maskInputs],
        operands[5 + maskInputs], p.sizes, p.scale, doutView, p.q.view, p.k.view, p.v.view, p.getMaskMaps(b), outView,
        views[0], views[1], views[2], /*symbol=*/StringAttr());
    p.emitMask(attention.getMask(), loc);
    return llvm::to_vector_of<Value>(attention->getResults());
  };
  Type type = typeOf(op.getGradQuery()).getElementType();
  g.set(op.getGradQuery(), dq.add(g, anchor, type));
  g.set(op.getGradKey(), dk.add(g, anchor, type));
  g.set(op.getGradValue(), dv.add(g, anchor, type));
  if (hasMaskGrad) {
    // The kernel sums over batch and heads, the rest is a sum of its own.
    RankedTensorType maskType = typeOf(op.getGradMask());
    auto sizeAt = [&](int64_t dim) {
      return dim < maskType.getRank() ? maskType.getDimSize(maskType.getRank() - 1 - dim) : 1;
    };
    Ref grad = g.addResult(anchor, {sizeAt(3), sizeAt(2), s.getQLen(), s.getKvLen()}, Float32Type::get(context));
    grad.node->shapeIsFixed = true; // it says what the kernel sums over
    g.set(op.getGradMask(), g.cast(sumTo(g, grad, maskType.getShape()), maskType.getElementType()));
  }
  return success();
}

} // namespace

Lowered lowerAttentionOp(GraphBuilder &g, Operation *op) {
  if (auto forward = dyn_cast<aten::SdpaOp>(op))
    return lowerAttention(g, forward);
  if (auto backward = dyn_cast<aten::SdpaBackwardOp>(op))
    return lowerAttentionBackward(g, backward);
  return std::nullopt;
}

} // namespace spmd::fusion
