//===- BodyBuilder.cpp - the scalar code of a cluster ---------------------===//

#include "BodyBuilder.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Kernel/ArgumentType.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

AffineMap getAccessMap(MLIRContext *context, const Layout &layout, ArrayRef<int64_t> dims) {
  AffineExpr index = getAffineConstantExpr(layout.getOffset(), context);
  for (auto [dim, stride] : llvm::enumerate(*layout.getStrides(dims)))
    index = index + getAffineDimExpr(dim, context) * stride;
  for (auto [axis, stride] : llvm::enumerate(layout.getCoordStrides()))
    index = index + getAffineSymbolExpr(axis, context) * stride;
  return AffineMap::get(dims.size(), layout.getCoordStrides().size(), index);
}

Value BodyBuilder::makeConstant(Attribute value, Type type) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return arith::ConstantOp::create(b, b.getFloatAttr(type, number.getValueAsDouble()));
  APInt number = cast<IntegerAttr>(value).getValue();
  if (!type.isUnsignedInteger())
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, number));
  Type wide = getValueType(type);
  return arith::ConstantOp::create(b, b.getIntegerAttr(wide, number.zext(wide.getIntOrFloatBitWidth())));
}

void BodyBuilder::bind(const Read &read, Value argument) {
  if (Type type = read.node->elementType; type.isUnsignedInteger())
    argument = arith::ExtUIOp::create(b, getValueType(type), argument);
  arguments.push_back({read, argument});
}

Value BodyBuilder::get(Node *member) {
  Value value = scalars.lookup(member);
  if (!member->elementType.isUnsignedInteger())
    return value;
  return arith::TruncIOp::create(b, kernel::getArgumentType(member->elementType), value);
}

Value BodyBuilder::makeIndex(const Layout &layout) {
  Value index;
  auto add = [&](Value term) { index = index ? arith::AddIOp::create(b, index, term) : term; };
  auto scaled = [&](Value value, int64_t stride) -> Value {
    if (stride == 1)
      return value;
    return arith::MulIOp::create(b, value, arith::ConstantIndexOp::create(b, stride));
  };
  for (auto [dim, stride] : llvm::enumerate(*layout.getStrides(dims)))
    if (stride != 0)
      add(scaled(kernel::IndexOp::create(b, b.getIndexType(), dim), stride));
  for (auto [axis, stride] : llvm::enumerate(layout.getCoordStrides()))
    if (stride != 0)
      add(scaled(kernel::CoordOp::create(b, b.getIndexType(), axis), stride));
  if (layout.getOffset() != 0 || !index)
    add(arith::ConstantIndexOp::create(b, layout.getOffset()));
  return arith::IndexCastOp::create(b, b.getI64Type(), index);
}

Value BodyBuilder::makeIota(Node *iota, const Layout &layout) {
  bool isFloat = isa<FloatType>(iota->elementType);
  ScalarBuilder s(b, isFloat ? Type(b.getF64Type()) : Type(b.getI64Type()));
  Value value = castScalar(b, makeIndex(layout), s.type);
  if (iota->step != 1)
    value = s.mul(s.constant(iota->step), value);
  if (iota->start != 0)
    value = s.add(s.constant(iota->start), value);
  return castScalar(b, value, iota->elementType);
}

/// A small table has no memory of its own: its entries are chosen by index.
Value BodyBuilder::makeTable(DenseElementsAttr table, const Layout &layout, Type type) {
  Value index = makeIndex(layout);
  SmallVector<Attribute> entries = llvm::to_vector(table.getValues<Attribute>());
  Value value = makeConstant(entries.back(), type);
  for (int64_t i = static_cast<int64_t>(entries.size()) - 2; i >= 0; --i) {
    Value here = arith::ConstantOp::create(b, b.getI64IntegerAttr(i));
    Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, here);
    value = arith::SelectOp::create(b, isHere, makeConstant(entries[i], type), value);
  }
  return value;
}

Value BodyBuilder::read(const Ref &ref, const Layout &position) {
  if (Value scalar = scalars.lookup(ref.node))
    return scalar;
  Read read{ref.node, *getReadLayout(ref, position), ref.guarded};
  for (auto &[bound, argument] : arguments)
    if (bound == read)
      return argument;
  for (auto &[known, value] : computed)
    if (known == read)
      return value;

  Value value;
  Node *node = ref.node;
  if (node->kind == NodeKind::Iota) {
    value = makeIota(node, read.layout);
  } else if (node->kind == NodeKind::SegmentBroadcast) {
    Attribute table = node->inputs.front().node->constant;
    if (auto elements = dyn_cast<ElementsAttr>(table))
      value = kernel::SegmentConstantOp::create(b, node->elementType, elements);
    else
      value = makeConstant(table, node->elementType);
  } else if (auto elements = dyn_cast<DenseElementsAttr>(node->constant)) {
    value = makeTable(elements, read.layout, node->elementType);
  } else {
    value = makeConstant(node->constant, node->elementType);
  }
  computed.push_back({read, value});
  return value;
}

Value BodyBuilder::reduce(Node *node) {
  const Ref &input = node->inputs.front();
  Layout position = getFirstPosition(node);
  Digit digit = *getReducedDigit(node, position);
  SmallVector<int64_t> over;
  int64_t inner = 1;
  for (int64_t dim = static_cast<int64_t>(dims.size()) - 1; dim >= 0; --dim) {
    if (inner == digit.inner)
      over.push_back(dim);
    inner *= dims[dim];
    if (!over.empty())
      break;
  }
  return kernel::ReduceOp::create(b, node->reduceKind, read(input, position), over);
}

void BodyBuilder::computeMembers() {
  for (Node *node : cluster.members) {
    b.setLoc(node->loc);
    if (node->kind == NodeKind::Reduce) {
      scalars[node] = reduce(node);
      continue;
    }
    SmallVector<Value> args;
    for (const Ref &input : node->inputs)
      args.push_back(read(input, cluster.positions.find(node)->second));
    scalars[node] = node->body(b, args);
  }
}

} // namespace spmd::fusion
