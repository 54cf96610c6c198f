//===- GraphBuilder.cpp - building the graph of a step --------------------===//

#include "GraphBuilder.h"

#include "IterationSpace.h"
#include "ScalarBodies.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void GraphBuilder::setOrigin(Operation *op) {
  loc = op->getLoc();
  opName = op->getName().stripDialect();
  segment = getSegment(op).value_or(-1);
  isLate = op->hasAttr(kRecomputedAttr);
}

Node *GraphBuilder::create(NodeKind kind, ArrayRef<Ref> inputs) {
  Node *node = graph.create(kind, *loc, segment);
  node->opName = opName;
  node->isLate = isLate;
  node->inputs.assign(inputs.begin(), inputs.end());
  return node;
}

Ref GraphBuilder::asRef(Node *node) { return {node, Layout::contiguous(node->getNumElements()), node->shape, false}; }

Ref GraphBuilder::addArgument(BlockArgument argument) {
  auto type = typeOf(argument);
  Node *node = graph.create(NodeKind::Tensor, argument.getLoc(), -1);
  node->shape.assign(type.getShape().begin(), type.getShape().end());
  node->elementType = type.getElementType();
  node->value = argument;
  node->shapeIsFixed = true;
  return asRef(node);
}

Node *GraphBuilder::addAnchor(ArrayRef<Ref> inputs, AnchorEmitter emit, Operation *op) {
  Node *node = create(NodeKind::Anchor, inputs);
  node->emit = std::move(emit);
  node->op = op;
  return node;
}

Ref GraphBuilder::addResult(Node *anchor, ArrayRef<int64_t> shape, Type elementType) {
  Node *node = create(NodeKind::Tensor);
  node->shape.assign(shape.begin(), shape.end());
  node->elementType = elementType;
  node->producer = anchor;
  node->shapeIsFixed = anchor->op != nullptr;
  anchor->results.push_back(node);
  return asRef(node);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

Ref GraphBuilder::reshape(Ref ref, ArrayRef<int64_t> shape) {
  ref.shape.assign(shape.begin(), shape.end());
  return ref;
}

Ref GraphBuilder::permute(Ref ref, ArrayRef<int64_t> permutation) {
  std::optional<Layout> layout = ref.layout.permute(ref.shape, permutation);
  if (!layout) {
    ref = materialize(ref);
    layout = ref.layout.permute(ref.shape, permutation);
  }
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(ref.shape[dim]);
  return {ref.node, *layout, shape, false};
}

Ref GraphBuilder::expand(Ref ref, ArrayRef<int64_t> shape) {
  if (ArrayRef<int64_t>(ref.shape) == shape)
    return ref;
  std::optional<Layout> layout = ref.layout.expand(ref.shape, shape);
  if (!layout) {
    ref = materialize(ref);
    layout = ref.layout.expand(ref.shape, shape);
  }
  return {ref.node, *layout, SmallVector<int64_t>(shape), ref.guarded};
}

Ref GraphBuilder::slice(Ref ref, int64_t dim, int64_t start, int64_t step, int64_t length) {
  std::optional<Layout> layout = ref.layout.slice(ref.shape, dim, start, step, length);
  if (!layout) {
    ref = materialize(ref);
    layout = ref.layout.slice(ref.shape, dim, start, step, length);
  }
  SmallVector<int64_t> shape(ref.shape);
  shape[dim] = length;
  return {ref.node, *layout, shape, false};
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Ref GraphBuilder::constant(Attribute value, Type elementType, ArrayRef<int64_t> shape) {
  Node *node = create(NodeKind::Constant);
  node->shape.assign(shape.begin(), shape.end());
  node->elementType = elementType;
  node->constant = value;
  return asRef(node);
}

Ref GraphBuilder::constant(double value, Type elementType, ArrayRef<int64_t> shape) {
  Builder b(elementType.getContext());
  Attribute attr = isa<FloatType>(elementType) ? Attribute(b.getFloatAttr(elementType, value))
                                               : Attribute(b.getIntegerAttr(elementType, static_cast<int64_t>(value)));
  return constant(attr, elementType, shape);
}

Ref GraphBuilder::iota(int64_t count, Type elementType, double start, double step) {
  Node *node = create(NodeKind::Iota);
  node->shape = {count};
  node->elementType = elementType;
  node->start = start;
  node->step = step;
  return asRef(node);
}

/// PyTorch's broadcasting, aligned at the right.
static SmallVector<int64_t> broadcastShapes(ArrayRef<Ref> refs) {
  SmallVector<int64_t> shape;
  for (const Ref &ref : refs) {
    if (ref.shape.size() > shape.size())
      shape.insert(shape.begin(), ref.shape.size() - shape.size(), 1);
    size_t added = shape.size() - ref.shape.size();
    for (auto [dim, size] : llvm::enumerate(ref.shape))
      if (size != 1)
        shape[added + dim] = size;
  }
  return shape;
}

Ref GraphBuilder::pointwise(ArrayRef<Ref> inputs, Type elementType, ScalarBody body) {
  Node shape(NodeKind::Pointwise, 0, *loc);
  shape.shape = broadcastShapes(inputs);
  SmallVector<Ref> expanded;
  for (const Ref &input : inputs)
    expanded.push_back(expand(input, shape.shape));
  // What depends on a table of a unit is zero in the padding of its chunk.
  for (const Ref &input : expanded)
    if (input.node->unit && input.node->kind != NodeKind::SegmentReduce && input.layout.isIdentity())
      shape.unit = input.node->unit;
  readAlone(shape, expanded);
  Node *node = create(NodeKind::Pointwise, expanded);
  node->shape = shape.shape;
  node->unit = shape.unit;
  node->elementType = elementType;
  node->body = std::move(body);
  return asRef(node);
}

/// Copies those of `inputs` that `node` could not read beside the ones before them, whatever it is fused with.
void GraphBuilder::readAlone(const Node &node, SmallVectorImpl<Ref> &inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!isReadableAlone(&node, ArrayRef<Ref>(inputs).take_front(i + 1)))
      inputs[i] = materialize(inputs[i]);
}

Ref GraphBuilder::cast(Ref ref, Type elementType) {
  if (ref.getElementType() == elementType)
    return ref;
  Ref result = pointwise({ref}, elementType, [elementType](ImplicitLocOpBuilder &b, ValueRange args) {
    return castScalar(b, args[0], elementType);
  });
  Type from = ref.getElementType();
  result.node->widens = (from.isBF16() || from.isF16()) && (elementType.isF32() || elementType.isF64());
  return result;
}

Ref GraphBuilder::materialize(Ref ref) {
  if (ref.node->kind == NodeKind::SegmentBroadcast && !ref.layout.isIdentity())
    ref.node = materialize(asRef(ref.node)).node;
  return pointwise({ref}, ref.getElementType(), [](ImplicitLocOpBuilder &, ValueRange args) { return args[0]; });
}

Ref GraphBuilder::copyOperand(Ref ref) {
  auto &copies = operandCopies[{segment, ref.node}];
  for (auto &[layout, copy] : copies)
    if (layout == ref.layout)
      return {copy, Layout::contiguous(copy->getNumElements()), ref.shape, false};
  Ref copy = materialize(ref);
  copies.push_back({ref.layout, copy.node});
  return copy;
}

Ref GraphBuilder::whole(Ref ref) {
  bool existsWhole =
      ref.layout.isIdentity() && !ref.node->isVirtual() && ref.getNumElements() == ref.node->getNumElements();
  if (existsWhole && ref.node->shape != ref.shape) {
    if (ref.node->shapeIsFixed)
      existsWhole = false;
    else
      ref.node->shape = ref.shape;
  }
  if (!existsWhole)
    ref = materialize(ref);
  ref.node->shapeIsFixed = true;
  return ref;
}

Ref GraphBuilder::contiguous(Ref ref) {
  if (ref.node->isVirtual() || !ref.layout.isIdentity() || ref.getNumElements() != ref.node->getNumElements())
    return materialize(ref);
  return ref;
}

Ref GraphBuilder::segmentBroadcast(Ref table, ShardUnitOp unit, int64_t chunk) {
  if (table.node->kind != NodeKind::Constant || !table.layout.isIdentity())
    table = contiguous(table);
  Node *node = create(NodeKind::SegmentBroadcast, table);
  node->shape = {chunk};
  node->elementType = table.getElementType();
  node->unit = unit;
  return asRef(node);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Blocks of a reduction over `extent` elements: its largest divisor up to `most`, or up to 32 where that many would
/// have fewer than 16 elements: each begins with zeros and ends with sums to write and read. Depends on shapes and the
/// target only, so that results do not depend on threads.
static int64_t countReductionBlocks(int64_t extent, int64_t most) {
  constexpr int64_t kLeast = 32, kElements = 16;
  int64_t wanted = std::min(std::max(extent / kElements, kLeast), most);
  for (int64_t blocks = std::min(wanted, extent / 2); blocks > 1; --blocks)
    if (extent % blocks == 0)
      return blocks;
  return 1;
}

Ref GraphBuilder::reduceOnce(kernel::ReduceKind kind, Ref ref, int64_t outer, int64_t extent, int64_t inner) {
  if (extent == 1)
    return reshape(ref, {outer * inner});
  Node shape(NodeKind::Reduce, 0, *loc);
  shape.outer = outer;
  shape.extent = extent;
  shape.inner = inner;
  SmallVector<Ref> inputs = {ref};
  readAlone(shape, inputs);
  Node *node = create(NodeKind::Reduce, inputs);
  node->shape = {outer * inner};
  node->elementType = ref.getElementType();
  node->reduceKind = kind;
  node->outer = outer;
  node->extent = extent;
  node->inner = inner;
  return asRef(node);
}

Ref GraphBuilder::reduceRun(kernel::ReduceKind kind, Ref ref, int64_t outer, int64_t extent, int64_t inner) {
  bool fewRows = inner == 1 && outer < 64 && extent >= 4096;
  bool fewColumnBlocks = inner > 1 && outer < 16 && extent > 32;
  int64_t blocks = fewRows || fewColumnBlocks ? countReductionBlocks(extent, reductionBlocks) : 1;
  if (blocks == 1)
    return reduceOnce(kind, ref, outer, extent, inner);
  ref = reduceOnce(kind, ref, outer * blocks, extent / blocks, inner);
  // The blocks of a large device are many to add up one after the other, which no thread does where launches count.
  constexpr int64_t kMostAtOnce = 64;
  return blocks > kMostAtOnce && !fewerLaunches ? reduceRun(kind, ref, outer, blocks, inner)
                                                : reduceOnce(kind, ref, outer, blocks, inner);
}

Ref GraphBuilder::reduce(kernel::ReduceKind kind, Ref ref, ArrayRef<int64_t> dims, bool keepDims) {
  Type type = ref.getElementType();
  bool widens = type.isF16() || type.isBF16();
  if (widens)
    ref = cast(ref, Float32Type::get(type.getContext()));

  SmallVector<int64_t> shape(ref.shape);
  SmallVector<bool> reduced(shape.size(), false);
  for (int64_t dim : dims)
    reduced[dim] = true;
  // Runs of neighbouring reduced dims, the innermost run first.
  for (int64_t last = static_cast<int64_t>(shape.size()) - 1; last >= 0; --last) {
    if (!reduced[last])
      continue;
    int64_t first = last;
    while (first > 0 && reduced[first - 1])
      --first;
    ArrayRef<int64_t> sizes(shape);
    int64_t outer = numElements(sizes.take_front(first));
    int64_t extent = numElements(sizes.slice(first, last - first + 1));
    int64_t inner = numElements(sizes.drop_front(last + 1));
    ref = reduceRun(kind, ref, outer, extent, inner);
    for (int64_t dim = first; dim <= last; ++dim)
      shape[dim] = 1;
    last = first;
  }

  SmallVector<int64_t> resultShape;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (keepDims || !reduced[dim])
      resultShape.push_back(size);
  ref = reshape(ref, resultShape);
  // A sum over one element is a view, of a node that may have more of them.
  if (!ref.node->shapeIsFixed && ref.node->kind == NodeKind::Reduce && ref.layout.isIdentity() &&
      ref.getNumElements() == ref.node->getNumElements())
    ref.node->shape = resultShape;
  return widens ? cast(ref, type) : ref;
}

Ref GraphBuilder::segmentReduce(kernel::ReduceKind kind, Ref chunk, ShardUnitOp unit, ScalarBody body) {
  constexpr int64_t kPieces = 16;
  int64_t segments = unit.getLayout().getSegments().size();
  Node *node = create(NodeKind::SegmentReduce, contiguous(chunk));
  node->shape = {segments, kPieces};
  Type compute = getComputeType(chunk.getElementType());
  node->elementType = compute;
  node->reduceKind = kind;
  node->body = [compute, body = std::move(body)](ImplicitLocOpBuilder &b, ValueRange args) {
    return body(b, castScalar(b, args[0], compute));
  };
  node->unit = unit;
  node->pieces = kPieces;
  node->shapeIsFixed = true;
  return reduce(kind, asRef(node), {1}, /*keepDims=*/false);
}

/// Entries of the largest table whose entries are chosen by position.
constexpr int64_t kSmallTable = 16;

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

/// Single elements side by side are chosen by position, so that a small table fuses with what uses it.
Ref GraphBuilder::makeTable(ArrayRef<Ref> entries) {
  Type i64 = IntegerType::get(loc->getContext(), 64);
  SmallVector<Ref> inputs = {iota(entries.size(), i64)};
  llvm::append_range(inputs, entries);
  return pointwise(inputs, entries.front().getElementType(), [i64](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, i64);
    Value value = args.back();
    for (int64_t i = static_cast<int64_t>(args.size()) - 3; i >= 0; --i)
      value = s.select(s.compare("eq", args[0], s.constant(i)), args[i + 1], value);
    return value;
  });
}

std::optional<Ref> GraphBuilder::concatenateParts(ArrayRef<Ref> refs, int64_t dim) {
  const Ref &first = refs.front();
  if (first.guarded)
    return std::nullopt;
  int64_t distance = refs.size() == 1 ? 0 : refs[1].layout.getOffset() - first.layout.getOffset();
  for (auto [i, ref] : llvm::enumerate(refs))
    if (ref.node != first.node || ref.guarded || ref.shape != first.shape ||
        ref.layout != first.layout.shift(static_cast<int64_t>(i) * distance))
      return std::nullopt;
  std::optional<Layout> layout = first.layout.repeat(first.shape, dim, refs.size(), distance);
  if (!layout)
    return std::nullopt;
  SmallVector<int64_t> shape(first.shape);
  shape[dim] *= refs.size();
  return Ref{first.node, *layout, shape, false};
}

Ref GraphBuilder::concatenate(ArrayRef<Ref> refs, int64_t dim) {
  if (std::optional<Ref> view = concatenateParts(refs, dim))
    return *view;
  SmallVector<int64_t> shape(refs.front().shape);
  shape[dim] = 0;
  for (const Ref &ref : refs)
    shape[dim] += ref.shape[dim];
  if (shape.size() == 1 && shape[0] <= kSmallTable && refs.size() == static_cast<size_t>(shape[0]))
    return makeTable(refs);
  SmallVector<Ref> sources;
  Layout result = Layout::contiguous(numElements(shape));
  SmallVector<Layout> targets;
  int64_t start = 0;
  for (Ref ref : refs) {
    int64_t rows = ref.shape[dim];
    targets.push_back(*result.slice(shape, dim, start, 1, rows));
    start += rows;
    // A box is copied with one stride per dim on both sides.
    SmallVector<int64_t> borders = targets.back().getBorders();
    llvm::append_range(borders, ref.layout.getBorders());
    bool isBox = !ref.node->isVirtual() && ref.layout.getCoordStrides().empty() &&
                 canCut(ref.getNumElements(), borders, Digit(), Digit());
    sources.push_back(isBox ? ref : materialize(ref));
  }

  Node *node = create(NodeKind::Copy, sources);
  node->shape = shape;
  node->elementType = refs.front().getElementType();
  for (auto [index, target] : llvm::enumerate(targets))
    node->boxes.push_back({static_cast<unsigned>(index), target});
  return asRef(node);
}

Ref GraphBuilder::embedRows(Ref value, std::optional<Ref> background, ArrayRef<int64_t> shape, int64_t dim,
                            int64_t start) {
  int64_t rows = value.shape[dim], size = shape[dim];
  // The value is read with its own strides over the bigger box: rows outside it read what lies there, or zero when
  // that is outside the tensor, and are replaced.
  value = contiguous(value);
  int64_t inner = numElements(shape.drop_front(dim + 1)), outer = numElements(shape.take_front(dim));
  Layout layout = Layout::get({{outer, rows * inner}, {size, inner}, {inner, 1}}, -start * inner);
  Ref shifted{value.node, layout, SmallVector<int64_t>(shape), /*guarded=*/true};

  Builder b(loc->getContext());
  SmallVector<int64_t> rowShape(shape.size(), 1);
  rowShape[dim] = size;
  Ref row = reshape(iota(size, b.getI64Type()), rowShape);
  Ref rest = background ? *background : constant(0.0, value.getElementType(), {});
  return pointwise({row, shifted, rest}, value.getElementType(), [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, b.getI64Type());
    Value inside = arith::AndIOp::create(b, s.compare("ge", args[0], s.constant(start)),
                                         s.compare("lt", args[0], s.constant(start + rows)));
    return s.select(inside, args[1], args[2]);
  });
}

} // namespace spmd::fusion
