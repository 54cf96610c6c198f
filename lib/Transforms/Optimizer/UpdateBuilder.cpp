//===- UpdateBuilder.cpp - Arithmetic of one list position or chunk -------===//

#include "UpdateBuilder.h"

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// A table is on every rank, also where the chunk is not.
RankedTensorType UpdateBuilder::tableType(Type elementType, int64_t segments) {
  Attribute encoding;
  if (isa_and_nonnull<ShardingAttr>(type.getEncoding()))
    encoding = ShardingAttr::get(type.getContext(), {segments}, AxisState::replicated());
  return RankedTensorType::get({segments}, elementType, encoding);
}

Value UpdateBuilder::constantTable(ArrayRef<double> perSegment) {
  auto plain = RankedTensorType::get({static_cast<int64_t>(perSegment.size())}, rewriter.getF64Type());
  return ConstantOp::create(rewriter, loc, tableType(rewriter.getF64Type(), perSegment.size()),
                            DenseElementsAttr::get(plain, perSegment));
}

Value UpdateBuilder::ones(int64_t segments) { return constantTable(SmallVector<double>(segments, 1.0)); }

Number UpdateBuilder::fromSegments(ArrayRef<double> perSegment) {
  if (llvm::all_equal(perSegment))
    return perSegment.front();
  return constantTable(perSegment);
}

Number UpdateBuilder::fromGroups(ArrayRef<double> perGroup) {
  SmallVector<double> perSegment;
  for (int64_t group : groups)
    perSegment.push_back(perGroup[group]);
  return fromSegments(perSegment);
}

Number UpdateBuilder::fromGroups(ValueRange perGroup) {
  if (llvm::all_equal(groups))
    return toF64(perGroup[groups.front()]);
  SmallVector<Value> perSegment;
  for (int64_t group : groups)
    perSegment.push_back(toF64(perGroup[group]));
  return Value(StackOp::create(rewriter, loc, tableType(rewriter.getF64Type(), groups.size()), perSegment,
                               rewriter.getI64IntegerAttr(0)));
}

Value UpdateBuilder::cast(Value value, Type elementType) {
  RankedTensorType from = typeOf(value);
  if (from.getElementType() == elementType)
    return value;
  return ToCopyOp::create(rewriter, loc, from.clone(elementType), value, TypeAttr::get(elementType));
}

Value UpdateBuilder::toF64(Value value) { return cast(value, rewriter.getF64Type()); }

bool UpdateBuilder::isTable(Value value) {
  RankedTensorType from = typeOf(value);
  if (!unit || from.getRank() != 1)
    return false;
  // By state where there is one: a table could be as long as a chunk.
  auto owned = [](RankedTensorType tensor) {
    auto sharding = dyn_cast_or_null<ShardingAttr>(tensor.getEncoding());
    return sharding && llvm::any_of(sharding.getStates(), [](const AxisState &state) { return state.isOwned(); });
  };
  return owned(from) != owned(type) || from.getShape() != type.getShape();
}

Value UpdateBuilder::broadcast(Value table) {
  return SegmentBroadcastOp::create(rewriter, loc, type.clone(typeOf(table).getElementType()), table, unit);
}

Value UpdateBuilder::align(Value operand) {
  // A list op gives what it is written to its element type; converting what
  // meets it is the same up to rounding and keeps f64 scalars out of the b.
  if (isa<FloatType>(type.getElementType()) && isa<FloatType>(typeOf(operand).getElementType()))
    operand = cast(operand, type.getElementType());
  return isTable(operand) ? broadcast(operand) : operand;
}

Value UpdateBuilder::round(Value value, Type stored) {
  return value ? cast(value, llvm::cast<RankedTensorType>(stored).getElementType()) : value;
}

Value UpdateBuilder::alignDivisor(Value operand) {
  if (!isTable(operand))
    return align(operand);
  // Exactly 0 in segments and 1 in the padding; in the operand's own type, where elements are flags.
  RankedTensorType table = typeOf(operand);
  Value padding = rsub(align(cast(ones(table.getDimSize(0)), table.getElementType())), 1);
  return add(align(operand), padding);
}

Number UpdateBuilder::toElements(Number scalar) {
  if (scalar.constant)
    return scalar;
  return align(cast(scalar.value, type.getElementType()));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

RankedTensorType UpdateBuilder::larger(Value a, Value b) {
  return typeOf(a).getRank() >= typeOf(b).getRank() ? typeOf(a) : typeOf(b);
}

Value UpdateBuilder::add(Value a, Number b, double alpha) {
  if (b.constant)
    return AddScalarOp::create(rewriter, loc, typeOf(a), a, attr(*b.constant * alpha), rewriter.getI64IntegerAttr(1));
  Attribute by = alpha == 1 ? Attribute(rewriter.getI64IntegerAttr(1)) : attr(alpha);
  return AddTensorOp::create(rewriter, loc, larger(a, b.value), a, b.value, by);
}

Value UpdateBuilder::sub(Value a, Number b, double alpha) {
  if (b.constant)
    return SubScalarOp::create(rewriter, loc, typeOf(a), a, attr(*b.constant * alpha), rewriter.getI64IntegerAttr(1));
  Attribute by = alpha == 1 ? Attribute(rewriter.getI64IntegerAttr(1)) : attr(alpha);
  return SubTensorOp::create(rewriter, loc, larger(a, b.value), a, b.value, by);
}

Value UpdateBuilder::rsub(Value a, double b) {
  return RsubScalarOp::create(rewriter, loc, typeOf(a), a, attr(b), rewriter.getI64IntegerAttr(1));
}

Value UpdateBuilder::mul(Value a, Number b) {
  if (b.constant)
    return MulScalarOp::create(rewriter, loc, typeOf(a), a, attr(*b.constant));
  return binary<MulTensorOp>(a, b.value);
}

Value UpdateBuilder::div(Value a, Number b) {
  if (b.constant)
    return DivScalarOp::create(rewriter, loc, typeOf(a), a, attr(*b.constant));
  return binary<DivTensorOp>(a, b.value);
}

Number UpdateBuilder::mul(Number a, Number b) {
  if (a.constant && b.constant)
    return *a.constant * *b.constant;
  return a.constant ? mul(b.value, a) : mul(a.value, b);
}

Value UpdateBuilder::pow(Number base, Value exponent) {
  if (base.constant)
    return PowScalarOp::create(rewriter, loc, typeOf(exponent), attr(*base.constant), exponent);
  return binary<PowTensorTensorOp>(base.value, exponent);
}

Value UpdateBuilder::pow(Value base, Number exponent) {
  if (exponent.constant)
    return PowTensorScalarOp::create(rewriter, loc, typeOf(base), base, attr(*exponent.constant));
  return binary<PowTensorTensorOp>(base, exponent.value);
}

Value UpdateBuilder::lerp(Value from, Value to, Number weight) {
  if (weight.constant)
    return LerpScalarOp::create(rewriter, loc, larger(from, to), from, to, attr(*weight.constant));
  return add(from, mul(sub(to, from), weight));
}

Value UpdateBuilder::addcmul(Value a, Value b, Value c, Number value) {
  if (!value.constant)
    return addcmul(a, mul(b, value), c, 1.0);
  return AddcmulOp::create(rewriter, loc, typeOf(a), a, b, c, attr(*value.constant));
}

Value UpdateBuilder::addcdiv(Value a, Value b, Value c, Number value) {
  if (!value.constant)
    return addcdiv(a, mul(b, value), c, 1.0);
  return AddcdivOp::create(rewriter, loc, typeOf(a), a, b, c, attr(*value.constant));
}

Value UpdateBuilder::clamp(Value a, std::optional<double> min, std::optional<double> max) {
  return ClampOp::create(rewriter, loc, typeOf(a), a, min ? attr(*min) : Attribute(), max ? attr(*max) : Attribute());
}
