//===- LowerViews.cpp - views, concatenations, constants ------------------===//
//
// A view becomes a Layout (Graph/Layout.h) of what it views, and no node: what reads the view reads the tensor at other
// elements.
//
//     %p = aten.permute %x [1, 0]                    // 2x6 -> 6x2: element i of %p is i / 2 + i % 2 * 6 of %x
//     %s = aten.slice.Tensor %p dim 0 from 1 step 2  // 3x2: i / 2 * 2 + i % 2 * 6 + 1
//     %n = aten.neg %s
// becomes
//     %n = kernel.cluster dims [3, 2] ins(%a = %x at (d0, d1) -> (d0 * 2 + d1 * 6 + 1)) { yield arith.negf %a }
//
// What is written into a slice is a select on the row's number between two reads, one of them at shifted elements
// (`embedRows`). A concatenation is a view where its parts lie so already, else a kernel.copy of pieces.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::fusion {

SmallVector<int64_t> allDims(int64_t rank) { return llvm::to_vector(llvm::seq<int64_t>(0, rank)); }

namespace {

int64_t normalizeDim(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

/// First row of a slice, clamped as PyTorch does.
int64_t normalizeStart(int64_t start, int64_t size) {
  if (start < 0)
    start += size;
  return std::clamp<int64_t>(start, 0, size);
}

/// `source` with `step - 1` rows of zeros after each row of `dim`, `rows` of them.
Ref spreadRows(GraphBuilder &g, Ref source, int64_t dim, int64_t step, int64_t rows) {
  SmallVector<int64_t> shape(source.shape);
  int64_t count = shape[dim];
  shape.insert(shape.begin() + dim + 1, 1);
  source = g.reshape(source, shape);
  shape[dim + 1] = step;
  source = g.embedRows(source, std::nullopt, shape, dim + 1, 0);
  shape.erase(shape.begin() + dim + 1);
  shape[dim] = count * step;
  return g.slice(g.reshape(source, shape), dim, 0, 1, std::min(rows, count * step));
}

LogicalResult lowerSliceWrite(GraphBuilder &g, Value source, Value background, Value result, int64_t dim,
                              int64_t start, int64_t step) {
  ArrayRef<int64_t> shape = typeOf(result).getShape();
  dim = normalizeDim(dim, shape.size());
  start = normalizeStart(start, shape[dim]);
  Ref ref = g.get(source);
  if (step == 1) {
    std::optional<Ref> rest;
    if (background)
      rest = g.get(background);
    g.set(result, g.embedRows(ref, rest, shape, dim, start));
    return success();
  }
  int64_t end = start + (ref.shape[dim] - 1) * step + 1;
  Ref spread = g.embedRows(spreadRows(g, ref, dim, step, shape[dim] - start), std::nullopt, shape, dim, start);
  if (!background) {
    g.set(result, spread);
    return success();
  }
  Type i64 = IntegerType::get(result.getContext(), 64);
  SmallVector<int64_t> rowShape(shape.size(), 1);
  rowShape[dim] = shape[dim];
  Ref row = g.reshape(g.iota(shape[dim], i64), rowShape);
  Type type = ref.getElementType();
  g.set(result, g.pointwise({row, spread, g.get(background)}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, i64);
    Value distance = s.sub(args[0], s.constant(start));
    Value onStep =
        s.compare("eq", arith::RemSIOp::create(b, distance, s.constant(step)), s.constant(0));
    Value inside = arith::AndIOp::create(b, s.compare("ge", distance, s.constant(0)),
                                         s.compare("lt", args[0], s.constant(end)));
    return s.select(arith::AndIOp::create(b, inside, onStep), args[1], args[2]);
  }));
  return success();
}

LogicalResult lowerSelectWrite(GraphBuilder &g, Value source, Value background, Value result, int64_t dim,
                               int64_t index) {
  ArrayRef<int64_t> shape = typeOf(result).getShape();
  dim = normalizeDim(dim, shape.size());
  SmallVector<int64_t> rowShape(shape);
  rowShape[dim] = 1;
  std::optional<Ref> rest;
  if (background)
    rest = g.get(background);
  Ref row = g.reshape(g.get(source), rowShape);
  g.set(result, g.embedRows(row, rest, shape, dim, normalizeStart(index, shape[dim])));
  return success();
}

LogicalResult lowerSplit(GraphBuilder &g, Value self, ValueRange pieces, int64_t dim) {
  Ref ref = g.get(self);
  dim = normalizeDim(dim, ref.shape.size());
  int64_t start = 0;
  for (Value piece : pieces) {
    int64_t rows = typeOf(piece).getShape()[dim];
    g.set(piece, g.slice(ref, dim, start, 1, rows));
    start += rows;
  }
  return success();
}

/// The tensors of a cat or a stack as parts of its result.
SmallVector<Ref> getParts(GraphBuilder &g, ValueRange tensors, RankedTensorType result, int64_t dim, bool isStack) {
  SmallVector<Ref> refs;
  for (Value tensor : tensors) {
    Ref ref = g.get(tensor);
    if (isStack) {
      SmallVector<int64_t> shape(ref.shape);
      shape.insert(shape.begin() + dim, 1);
      ref = g.reshape(ref, shape);
    } else if (ref.shape.size() != static_cast<size_t>(result.getRank())) {
      continue; // PyTorch skips legacy empty tensors.
    }
    refs.push_back(g.cast(ref, result.getElementType()));
  }
  return refs;
}

/// Parts of a rotation, at most: each sign is a comparison.
constexpr size_t kMostParts = 16;

/// cat((-b, a)) of parts a and b of one tensor, as rotary embeddings turn pairs of elements: a view, of which some
/// parts change their sign. Nothing where it is not that.
std::optional<Ref> lowerRotation(GraphBuilder &g, ValueRange tensors, RankedTensorType result, int64_t dim,
                                 bool isStack) {
  if (!isa<FloatType>(result.getElementType()))
    return std::nullopt;
  SmallVector<Value> parts;
  SmallVector<int64_t> negative;
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    auto neg = tensor.getDefiningOp<aten::NegOp>();
    if (neg)
      negative.push_back(i);
    parts.push_back(neg ? neg.getSelf() : tensor);
  }
  SmallVector<Ref> refs = getParts(g, parts, result, dim, isStack);
  if (negative.empty() || parts.size() == 1 || parts.size() > kMostParts || refs.size() != parts.size())
    return std::nullopt;
  std::optional<Ref> view = g.concatenateParts(refs, dim);
  if (!view)
    return std::nullopt;
  // [.., part, row of the part, ..]
  int64_t count = parts.size();
  SmallVector<int64_t> shape(view->shape), row(shape.size() + 1, 1);
  shape[dim] /= count;
  shape.insert(shape.begin() + dim, count);
  row[dim] = count;
  Type i64 = IntegerType::get(g.getContext(), 64), type = result.getElementType();
  Ref part = g.reshape(g.iota(count, i64), row);
  Ref turned = g.pointwise({part, g.reshape(*view, shape)}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder positions(b, i64), values(b, type);
    Value value = args[1], negated = values.neg(value);
    for (int64_t i : negative)
      value = values.select(positions.compare("eq", args[0], positions.constant(i)), negated, value);
    return value;
  });
  return g.reshape(turned, view->shape);
}

LogicalResult lowerCat(GraphBuilder &g, ValueRange tensors, Value result, int64_t dim, bool isStack) {
  RankedTensorType type = typeOf(result);
  dim = normalizeDim(dim, type.getRank());
  std::optional<Ref> rotation = lowerRotation(g, tensors, type, dim, isStack);
  g.set(result, rotation ? *rotation : g.concatenate(getParts(g, tensors, type, dim, isStack), dim));
  return success();
}

} // namespace

/// A Scalar in every element; integers stay exact, which a double is not.
static Ref getConstant(GraphBuilder &g, Attribute scalar, RankedTensorType type) {
  auto integer = dyn_cast<IntegerAttr>(scalar);
  if (integer && !isa<BoolAttr>(scalar) && type.getElementType().isInteger() && !type.getElementType().isInteger(1))
    return g.constant(IntegerAttr::get(type.getElementType(), integer.getInt()), type.getElementType(),
                      type.getShape());
  return g.constant(getScalarValue(scalar), type.getElementType(), type.getShape());
}

Lowered lowerViewOp(GraphBuilder &g, Operation *op) {
  auto bindAs = [&](Value self, Value result) -> Lowered {
    g.set(result, g.reshape(g.get(self), typeOf(result).getShape()));
    return success();
  };
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::ViewOp view) { return bindAs(view.getSelf(), view.getResult()); })
      .Case([&](aten::UnsqueezeOp view) { return bindAs(view.getSelf(), view.getResult()); })
      .Case([&](aten::SqueezeDimOp view) { return bindAs(view.getSelf(), view.getResult()); })
      .Case([&](aten::CloneOp clone) { return bindAs(clone.getSelf(), clone.getResult()); })
      .Case([&](aten::PermuteOp permute) -> Lowered {
        Ref ref = g.get(permute.getSelf());
        SmallVector<int64_t> permutation;
        for (int64_t dim : permute.getDims())
          permutation.push_back(normalizeDim(dim, ref.shape.size()));
        g.set(permute.getResult(), g.permute(ref, permutation));
        return success();
      })
      .Case([&](aten::ExpandOp expand) -> Lowered {
        g.set(expand.getResult(), g.expand(g.get(expand.getSelf()), typeOf(expand.getResult()).getShape()));
        return success();
      })
      .Case([&](aten::SliceTensorOp slice) -> Lowered {
        Ref ref = g.get(slice.getSelf());
        int64_t dim = normalizeDim(slice.getDim(), ref.shape.size());
        g.set(slice.getResult(), g.slice(ref, dim, normalizeStart(slice.getStart(), ref.shape[dim]), slice.getStep(),
                                         typeOf(slice.getResult()).getShape()[dim]));
        return success();
      })
      .Case([&](aten::FlipOp flip) -> Lowered {
        Ref ref = g.get(flip.getSelf());
        for (int64_t dim : flip.getDims())
          ref = g.slice(ref, dim, ref.shape[dim] - 1, -1, ref.shape[dim]);
        g.set(flip.getResult(), ref);
        return success();
      })
      .Case([&](aten::SelectIntOp select) -> Lowered {
        Ref ref = g.get(select.getSelf());
        int64_t dim = normalizeDim(select.getDim(), ref.shape.size());
        Ref row = g.slice(ref, dim, normalizeDim(select.getIndex(), ref.shape[dim]), 1, 1);
        g.set(select.getResult(), g.reshape(row, typeOf(select.getResult()).getShape()));
        return success();
      })
      .Case([&](aten::SplitTensorOp split) -> Lowered {
        return lowerSplit(g, split.getSelf(), split.getPieces(), split.getDim());
      })
      .Case([&](aten::SplitWithSizesOp split) -> Lowered {
        return lowerSplit(g, split.getSelf(), split.getPieces(), split.getDim());
      })
      .Case([&](aten::CatOp cat) -> Lowered {
        return lowerCat(g, cat.getTensors(), cat.getResult(), cat.getDim(), /*isStack=*/false);
      })
      .Case([&](aten::StackOp stack) -> Lowered {
        return lowerCat(g, stack.getTensors(), stack.getResult(), stack.getDim(), /*isStack=*/true);
      })
      .Case([&](aten::SliceBackwardOp slice) -> Lowered {
        return lowerSliceWrite(g, slice.getGradOutput(), {}, slice.getResult(), slice.getDim(), slice.getStart(),
                               slice.getStep());
      })
      .Case([&](aten::SliceScatterOp slice) -> Lowered {
        return lowerSliceWrite(g, slice.getSrc(), slice.getSelf(), slice.getResult(), slice.getDim(),
                               slice.getStart(), slice.getStep());
      })
      .Case([&](aten::SelectBackwardOp select) -> Lowered {
        return lowerSelectWrite(g, select.getGradOutput(), {}, select.getResult(), select.getDim(), select.getIndex());
      })
      .Case([&](aten::SelectScatterOp select) -> Lowered {
        return lowerSelectWrite(g, select.getSrc(), select.getSelf(), select.getResult(), select.getDim(),
                                select.getIndex());
      })
      .Case([&](aten::FullOp full) -> Lowered {
        RankedTensorType type = typeOf(full.getResult());
        g.set(full.getResult(), getConstant(g, full.getFillValue(), type));
        return success();
      })
      .Case([&](aten::ScalarTensorOp scalar) -> Lowered {
        RankedTensorType type = typeOf(scalar.getResult());
        g.set(scalar.getResult(), getConstant(g, scalar.getS(), type));
        return success();
      })
      .Case([&](aten::ArangeStartStepOp arange) -> Lowered {
        RankedTensorType type = typeOf(arange.getResult());
        g.set(arange.getResult(), g.iota(type.getNumElements(), type.getElementType(),
                                         getScalarValue(arange.getStart()), getScalarValue(arange.getStep())));
        return success();
      })
      .Case([&](aten::ConstantOp constant) -> Lowered {
        auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (!elements)
          return op->emitOpError("has elements that are not dense");
        RankedTensorType type = typeOf(constant.getResult());
        Attribute value = elements.isSplat() ? elements.getSplatValue<Attribute>() : Attribute(elements);
        g.set(constant.getResult(), g.constant(value, type.getElementType(), type.getShape()));
        return success();
      })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

Lowered lowerPointwiseOp(GraphBuilder &g, Operation *op) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  ScalarBody body = getScalarBody(op);
  if (!body)
    return std::nullopt;
  SmallVector<Ref> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(g.get(operand));
  RankedTensorType type = typeOf(op->getResult(0));
  if (isa<aten::ToCopyOp>(op) && isa<FloatType>(inputs[0].getElementType()) && isa<FloatType>(type.getElementType()))
    g.set(op->getResult(0), g.cast(inputs[0], type.getElementType()));
  else if (isa<aten::ToCopyOp>(op) && inputs[0].getElementType() == type.getElementType())
    g.set(op->getResult(0), inputs[0]);
  else
    g.set(op->getResult(0), g.reshape(g.pointwise(inputs, type.getElementType(), body), type.getShape()));
  return success();
}

} // namespace spmd::fusion
