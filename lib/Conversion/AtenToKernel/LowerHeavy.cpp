//===- LowerHeavy.cpp - matrix products, attention, row gathers -----------===//

#include "Lowering.h"

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenView.h"
#include "spmd/Conversion/AtenToKernel/ScalarBodies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace spmd::fusion {

namespace {

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// A matrix as a GEMM reads it: row-major with leading dimension `ld`, or the transpose of such a matrix.
struct MatrixView {
  int64_t offset, ld, batchStride;
  bool transposed;
};

/// The matrix view of a ref of shape [batch, rows, columns]; nothing when its elements do not lie like that.
std::optional<MatrixView> getMatrixView(const Ref &ref) {
  if (ref.node->isVirtual() || !ref.layout.getCoordStrides().empty())
    return std::nullopt;
  auto strides = ref.layout.getStrides(ref.shape);
  if (!strides)
    return std::nullopt;
  int64_t batch = ref.shape[0], rows = ref.shape[1], columns = ref.shape[2];
  int64_t batchStride = batch == 1 ? 0 : (*strides)[0];
  int64_t rowStride = (*strides)[1], columnStride = (*strides)[2];
  if (batchStride < 0)
    return std::nullopt;
  if ((columnStride == 1 || columns == 1) && (rowStride >= columns || rows == 1))
    return MatrixView{ref.layout.getOffset(), rows == 1 ? columns : rowStride, batchStride, false};
  if ((rowStride == 1 || rows == 1) && (columnStride >= rows || columns == 1))
    return MatrixView{ref.layout.getOffset(), columns == 1 ? rows : columnStride, batchStride, true};
  return std::nullopt;
}

/// `ref` as [batch, rows, columns] with a matrix view, copied when it has none.
std::pair<Ref, MatrixView> asMatrix(GraphBuilder &g, Ref ref) {
  if (std::optional<MatrixView> view = getMatrixView(ref))
    return {ref, *view};
  ref = g.materialize(ref);
  return {ref, *getMatrixView(ref)};
}

/// True when everybody reads the transpose of `value`: then the product is computed in that layout, which makes the
/// gradient of a transposed weight come out as the parameter lies in its flat buffer.
bool isOnlyReadTransposed(Value value) {
  return value && !value.use_empty() && llvm::all_of(value.getUsers(), [](Operation *user) {
           auto permute = dyn_cast<aten::PermuteOp>(user);
           return permute && permute.getDims() == ArrayRef<int64_t>{1, 0};
         });
}

} // namespace

Ref asGemmOperand(GraphBuilder &g, Ref ref) { return asMatrix(g, std::move(ref)).first; }

Ref buildGemm(GraphBuilder &g, Ref a, Ref b) {
  int64_t batch = a.shape[0], m = a.shape[1], k = a.shape[2], n = b.shape[2];
  auto [left, leftView] = asMatrix(g, a);
  auto [right, rightView] = asMatrix(g, b);
  MatrixView l = leftView, r = rightView;
  Node *anchor =
      g.addAnchor({left, right},
                  [=](OpBuilder &builder, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
                    return {kernel::GemmOp::create(builder, loc, results[0], operands[0], operands[1], /*c=*/Value(), m,
                                                   n, k, batch, l.transposed, r.transposed, l.offset, l.ld,
                                                   l.batchStride, r.offset, r.ld, r.batchStride)};
                  });
  return g.addResult(anchor, {batch, m, n}, left.getElementType());
}

namespace {

LogicalResult checkFloat(Operation *op, Type type) {
  if (type.isF32() || type.isF64() || type.isBF16())
    return success();
  return op->emitOpError("has no kernel for element type ") << type << ", only for f32, f64 and bf16";
}

/// The product of two matrices, or two batches of them.
FailureOr<Ref> lowerProduct(GraphBuilder &g, Operation *op, Value lhs, Value rhs, Value result) {
  Ref a = g.get(lhs), b = g.get(rhs);
  if (failed(checkFloat(op, a.getElementType())))
    return failure();
  if (a.shape.size() == 3)
    return buildGemm(g, a, b);
  int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  if (isOnlyReadTransposed(result)) {
    Ref product = buildGemm(g, g.reshape(g.permute(b, {1, 0}), {1, n, k}), g.reshape(g.permute(a, {1, 0}), {1, k, m}));
    // Nobody reads the product but through its transpose.
    product.node->shape = {n, m};
    return g.permute(g.reshape(product, {n, m}), {1, 0});
  }
  Ref product = buildGemm(g, g.reshape(a, {1, m, k}), g.reshape(b, {1, k, n}));
  product.node->shape = {m, n};
  return g.reshape(product, {m, n});
}

Ref scale(GraphBuilder &g, Ref ref, Attribute factor) {
  double value = getScalarValue(factor);
  if (value == 1)
    return ref;
  Type type = ref.getElementType();
  return g.pointwise({ref}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, type);
    return s.mul(s.constant(value), args[0]);
  });
}

/// beta * self + alpha * product. The sum is a scalar function of its own: it fuses with what follows the product.
template <typename OpTy>
LogicalResult lowerAddProduct(GraphBuilder &g, OpTy op, Value lhs, Value rhs) {
  FailureOr<Ref> product = lowerProduct(g, op, lhs, rhs, Value());
  if (failed(product))
    return failure();
  Ref scaled = scale(g, *product, op.getAlpha());
  Type type = scaled.getElementType();
  if (getScalarValue(op.getBeta()) == 0) {
    g.set(op.getResult(), scaled);
    return success();
  }
  Ref bias = scale(g, g.cast(g.get(op.getSelf()), type), op.getBeta());
  g.set(op.getResult(), g.pointwise({scaled, bias}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    return ScalarBuilder(b, type).add(args[0], args[1]);
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

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
  ref = g.materialize(ref);
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

/// What forward and backward have in common.
template <typename OpTy>
struct AttentionProblem {
  kernel::AttentionSizesAttr sizes;
  double scale;
  bool causal;
  Heads q, k, v;
  std::optional<Heads> mask;

  AttentionProblem(GraphBuilder &g, OpTy op) {
    MLIRContext *context = op.getContext();
    Ref query = g.get(op.getQuery()), key = g.get(op.getKey()), value = g.get(op.getValue());
    int64_t batch = query.shape[0], heads = query.shape[1], qLen = query.shape[2], headDim = query.shape[3];
    int64_t kvLen = key.shape[2];
    sizes = kernel::AttentionSizesAttr::get(context, batch, heads, key.shape[1], qLen, kvLen, headDim, value.shape[3]);
    scale = op.getScale() ? op.getScale()->convertToDouble() : 1 / std::sqrt(static_cast<double>(headDim));
    causal = op.getIsCausal();
    q = asHeads(g, context, query);
    k = asHeads(g, context, key);
    v = asHeads(g, context, value);
    if (op.getAttnMask())
      mask = asHeads(g, context, g.expand(g.get(op.getAttnMask()), {batch, heads, qLen, kvLen}));
  }
};

template <typename OpTy>
LogicalResult checkAttention(OpTy op) {
  RankedTensorType type = getTensorType(op.getQuery());
  if (type.getRank() != 4)
    return op.emitOpError("has no kernel for a query of rank ") << type.getRank() << ", only for rank 4";
  if (!type.getElementType().isF32() && !type.getElementType().isBF16())
    return op.emitOpError("has no kernel for element type ") << type.getElementType() << ", only for f32 and bf16";
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
  if (p.mask)
    inputs.push_back(p.mask->ref);
  bool causal = p.causal, hasMask = p.mask.has_value();
  double scale = p.scale;
  kernel::ViewAttr qView = p.q.view, kView = p.k.view, vView = p.v.view;
  kernel::ViewAttr maskView = hasMask ? p.mask->view : kernel::ViewAttr(), outView = out.view;
  Node *anchor = g.addAnchor(
      inputs, [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
        auto attention = kernel::AttentionOp::create(
            b, loc, results[0], results[1], operands[0], operands[1], operands[2], hasMask ? operands[3] : Value(), s,
            causal, APFloat(scale), qView, kView, vView, maskView, outView, /*symbol=*/StringAttr());
        return {attention.getOut(), attention.getLse()};
      });
  Type type = getTensorType(op.getOut()).getElementType();
  g.set(op.getOut(), out.add(g, anchor, type));
  RankedTensorType lse = getTensorType(op.getLogsumexp());
  g.set(op.getLogsumexp(), g.addResult(anchor, lse.getShape(), lse.getElementType()));
  return success();
}

LogicalResult lowerAttentionBackward(GraphBuilder &g, aten::SdpaBackwardOp op) {
  if (failed(checkAttention(op)))
    return failure();
  if (op.getGradMask())
    return op.emitOpError("has no kernel for the gradient of the mask");
  MLIRContext *context = op.getContext();
  AttentionProblem<aten::SdpaBackwardOp> p(g, op);
  kernel::AttentionSizesAttr s = p.sizes;
  Heads dout = asHeads(g, context, g.get(op.getGradOut())), out = asHeads(g, context, g.get(op.getOut()));
  HeadResult dq(context, s.getBatch(), s.getHeads(), s.getQLen(), s.getHeadDim());
  HeadResult dk(context, s.getBatch(), s.getKvHeads(), s.getKvLen(), s.getHeadDim());
  HeadResult dv(context, s.getBatch(), s.getKvHeads(), s.getKvLen(), s.getVDim());
  SmallVector<Ref> inputs = {dout.ref, p.q.ref, p.k.ref, p.v.ref};
  if (p.mask)
    inputs.push_back(p.mask->ref);
  inputs.push_back(out.ref);
  inputs.push_back(g.contiguous(g.get(op.getLogsumexp())));
  bool causal = p.causal, hasMask = p.mask.has_value();
  double scale = p.scale;
  kernel::ViewAttr doutView = dout.view, qView = p.q.view, kView = p.k.view, vView = p.v.view, outView = out.view;
  kernel::ViewAttr maskView = hasMask ? p.mask->view : kernel::ViewAttr();
  Node *anchor = g.addAnchor(inputs, nullptr);
  anchor->gradientViews = {dq.view, dk.view, dv.view};
  anchor->emit = [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
    unsigned next = hasMask ? 5 : 4;
    ArrayRef<kernel::ViewAttr> views = anchor->gradientViews;
    auto attention = kernel::AttentionBackwardOp::create(
        b, loc, results, operands[0], operands[1], operands[2], operands[3], hasMask ? operands[4] : Value(),
        operands[next], operands[next + 1], s, causal, APFloat(scale), doutView, qView, kView, vView, maskView, outView,
        views[0], views[1], views[2], /*symbol=*/StringAttr());
    return llvm::to_vector_of<Value>(attention.getGrads());
  };
  Type type = getTensorType(op.getGradQuery()).getElementType();
  g.set(op.getGradQuery(), dq.add(g, anchor, type));
  g.set(op.getGradKey(), dk.add(g, anchor, type));
  g.set(op.getGradValue(), dv.add(g, anchor, type));
  return success();
}

//===----------------------------------------------------------------------===//
// Rows by number
//===----------------------------------------------------------------------===//

/// The row numbers 0, 1, 2, ... as positions make them; then an embedding is a slice.
bool isCounting(const Ref &ids) {
  return ids.node->kind == NodeKind::Iota && ids.node->start == 0 && ids.node->step == 1 && ids.layout.isIdentity();
}

LogicalResult lowerEmbedding(GraphBuilder &g, aten::EmbeddingOp op) {
  RankedTensorType type = getTensorType(op.getResult());
  Ref table = g.get(op.getWeight()), ids = g.get(op.getIndices());
  if (isCounting(ids) && ids.getNumElements() <= table.shape[0]) {
    g.set(op.getResult(), g.reshape(g.slice(table, 0, 0, 1, ids.getNumElements()), type.getShape()));
    return success();
  }
  Node *anchor =
      g.addAnchor({g.contiguous(table), g.contiguous(ids)},
                  [](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
                    return {kernel::GatherRowsOp::create(b, loc, results[0], operands[0], operands[1], /*batch=*/1,
                                                         /*rows=*/IntegerAttr(), /*symbol=*/StringAttr())};
                  });
  g.set(op.getResult(), g.addResult(anchor, type.getShape(), type.getElementType()));
  return success();
}

LogicalResult lowerEmbeddingBackward(GraphBuilder &g, aten::EmbeddingDenseBackwardOp op) {
  if (op.getScaleGradByFreq())
    return op.emitOpError("has no kernel for scale_grad_by_freq");
  RankedTensorType type = getTensorType(op.getResult());
  Ref grad = g.get(op.getGradOutput()), ids = g.get(op.getIndices());
  int64_t rows = op.getNumWeights(), padding = op.getPaddingIdx(), count = ids.getNumElements();
  bool isPadded = padding >= 0 && padding < count;
  if (isCounting(ids) && count <= rows && !isPadded) {
    Ref sums = g.reshape(grad, {count, type.getNumElements() / rows});
    g.set(op.getResult(), count == rows ? sums : g.embedRows(sums, std::nullopt, type.getShape(), 0, 0));
    return success();
  }
  Node *anchor =
      g.addAnchor({g.contiguous(grad), g.contiguous(ids)},
                  [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
                    return {kernel::ScatterRowsOp::create(b, loc, results[0], kernel::ScatterKind::Add, operands[0],
                                                          operands[1], /*into=*/Value(), /*batch=*/1, rows, padding,
                                                          /*symbol=*/StringAttr())};
                  });
  g.set(op.getResult(), g.addResult(anchor, type.getShape(), type.getElementType()));
  return success();
}

} // namespace

Lowered lowerHeavyOp(GraphBuilder &g, Operation *op) {
  auto bindProduct = [&](Value lhs, Value rhs, Value result) -> Lowered {
    FailureOr<Ref> product = lowerProduct(g, op, lhs, rhs, result);
    if (failed(product))
      return failure();
    g.set(result, *product);
    return success();
  };
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::MmOp mm) { return bindProduct(mm.getSelf(), mm.getMat2(), mm.getResult()); })
      .Case([&](aten::BmmOp bmm) { return bindProduct(bmm.getSelf(), bmm.getMat2(), bmm.getResult()); })
      .Case([&](aten::AddmmOp addmm) -> Lowered { return lowerAddProduct(g, addmm, addmm.getMat1(), addmm.getMat2()); })
      .Case([&](aten::BaddbmmOp addmm) -> Lowered {
        return lowerAddProduct(g, addmm, addmm.getBatch1(), addmm.getBatch2());
      })
      .Case([&](aten::SdpaOp sdpa) -> Lowered { return lowerAttention(g, sdpa); })
      .Case([&](aten::SdpaBackwardOp sdpa) -> Lowered { return lowerAttentionBackward(g, sdpa); })
      .Case([&](aten::EmbeddingOp embedding) -> Lowered { return lowerEmbedding(g, embedding); })
      .Case([&](aten::EmbeddingDenseBackwardOp embedding) -> Lowered { return lowerEmbeddingBackward(g, embedding); })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
