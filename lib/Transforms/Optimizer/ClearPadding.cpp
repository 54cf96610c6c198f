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
#include "dialects/Spmd/Roles.h"

#include <cmath>

using namespace mlir;
using namespace spmd;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// What the elements of a chunk are that are in no segment. A number of its own, a learning rate, counts as nonzero.
enum class Padding { zero, nonzero, unknown };

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
    if (typeOf(value).getRank() == 0)
      return Padding::nonzero;
    if (!op || isa<PackOp, SegmentBroadcastOp>(op))
      return Padding::zero;
    if (isa<CollectiveOpInterface>(op))
      return of(op->getOperand(0));
    return op->getName().getDialectNamespace() == "aten" ? ofAten(op) : Padding::unknown;
  }

  /// A number that the op has as attribute, or `otherwise`.
  static double number(Operation *op, StringRef name, double otherwise) {
    Attribute scalar = op->getAttr(name);
    return scalar ? toDouble(scalar) : otherwise;
  }

  static Padding ofConstant(double value) {
    if (std::isnan(value))
      return Padding::unknown;
    return value == 0 ? Padding::zero : Padding::nonzero;
  }

  static Padding sum(Padding a, Padding b) {
    if (a == Padding::zero || b == Padding::zero)
      return a == Padding::zero ? b : a;
    return Padding::unknown; // they may cancel
  }
  static Padding product(Padding a, Padding b) {
    if (a == Padding::zero || b == Padding::zero)
      return Padding::zero;
    return a == Padding::unknown ? a : b;
  }
  static Padding quotient(Padding a, Padding b) { return b == Padding::nonzero ? a : Padding::unknown; }
  static Padding either(Padding a, Padding b) { return a == b ? a : Padding::unknown; }

  Padding ofAten(Operation *op) {
    auto operand = [&](unsigned index) { return of(op->getOperand(index)); };
    StringRef name = op->getName().stripDialect();
    // f(x) = 0 exactly where x = 0
    if (llvm::is_contained({"neg", "sqrt", "abs", "sign", "sgn", "_to_copy", "clone", "alias", "detach"}, name))
      return operand(0);
    // f(0) = 0
    if (llvm::is_contained({"sin", "tan", "tanh", "asin", "atan", "sinh", "asinh", "erf", "expm1", "log1p", "relu",
                            "trunc", "floor", "ceil", "round", "frac"},
                           name))
      return operand(0) == Padding::zero ? Padding::zero : Padding::unknown;
    if (llvm::is_contained({"add.Scalar", "sub.Scalar", "rsub.Scalar"}, name))
      return sum(operand(0), ofConstant(number(op, "other", 0) * number(op, "alpha", 1)));
    if (llvm::is_contained({"add.Tensor", "sub.Tensor"}, name))
      return sum(operand(0), product(operand(1), ofConstant(number(op, "alpha", 1))));
    if (name == "mul.Scalar")
      return product(operand(0), ofConstant(number(op, "other", 1)));
    if (name == "mul.Tensor")
      return product(operand(0), operand(1));
    if (name == "div.Scalar")
      return quotient(operand(0), ofConstant(number(op, "other", 1)));
    if (name == "div.Tensor")
      return quotient(operand(0), operand(1));
    if (name == "addcmul")
      return sum(operand(0), product(operand(1), operand(2)));
    if (name == "addcdiv")
      return sum(operand(0), quotient(operand(1), operand(2)));
    if (llvm::is_contained({"lerp.Scalar", "lerp.Tensor", "maximum", "minimum"}, name))
      return either(operand(0), operand(1));
    if (name == "where.self")
      return either(operand(1), operand(2));
    if (name == "pow.Tensor_Scalar")
      return number(op, "exponent", 0) > 0 ? operand(0) : Padding::unknown;
    if (llvm::is_contained({"clamp", "clamp_min", "clamp_max"}, name)) {
      bool keepsZero = number(op, "min", 0) <= 0 && number(op, "max", 0) >= 0;
      return keepsZero && operand(0) == Padding::zero ? Padding::zero : Padding::unknown;
    }
    return Padding::unknown;
  }

  llvm::DenseMap<Value, Padding> known;
};
} // namespace

/// `value` in segments, zero elsewhere.
static Value clear(Value value, ShardUnitOp unit, RewriterBase &rewriter) {
  Location loc = value.getLoc();
  RankedTensorType type = typeOf(value);
  auto replicated = [&](ArrayRef<int64_t> shape, Type elementType) {
    Attribute encoding;
    if (auto sharding = dyn_cast_or_null<ShardingAttr>(type.getEncoding()))
      encoding = ShardingAttr::get(type.getContext(), shape, SmallVector<AxisState>(sharding.getStates().size()));
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
    if (!shard || analysis.of(returned.get()) == Padding::zero)
      continue;
    auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(func, shard.getUnit());
    Operation *def = returned.get().getDefiningOp();
    setSource(def);
    rewriter.setInsertionPointAfter(def);
    Value cleared = clear(returned.get(), unit, rewriter);
    rewriter.modifyOpInPlace(terminator, [&] { returned.set(cleared); });
  }
}
