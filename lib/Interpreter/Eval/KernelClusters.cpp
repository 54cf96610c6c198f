//===- KernelClusters.cpp - clusters, segmented clusters, copies ----------===//

#include "ScalarCode.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/PaddedRows.h"

using namespace mlir;

namespace spmd::interp {
namespace {

/// Calls `visit(flat, index)` for all points of a box in row-major order.
template <typename Fn>
void forEachPoint(ShapeRef dims, Fn visit) {
  Shape index(dims.size(), 0);
  for (int64_t flat = 0, e = numElements(dims); flat < e; ++flat) {
    visit(flat, ShapeRef(index));
    for (int64_t dim = static_cast<int64_t>(dims.size()) - 1; dim >= 0 && ++index[dim] == dims[dim]; --dim)
      index[dim] = 0;
  }
}

/// A linear access map at the rank's coordinates.
struct Access {
  int64_t offset;
  SmallVector<int64_t> strides;

  static FailureOr<Access> get(OpCall &call, AffineMap map) {
    kernel::AccessMap parts = kernel::AccessMap::get(map);
    if (!parts.isLinear())
      return call.error() << "has a map that is not linear";
    Access access{parts.constant, parts.strides};
    for (auto [axis, stride] : llvm::enumerate(parts.symbols))
      if (stride != 0)
        access.offset += stride * call.context.coordinates[axis];
    return access;
  }

  int64_t at(ShapeRef index) const {
    int64_t element = offset;
    for (auto [position, stride] : llvm::zip_equal(index, strides))
      element += position * stride;
    return element;
  }
};

double coordinateOf(OpCall &call, int64_t axis) { return static_cast<double>(call.context.coordinates[axis]); }

/// Reduces lanes over some dims of a box; all points of a group get the result.
Lanes reduceOver(ShapeRef dims, kernel::ReduceOp op, const Lanes &value) {
  SmallVector<bool> reduced(dims.size(), false);
  for (int64_t dim : op.getOver())
    reduced[dim] = true;
  Shape strides(dims.size(), 0);
  int64_t groups = 1;
  for (int64_t dim = static_cast<int64_t>(dims.size()) - 1; dim >= 0; --dim)
    if (!reduced[dim]) {
      strides[dim] = groups;
      groups *= dims[dim];
    }
  auto groupOf = [&](ShapeRef index) {
    int64_t group = 0;
    for (auto [position, stride] : llvm::zip_equal(index, strides))
      group += position * stride;
    return group;
  };
  Lanes totals(groups, neutralElement(op.getKind()));
  forEachPoint(dims, [&](int64_t flat, ShapeRef index) {
    double &total = totals[groupOf(index)];
    total = combine(op.getKind(), total, value[value.size() == 1 ? 0 : flat]);
  });
  Lanes result(numElements(dims));
  forEachPoint(dims, [&](int64_t flat, ShapeRef index) { result[flat] = totals[groupOf(index)]; });
  return result;
}

LogicalResult evaluateCluster(OpCall &call) {
  auto op = cast<kernel::ClusterOp>(call.op);
  Shape dims(op.getDims());
  std::vector<Lanes> arguments;
  for (auto [i, operand] : llvm::enumerate(call.operands())) {
    FailureOr<Access> access = Access::get(call, op.getOperandMap(i));
    if (failed(access))
      return failure();
    bool isGuarded = llvm::is_contained(op.getGuarded(), static_cast<int64_t>(i));
    Lanes lanes(numElements(dims));
    bool isInside = true;
    const Tensor &tensor = operand;
    forEachPoint(dims, [&](int64_t flat, ShapeRef index) {
      int64_t element = access->at(index);
      bool exists = element >= 0 && element < tensor.numel();
      isInside &= exists || isGuarded;
      lanes[flat] = exists ? tensor.at(element) : 0;
    });
    if (!isInside)
      return call.error() << "operand " << i << " is read outside of its " << tensor.numel() << " elements";
    arguments.push_back(std::move(lanes));
  }

  ScalarContext context;
  context.index = [&](int64_t dim) {
    Lanes lanes(numElements(dims));
    forEachPoint(dims, [&](int64_t flat, ShapeRef index) { lanes[flat] = static_cast<double>(index[dim]); });
    return lanes;
  };
  context.coordinate = [&](int64_t axis) { return coordinateOf(call, axis); };
  context.reduce = [&](kernel::ReduceOp reduce, const Lanes &value) { return reduceOver(dims, reduce, value); };
  FailureOr<std::vector<Lanes>> yielded = runScalarCode(*op.getBodyBlock(), std::move(arguments), context);
  if (failed(yielded))
    return failure();

  for (auto [i, lanes] : llvm::enumerate(*yielded)) {
    FailureOr<Access> access = Access::get(call, cast<AffineMapAttr>(op.getResultMaps()[i]).getValue());
    if (failed(access))
      return failure();
    Tensor result = emptyResult(call, i);
    if (kernel::getPaddedRows(op, i))
      fillUnwritten(result);
    const Lanes &values = lanes;
    forEachPoint(dims, [&](int64_t flat, ShapeRef index) {
      result.set(access->at(index), values[values.size() == 1 ? 0 : flat]);
    });
    call.result(std::move(result));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Segmented clusters
//===----------------------------------------------------------------------===//

/// Part `piece` of `pieces` of the elements [begin, end).
std::pair<int64_t, int64_t> partOf(int64_t begin, int64_t end, int64_t piece, int64_t pieces) {
  int64_t size = (end - begin + pieces - 1) / pieces;
  return {std::min(end, begin + piece * size), std::min(end, begin + (piece + 1) * size)};
}

LogicalResult evaluateSegmented(OpCall &call) {
  auto op = cast<kernel::SegmentedOp>(call.op);
  FailureOr<Access> position = Access::get(call, op.getPosition());
  if (failed(position))
    return failure();
  int64_t chunk = op.getChunk(), first = position->offset, segments = op.getStarts().size(), pieces = op.getPieces();
  // The rank's part of each segment, as elements of its chunk.
  SmallVector<std::pair<int64_t, int64_t>> parts;
  for (auto [start, end] : llvm::zip_equal(op.getStarts(), op.getEnds()))
    parts.push_back({std::clamp<int64_t>(start - first, 0, chunk), std::clamp<int64_t>(end - first, 0, chunk)});

  auto spread = [&](const Tensor &table) {
    Lanes lanes(chunk, 0);
    for (auto [segment, part] : llvm::enumerate(parts))
      for (int64_t i = part.first; i < part.second; ++i)
        lanes[i] = table.at(segment);
    return lanes;
  };
  std::vector<Lanes> arguments;
  size_t elements = op.getElements().size(), tables = op.getTables().size();
  for (auto [i, operand] : llvm::enumerate(call.operands())) {
    if (i < elements) {
      Lanes lanes(chunk);
      for (int64_t j = 0; j < chunk; ++j)
        lanes[j] = operand.at(j);
      arguments.push_back(std::move(lanes));
    } else if (i < elements + tables) {
      arguments.push_back(spread(operand));
    } else {
      arguments.push_back({operand.at(0)});
    }
  }

  ScalarContext context;
  context.index = [&](int64_t) {
    Lanes lanes(chunk);
    for (int64_t i = 0; i < chunk; ++i)
      lanes[i] = static_cast<double>(i);
    return lanes;
  };
  context.coordinate = [&](int64_t axis) { return coordinateOf(call, axis); };
  context.segmentConstant = spread;
  context.reduce = [&](kernel::ReduceOp reduce, const Lanes &value) {
    Lanes totals(segments * pieces, neutralElement(reduce.getKind()));
    for (auto [segment, part] : llvm::enumerate(parts))
      for (int64_t piece = 0; piece < pieces; ++piece) {
        auto [begin, end] = partOf(part.first, part.second, piece, pieces);
        for (int64_t i = begin; i < end; ++i) {
          double &total = totals[segment * pieces + piece];
          total = combine(reduce.getKind(), total, value[value.size() == 1 ? 0 : i]);
        }
      }
    return totals;
  };
  FailureOr<std::vector<Lanes>> yielded = runScalarCode(*op.getBodyBlock(), std::move(arguments), context);
  if (failed(yielded))
    return failure();

  bool isReduced = op.hasReduction();
  for (auto [i, lanes] : llvm::enumerate(*yielded)) {
    Tensor result = emptyResult(call, i);
    auto set = [&, &values = lanes](int64_t element) { result.set(element, values[values.size() == 1 ? 0 : element]); };
    // Padding stays zero.
    if (isReduced)
      for (int64_t element = 0; element < result.numel(); ++element)
        set(element);
    else
      for (auto [begin, end] : parts)
        for (int64_t element = begin; element < end; ++element)
          set(element);
    call.result(std::move(result));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

LogicalResult evaluateCopy(OpCall &call) {
  auto op = cast<kernel::CopyOp>(call.op);
  Tensor result = emptyResult(call, 0);
  for (Attribute attr : op.getPieces()) {
    auto piece = cast<kernel::PieceAttr>(attr);
    FailureOr<Access> from = Access::get(call, piece.getFrom()), to = Access::get(call, piece.getTo());
    if (failed(from) || failed(to))
      return failure();
    bool isZero = piece.getSource() < 0;
    forEachPoint(piece.getDims(), [&](int64_t, ShapeRef index) {
      result.set(to->at(index), isZero ? 0 : call.operands()[piece.getSource()].at(from->at(index)));
    });
  }
  call.result(std::move(result));
  return success();
}

} // namespace

void registerKernelClusters(EvaluatorRegistry &registry) {
  registry.add("kernel.cluster", evaluateCluster);
  registry.add("kernel.segmented", evaluateSegmented);
  registry.add("kernel.copy", evaluateCopy);
}

} // namespace spmd::interp
