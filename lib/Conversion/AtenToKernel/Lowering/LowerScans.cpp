//===- LowerScans.cpp - scans, products and extremes along one dim --------===//
//
// [Note: scans as reductions]
// A scan of n elements is n reductions: element i combines the elements j <= i, others being neutral. The [n, n] values
// exist only inside the reduction's loop, so a scan moves as many bytes as its operand and result have, fuses with
// what is around it, and needs no skeleton of its own on any target; it makes n / 2 times the arithmetic.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenReduce.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace spmd::fusion {

using kernel::ReduceKind;

namespace {

/// What stands for an element that a reduction leaves out.
Value neutralOf(ScalarBuilder &s, ReduceKind kind) {
  if (kind == ReduceKind::Add || kind == ReduceKind::Mul)
    return s.constant(kind == ReduceKind::Mul);
  bool isMax = kind == ReduceKind::Max;
  if (isa<FloatType>(s.type))
    return s.constant(isMax ? -INFINITY : INFINITY);
  unsigned bits = s.type.getIntOrFloatBitWidth();
  if (bits == 1)
    return s.constant(!isMax);
  int64_t smallest = APInt::getSignedMinValue(bits).getSExtValue();
  return s.constant(Attribute(s.b.getI64IntegerAttr(isMax ? smallest : -(smallest + 1))));
}

/// A tensor seen along one dim, and twice: element [outer, i, j, inner] of `elements` is element j.
class Lines {
public:
  Lines(GraphBuilder &g, Ref self, int64_t dim) : g(g), shape(self.shape) {
    extent = shape[dim];
    outer = numElements(ArrayRef<int64_t>(shape).take_front(dim));
    inner = numElements(ArrayRef<int64_t>(shape).drop_front(dim + 1));
    i64 = Builder(self.getElementType().getContext()).getI64Type();
    line = g.reshape(self, {outer, extent, inner});
    elements = g.reshape(line, {outer, 1, extent, inner});
    scanned = g.reshape(g.iota(extent, i64), {1, extent, 1, 1});
    position = g.reshape(g.iota(extent, i64), {1, 1, extent, 1});
    place = g.reshape(g.iota(extent, i64), {1, extent, 1});
  }

  /// For each i, the elements j <= i of `values` ([outer, 1 or extent, extent, inner]) combined: [outer, extent,
  /// inner].
  Ref scan(ReduceKind kind, Ref values) {
    Type type = values.getElementType();
    Ref kept = g.pointwise({scanned, position, values}, type, [=, i64 = i64](ImplicitLocOpBuilder &b, ValueRange args) {
      ScalarBuilder index(b, i64), s(b, type);
      return s.select(index.compare("ge", args[0], args[1]), args[2], neutralOf(s, kind));
    });
    return g.reduce(kind, kept, {2}, /*keepDims=*/false);
  }
  Ref result(Ref ref) { return g.reshape(ref, shape); }

  GraphBuilder &g;
  SmallVector<int64_t> shape;
  int64_t outer, extent, inner;
  Type i64;
  Ref line, elements, scanned, position, place;
};

/// `value` where the element equals the extreme or both are not numbers, else `otherwise`.
Ref placesOf(GraphBuilder &g, Ref elements, Ref extreme, Ref place, int64_t otherwise) {
  Type type = elements.getElementType(), i64 = place.getElementType();
  return g.pointwise({elements, extreme, place}, i64, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, type), index(b, i64);
    Value here = s.bitOr(s.compare("eq", args[0], args[1]), s.bitAnd(s.isNan(args[0]), s.isNan(args[1])));
    return index.select(here, args[2], index.constant(static_cast<double>(otherwise)));
  });
}

void lowerScan(GraphBuilder &g, Operation *op, ReduceKind kind) {
  RankedTensorType type = typeOf(op->getResult(0));
  Type compute = getComputeType(type.getElementType());
  Lines lines(g, g.cast(g.get(op->getOperand(0)), compute), cast<IntegerAttr>(op->getAttr("dim")).getInt());
  g.set(op->getResult(0), g.cast(lines.result(lines.scan(kind, lines.elements)), type.getElementType()));
}

/// max + log(sum(exp(x - max))), both up to the element.
void lowerLogCumSumExp(GraphBuilder &g, aten::LogcumsumexpOp op) {
  Type type = typeOf(op.getResult()).getElementType(), compute = getComputeType(type);
  Lines lines(g, g.cast(g.get(op.getSelf()), compute), op.getDim());
  Ref highest = lines.scan(ReduceKind::Max, lines.elements);
  Ref base = g.reshape(highest, {lines.outer, lines.extent, 1, lines.inner});
  Ref terms = g.pointwise({lines.elements, base}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, compute);
    // Infinities of one sign differ by nothing.
    Value gap = s.select(s.compare("eq", args[0], args[1]), s.constant(0), s.sub(args[0], args[1]));
    return s.exp(gap);
  });
  Ref sum = lines.scan(ReduceKind::Add, terms);
  Ref result = g.pointwise({highest, sum}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, compute);
    return s.add(args[0], s.log(args[1]));
  });
  g.set(op.getResult(), g.cast(lines.result(result), type));
}

void lowerCumulativeExtreme(GraphBuilder &g, Operation *op, ReduceKind kind) {
  Lines lines(g, g.get(op->getOperand(0)), cast<IntegerAttr>(op->getAttr("dim")).getInt());
  Ref extreme = lines.scan(kind, lines.elements);
  Ref base = g.reshape(extreme, {lines.outer, lines.extent, 1, lines.inner});
  Ref places = lines.scan(ReduceKind::Max, placesOf(g, lines.elements, base, lines.position, -1));
  g.set(op->getResult(0), lines.result(extreme));
  g.set(op->getResult(1), lines.result(places));
}

void lowerExtreme(GraphBuilder &g, Operation *op, ReduceKind kind) {
  Lines lines(g, g.get(op->getOperand(0)), cast<IntegerAttr>(op->getAttr("dim")).getInt());
  Ref extreme = g.reduce(kind, lines.line, {1}, /*keepDims=*/true);
  Ref first = g.reduce(ReduceKind::Min, placesOf(g, lines.line, extreme, lines.place, lines.extent), {1}, true);
  g.set(op->getResult(0), g.reshape(extreme, typeOf(op->getResult(0)).getShape()));
  g.set(op->getResult(1), g.reshape(first, typeOf(op->getResult(1)).getShape()));
}

void lowerProd(GraphBuilder &g, aten::ProdDimIntOp op) {
  RankedTensorType type = typeOf(op.getResult());
  Type compute = getComputeType(type.getElementType());
  Ref product = g.reduce(ReduceKind::Mul, g.cast(g.get(op.getSelf()), compute), {static_cast<int64_t>(op.getDim())},
                         op.getKeepdim());
  g.set(op.getResult(), g.reshape(g.cast(product, type.getElementType()), type.getShape()));
}

} // namespace

Lowered lowerScanOp(GraphBuilder &g, Operation *op) {
  auto done = [](auto &&lower) -> Lowered {
    lower();
    return success();
  };
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::CumsumOp) { return done([&] { lowerScan(g, op, ReduceKind::Add); }); })
      .Case([&](aten::CumprodOp) { return done([&] { lowerScan(g, op, ReduceKind::Mul); }); })
      .Case([&](aten::LogcumsumexpOp scan) { return done([&] { lowerLogCumSumExp(g, scan); }); })
      .Case([&](aten::CummaxOp) { return done([&] { lowerCumulativeExtreme(g, op, ReduceKind::Max); }); })
      .Case([&](aten::CumminOp) { return done([&] { lowerCumulativeExtreme(g, op, ReduceKind::Min); }); })
      .Case([&](aten::MaxDimOp) { return done([&] { lowerExtreme(g, op, ReduceKind::Max); }); })
      .Case([&](aten::MinDimOp) { return done([&] { lowerExtreme(g, op, ReduceKind::Min); }); })
      .Case([&](aten::ProdDimIntOp prod) { return done([&] { lowerProd(g, prod); }); })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
