//===- LowerHeavy.cpp - matrix products, row gathers ----------------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenLaunch.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
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

/// Whether more elements of a column lie side by side than of a row.
bool isStoredTransposed(const Ref &ref) {
  auto dims = ref.layout.splitByShape(ref.shape);
  if (!dims)
    return false;
  auto getRun = [](ArrayRef<Mode> modes) { return modes.empty() || modes.back().stride != 1 ? 1 : modes.back().size; };
  return getRun((*dims)[1]) > getRun((*dims)[2]);
}

/// `ref` as [batch, rows, columns] with a matrix view, copied when it has none: as its elements lie, so that a matrix
/// and its transpose are one copy.
std::pair<Ref, MatrixView> asMatrix(GraphBuilder &g, Ref ref) {
  if (std::optional<MatrixView> view = getMatrixView(ref))
    return {ref, *view};
  if (isStoredTransposed(ref))
    ref = g.permute(g.copyOperand(g.permute(ref, {0, 2, 1})), {0, 2, 1});
  else
    ref = g.copyOperand(ref);
  return {ref, *getMatrixView(ref)};
}

/// True when everybody reads the transpose of `value`: then the product is computed in that layout, which makes the
/// gradient of a transposed weight come out as the parameter lies in its flat buffer.
bool isOnlyReadTransposed(Value value, ArrayRef<int64_t> order = {1, 0}) {
  return value && !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
           auto permute = dyn_cast<aten::PermuteOp>(user);
           return permute && permute.getDims() == order;
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
                    return {kernel::GemmOp::create(builder, loc, results[0], /*pre_activation=*/Type(),
                                                   /*bias_gradient=*/Type(), operands[0], operands[1], /*c=*/Value(),
                                                   /*bias=*/Value(), /*saved_pre_activation=*/Value(), m, n, k, batch,
                                                   l.transposed, r.transposed, l.offset, l.ld, l.batchStride, r.offset,
                                                   r.ld, r.batchStride, kernel::ActivationAttr(),
                                                   kernel::GemmOperandAttr(), /*ldc=*/IntegerAttr())
                                .getResult()};
                  });
  return g.addResult(anchor, {batch, m, n}, left.getElementType());
}

namespace {

LogicalResult checkFloat(Operation *op, Type type) {
  if (isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(type))
    return success();
  return op->emitOpError("has no kernel for element type ") << type << ", only for f32, f64, bf16 and f16";
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

/// The factor is not rounded to a narrow type, the result is.
Ref scale(GraphBuilder &g, Ref ref, Attribute factor) {
  double value = getScalarValue(factor);
  if (value == 1)
    return ref;
  Type type = ref.getElementType(), wide = getComputeType(type);
  return g.pointwise({ref}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, wide);
    return castScalar(b, s.mul(s.constant(value), castScalar(b, args[0], wide)), type);
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
// Products of groups of rows
//===----------------------------------------------------------------------===//

LogicalResult lowerGroupedMm(GraphBuilder &g, aten::GroupedMmOp op) {
  Ref rows = g.get(op.getSelf()), groups = g.get(op.getGroups());
  if (failed(checkFloat(op, rows.getElementType())))
    return failure();
  auto [matrices, view] = asMatrix(g, g.get(op.getMat2()));
  MatrixView b = view;
  int64_t m = rows.shape[0], k = rows.shape[1], n = matrices.shape[2], count = matrices.shape[0];
  Node *anchor = g.addAnchor(
      {g.contiguous(rows), matrices, g.contiguous(groups)},
      [=](OpBuilder &builder, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
        return {kernel::GroupedGemmOp::create(builder, loc, results[0], operands[0], operands[1], operands[2], m, n, k,
                                              count, b.transposed, b.offset, b.ld, b.batchStride,
                                              /*symbol=*/StringAttr())};
      });
  g.set(op.getResult(), g.addResult(anchor, {m, n}, rows.getElementType()));
  return success();
}

LogicalResult lowerGroupedOuter(GraphBuilder &g, aten::GroupedOuterOp op) {
  Ref left = g.get(op.getSelf()), right = g.get(op.getOther()), groups = g.get(op.getGroups());
  if (failed(checkFloat(op, left.getElementType())))
    return failure();
  // As everybody reads it, which is how a gradient lies in its flat buffer.
  bool isTransposed = isOnlyReadTransposed(op.getResult(), {0, 2, 1});
  if (isTransposed)
    std::swap(left, right);
  int64_t rows = left.shape[0], m = left.shape[1], n = right.shape[1], count = op.getNumGroups();
  Node *anchor =
      g.addAnchor({g.contiguous(left), g.contiguous(right), g.contiguous(groups)},
                  [=](OpBuilder &builder, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
                    return {kernel::GroupedOuterOp::create(builder, loc, results[0], operands[0], operands[1],
                                                           operands[2], rows, m, n, count, /*symbol=*/StringAttr())};
                  });
  Ref sums = g.addResult(anchor, {count, m, n}, left.getElementType());
  g.set(op.getResult(), isTransposed ? g.permute(sums, {0, 2, 1}) : sums);
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
  RankedTensorType type = typeOf(op.getResult());
  Ref table = g.get(op.getWeight()), ids = g.get(op.getIndices());
  if (isCounting(ids) && ids.getNumElements() <= table.shape[0]) {
    g.set(op.getResult(), g.reshape(g.slice(table, 0, 0, 1, ids.getNumElements()), type.getShape()));
    return success();
  }
  Node *anchor =
      g.addAnchor({g.contiguous(table), g.contiguous(ids)},
                  [rows = table.shape[0]](OpBuilder &b, Location loc, ValueRange operands,
                                          TypeRange results) -> SmallVector<Value> {
                    // The table may be a view, and the operand a tensor of another shape.
                    auto stored = typeOf(operands[0]);
                    bool isFirstDim = stored.getRank() > 0 && stored.getDimSize(0) == rows;
                    return {kernel::GatherRowsOp::create(b, loc, results[0], operands[0], operands[1], /*batch=*/1,
                                                         isFirstDim ? IntegerAttr() : b.getI64IntegerAttr(rows),
                                                         /*symbol=*/StringAttr())};
                  });
  g.set(op.getResult(), g.addResult(anchor, type.getShape(), type.getElementType()));
  return success();
}

LogicalResult lowerEmbeddingBackward(GraphBuilder &g, aten::EmbeddingDenseBackwardOp op) {
  if (op.getScaleGradByFreq())
    return op.emitOpError("has no kernel for scale_grad_by_freq");
  RankedTensorType type = typeOf(op.getResult());
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

LogicalResult lowerCustomCall(GraphBuilder &g, aten::CustomCallOp op) {
  SmallVector<Ref> inputs;
  SmallVector<Attribute> shapes;
  Builder builder(op.getContext());
  for (Value input : op.getInputs()) {
    inputs.push_back(g.contiguous(g.get(input)));
    shapes.push_back(builder.getDenseI64ArrayAttr(typeOf(input).getShape()));
  }
  StringAttr library = op.getLibraryAttr(), hash = op.getHashAttr(), function = op.getSymbolAttr();
  ArrayAttr arguments = op.getArgumentsAttr(), cubins = op.getCubinsAttr(), shapesAttr = builder.getArrayAttr(shapes);
  kernel::LaunchAttr launch;
  if (op.getLaunch()) { // of what this rank has of its tensors
    std::string error;
    std::optional<aten::LaunchSpec> spec = aten::readLaunch(op, error);
    if (!spec)
      return op.emitOpError() << "cannot be launched as \"" << *op.getLaunch() << "\": " << error;
    launch = kernel::LaunchAttr::get(op.getContext(), spec->function, spec->grid, spec->block, spec->sharedBytes,
                                     builder.getArrayAttr(spec->parameters));
  }
  Node *anchor = g.addAnchor(
      inputs, [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
        auto call = kernel::CustomCallOp::create(b, loc, results, operands, library, hash, function, arguments,
                                                 shapesAttr, launch, cubins, /*symbol=*/StringAttr());
        return SmallVector<Value>(call.getResults());
      });
  for (Value result : op.getOuts()) {
    RankedTensorType type = typeOf(result);
    g.set(result, g.addResult(anchor, type.getShape(), type.getElementType()));
  }
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
      .Case([&](aten::GroupedMmOp product) -> Lowered { return lowerGroupedMm(g, product); })
      .Case([&](aten::GroupedOuterOp product) -> Lowered { return lowerGroupedOuter(g, product); })
      .Case([&](aten::CustomCallOp call) -> Lowered { return lowerCustomCall(g, call); })
      .Case([&](aten::EmbeddingOp embedding) -> Lowered { return lowerEmbedding(g, embedding); })
      .Case([&](aten::EmbeddingDenseBackwardOp embedding) -> Lowered { return lowerEmbeddingBackward(g, embedding); })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
