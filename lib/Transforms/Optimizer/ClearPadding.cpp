//===- ClearPadding.cpp - What is no segment stays zero -------------------===//
//
// [Note: padding]
// Elements of a flat buffer that are in no segment are zero in parameters and states,
// before and after a step. An optimizer's arithmetic runs over them too: most of it
// makes zeros of zeros, some (a clamp to at least 1e-6, an exponential) does not. What
// is returned into a flat buffer and is not known to be zero there is set to zero; a
// value inside the step may be anything.
//
//===----------------------------------------------------------------------===//

#include "Decompose.h"

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Spmd/Roles.h"

#include <algorithm>

using namespace mlir;
using namespace spmd;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// What the elements of a chunk are that are in no segment: unknown may be NaN or infinite, the others are finite.
/// Values computed from constants are taken not to overflow or vanish.
enum class Padding { zero, positive, nonzero, finite, unknown };

class PaddingAnalysis {
public:
  Padding of(Value value) {
    auto [found, isNew] = known.try_emplace(value, Padding::unknown);
    if (!isNew)
      return found->second;
    Padding padding = compute(value);
    return known[value] = padding;
  }

private:
  Padding compute(Value value) {
    Operation *op = value.getDefiningOp();
    // A number of its own: a learning rate may be 0. Sums are divided by where segments are too, so they are not 0.
    if (typeOf(value).getRank() == 0) {
      Padding number = op && op->getName().getDialectNamespace() == "aten" ? ofAten(op) : Padding::finite;
      bool isSum = op && llvm::is_contained({"add.Scalar", "sub.Scalar", "rsub.Scalar", "add.Tensor", "sub.Tensor"},
                                            op->getName().stripDialect());
      return isSum ? Padding::positive : number == Padding::unknown ? Padding::finite : number;
    }
    if (!op || isa<PackOp, SegmentBroadcastOp>(op))
      return Padding::zero;
    if (isa<CollectiveOpInterface, SliceOp>(op))
      return of(op->getOperand(cast<OpResult>(value).getResultNumber()));
    return op->getName().getDialectNamespace() == "aten" ? ofAten(op) : Padding::unknown;
  }

  /// `value` rounded to `type`.
  static Padding ofConstant(double value, Type type) {
    auto floatType = dyn_cast<FloatType>(type);
    if (!floatType)
      return Padding::unknown;
    llvm::APFloat rounded(value);
    bool losesInfo;
    rounded.convert(floatType.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    if (!rounded.isFinite())
      return Padding::unknown;
    return rounded.isZero() ? Padding::zero : rounded.isNegative() ? Padding::nonzero : Padding::positive;
  }

  static bool isNonzero(Padding a) { return a == Padding::positive || a == Padding::nonzero; }
  static Padding either(Padding a, Padding b) {
    if (a == b)
      return a;
    if (a == Padding::unknown || b == Padding::unknown)
      return Padding::unknown;
    return isNonzero(a) && isNonzero(b) ? Padding::nonzero : Padding::finite;
  }
  static Padding sum(Padding a, Padding b) {
    if (a == Padding::zero || b == Padding::zero)
      return a == Padding::zero ? b : a;
    if (a == Padding::unknown || b == Padding::unknown)
      return Padding::unknown;
    return a == Padding::positive && b == a ? a : Padding::finite; // else they may cancel
  }
  static Padding product(Padding a, Padding b) {
    if (a == Padding::unknown || b == Padding::unknown)
      return Padding::unknown; // 0 times infinity
    if (a == Padding::zero || b == Padding::zero)
      return Padding::zero;
    return either(a, b);
  }
  static Padding quotient(Padding a, Padding b) { return isNonzero(b) ? product(a, b) : Padding::unknown; }

  Padding ofAten(Operation *op) {
    StringRef name = op->getName().stripDialect();
    auto operand = [&](unsigned index) { return of(op->getOperand(index)); };
    auto constant = [&](StringRef attribute, double otherwise) {
      Attribute scalar = op->getAttr(attribute);
      return ofConstant(scalar ? aten::getScalarValue(scalar) : otherwise, typeOf(op->getResult(0)).getElementType());
    };
    auto isOneOf = [&](std::initializer_list<StringRef> names) { return llvm::is_contained(names, name); };
    Padding first = op->getNumOperands() ? operand(0) : Padding::unknown;

    if (isOneOf({"alias", "clone", "detach", "sign", "sgn"}))
      return first;
    if (name == "_to_copy") { // 0.3 is an integer's 0, and 1e-10 that of f16
      auto from = dyn_cast<FloatType>(typeOf(op->getOperand(0)).getElementType());
      auto to = dyn_cast<FloatType>(typeOf(op->getResult(0)).getElementType());
      bool isExact = from && to && llvm::APFloat::isRepresentableBy(from.getFloatSemantics(), to.getFloatSemantics());
      return isExact || first == Padding::zero ? first : Padding::unknown;
    }
    if (name == "scalar_tensor")
      return constant("s", 0);
    if (name == "neg")
      return negated(first);
    if (name == "abs")
      return first == Padding::nonzero ? Padding::positive : first;
    if (name == "sqrt")
      return first == Padding::zero || first == Padding::positive ? first : Padding::unknown;
    if (name == "rsqrt")
      return first == Padding::positive ? first : Padding::unknown;
    if (name == "reciprocal")
      return isNonzero(first) ? first : Padding::unknown;
    if (name == "exp")
      return first == Padding::zero ? Padding::positive : Padding::unknown;
    // f(0) = 0
    if (isOneOf({"sin", "tan", "tanh", "asin", "atan", "sinh", "asinh", "erf", "expm1", "log1p", "relu", "trunc",
                 "floor", "ceil", "round", "frac"}))
      return first == Padding::zero ? Padding::zero : Padding::unknown;
    if (isOneOf({"add.Scalar", "sub.Scalar"})) {
      Padding other = product(constant("other", 0), constant("alpha", 1));
      return sum(first, name == "sub.Scalar" ? negated(other) : other);
    }
    if (name == "rsub.Scalar")
      return sum(negated(product(first, constant("alpha", 1))), constant("other", 0));
    if (name == "add.Tensor")
      return sum(first, product(operand(1), constant("alpha", 1)));
    if (name == "sub.Tensor")
      return sum(first, negated(product(operand(1), constant("alpha", 1))));
    if (name == "mul.Scalar")
      return product(first, constant("other", 1));
    if (name == "mul.Tensor")
      return product(first, operand(1));
    if (name == "div.Scalar")
      return quotient(first, constant("other", 1));
    if (name == "div.Tensor")
      return quotient(first, operand(1));
    if (name == "addcmul")
      return sum(first, product(product(operand(1), operand(2)), constant("value", 1)));
    if (name == "addcdiv")
      return sum(first, product(quotient(operand(1), operand(2)), constant("value", 1)));
    if (isOneOf({"lerp.Scalar", "lerp.Tensor"})) {
      Padding ends = either(first, operand(1)), weight = name == "lerp.Tensor" ? operand(2) : constant("weight", 0);
      if (ends == Padding::unknown || weight == Padding::unknown)
        return Padding::unknown;
      return ends == Padding::zero ? ends : Padding::finite;
    }
    if (isOneOf({"maximum", "minimum"}))
      return either(first, operand(1));
    if (name == "where.self")
      return either(operand(1), operand(2));
    if (name == "pow.Tensor_Scalar") {
      Padding exponent = constant("exponent", 0);
      bool keeps = exponent == Padding::positive ? first == Padding::zero || first == Padding::positive
                                                 : exponent == Padding::nonzero && first == Padding::positive;
      return keeps ? first : Padding::unknown;
    }
    if (isOneOf({"clamp", "clamp_min", "clamp_max"})) {
      if (first == Padding::unknown)
        return first;
      Attribute min = op->getAttr("min"), max = op->getAttr("max");
      double zero = min ? std::max(0.0, aten::getScalarValue(min)) : 0.0;
      zero = max ? std::min(zero, aten::getScalarValue(max)) : zero;
      return first == Padding::zero ? ofConstant(zero, typeOf(op->getResult(0)).getElementType()) : Padding::unknown;
    }
    return Padding::unknown;
  }

  static Padding negated(Padding a) { return a == Padding::positive ? Padding::nonzero : a; }

  llvm::DenseMap<Value, Padding> known;
};
} // namespace

/// `value` in segments, zero elsewhere.
static Value clear(Value value, ShardUnitOp unit, RewriterBase &rewriter) {
  Location loc = value.getLoc();
  RankedTensorType type = typeOf(value);
  auto replicated = [&](ArrayRef<int64_t> shape, Type elementType) {
    Attribute encoding;
    if (isa_and_nonnull<ShardingAttr>(type.getEncoding()))
      encoding = ShardingAttr::get(type.getContext(), shape, AxisState::replicated());
    return RankedTensorType::get(shape, elementType, encoding);
  };
  Type flag = rewriter.getI1Type();
  int64_t segments = unit.getLayout().getSegments().size();
  Value table = aten::ConstantOp::create(rewriter, loc, replicated({segments}, flag),
                                         DenseElementsAttr::get(RankedTensorType::get({segments}, flag), true));
  Value inside = SegmentBroadcastOp::create(rewriter, loc, type.clone(flag), table,
                                            FlatSymbolRefAttr::get(unit.getSymNameAttr()));
  Value zero = aten::ScalarTensorOp::create(rewriter, loc, replicated({}, type.getElementType()),
                                            rewriter.getI64IntegerAttr(0));
  return aten::WhereSelfOp::create(rewriter, loc, type, inside, value, zero);
}

void spmd::clearPadding(func::FuncOp func, RewriterBase &rewriter, function_ref<void(Operation *)> setSource) {
  PaddingAnalysis analysis;
  Operation *terminator = func.getBody().front().getTerminator();
  for (OpOperand &returned : terminator->getOpOperands()) {
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(func, returned.getOperandNumber()));
    auto shard = update ? dyn_cast<ShardAttr>(update.getArg()) : ShardAttr();
    if (!shard)
      continue;
    // Parameters that ranks have whole are gathered from chunks.
    OpOperand *chunk = &returned;
    if (auto gather = returned.get().getDefiningOp<AllGatherOp>(); gather && gather.getUnitAttr() == shard.getUnit())
      chunk = &gather.getInputMutable();
    if (analysis.of(chunk->get()) == Padding::zero)
      continue;
    auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(func, shard.getUnit());
    Operation *def = chunk->get().getDefiningOp();
    setSource(def);
    rewriter.setInsertionPointAfter(def);
    Value cleared = clear(chunk->get(), unit, rewriter);
    rewriter.modifyOpInPlace(chunk->getOwner(), [&] { chunk->set(cleared); });
  }
}
