//===- DecomposeForeach.cpp - _foreach ops as arithmetic ------------------===//

#include "Decompose.h"
#include "UpdateBuilder.h"

#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

namespace {
/// One position of a list op.
struct Position {
  UpdateBuilder &b;
  unsigned index;

  /// The position's entry of a list of scalars; in chunk form, all entries.
  Number scalar(ArrayAttr scalars) {
    SmallVector<double> values = llvm::map_to_vector(scalars, getScalarValue);
    if (!b.isChunk())
      return values[index];
    return b.toElements(b.fromSegments(values));
  }
  Value operand(ValueRange list) { return b.align(list[index]); }
  Value divisor(ValueRange list) { return b.alignDivisor(list[index]); }
};
} // namespace

/// `scalars` of _foreach_addcmul.Tensor: one entry per position or segment.
static Value scalarEntry(UpdateBuilder &b, RewriterBase &rewriter, Operation *op, Value scalars, unsigned index) {
  if (b.isChunk())
    return b.align(scalars);
  auto type = typeOf(scalars);
  Value entry = SelectIntOp::create(rewriter, op->getLoc(), RankedTensorType::get({}, type.getElementType()), scalars,
                                    rewriter.getI64IntegerAttr(0), rewriter.getI64IntegerAttr(index));
  return b.align(entry);
}

static FailureOr<Value> decomposeNorm(ForeachNormScalarOp op, RewriterBase &rewriter, unsigned index) {
  Value self = op.getSelf()[index];
  auto result = typeOf(op.getOuts()[index]);
  double order = getScalarValue(op.getOrd());
  if (!op.getUnitAttr()) {
    auto type = typeOf(self);
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    return Value(LinalgVectorNormOp::create(rewriter, op.getLoc(), result, self, op.getOrd(),
                                            rewriter.getDenseI64ArrayAttr(dims), rewriter.getBoolAttr(false),
                                            op.getDtypeAttr()));
  }
  if (order != 2 && !(std::isinf(order) && order > 0))
    return op.emitOpError() << "of order " << order << " has no form on a flat buffer, expected 2 or inf";
  if (op.getDtypeAttr()) {
    auto type = typeOf(self);
    if (type.getElementType() != result.getElementType())
      self = ToCopyOp::create(rewriter, op.getLoc(), type.clone(result.getElementType()), self, op.getDtypeAttr());
  }
  auto kind = ReduceKindAttr::get(op.getContext(), order == 2 ? ReduceKind::norm2 : ReduceKind::max);
  return Value(SegmentNormOp::create(rewriter, op.getLoc(), result, self, op.getUnitAttr(), kind));
}

/// The op at one position, or on a chunk. There a number is 1 in the padding: it may be, or become part of, a divisor;
/// and it does not decide the type that a comparison is done in.
static Value decomposeMap(ForeachMapOp op, RewriterBase &rewriter, UpdateBuilder &b, unsigned index) {
  SmallVector<Value> operands;
  unsigned size = op.getNumResults();
  auto dtypeOf = [](Value value) { return typeOf(value).getElementType(); };
  bool compares = b.isChunk() && !isa<FloatType>(b.getType().getElementType());
  Type chunkDtype;
  for (Value operand : op.getOperands())
    if (compares && !b.isTable(operand) && isa<FloatType>(dtypeOf(operand)))
      chunkDtype = dtypeOf(operand);
  for (unsigned list = 0; list * size < op.getOperands().size(); ++list) {
    Value operand = op.getOperands()[list * size + index];
    bool isNumber = isa<FloatType>(dtypeOf(operand));
    if (chunkDtype && isNumber && b.isTable(operand))
      operand = b.cast(operand, chunkDtype);
    operands.push_back(!b.isChunk() ? operand : isNumber ? b.alignDivisor(operand) : b.align(operand));
  }
  auto result = typeOf(op.getResult(index));
  std::string name = ("aten." + op.getOp()).str();
  bool rounds = name == ToCopyOp::getOperationName(); // what is asked for, to a type of its own
  OperationState state(op.getLoc(), name, operands,
                       b.isChunk() && !rounds ? result.clone(getComputeType(result.getElementType())) : result,
                       op.getOptions().getValue());
  return rewriter.create(state)->getResult(0);
}

static bool isIn(OpOperand &use, MutableOperandRange list) {
  return llvm::any_of(list, [&](OpOperand &entry) { return &entry == &use; });
}

/// A list op divides by the value.
static bool isDivisor(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    return TypeSwitch<Operation *, bool>(use.getOwner())
        .Case([&](ForeachDivListOp div) { return isIn(use, div.getOtherMutable()); })
        .Case<ForeachAddcdivScalarOp, ForeachAddcdivScalarListOp, ForeachAddcdivTensorOp>(
            [&](auto addcdiv) { return isIn(use, addcdiv.getTensor2Mutable()); })
        .Default(false);
  });
}

static Value decomposePosition(Operation *op, RewriterBase &rewriter, Position at) {
  UpdateBuilder &b = at.b;
  return TypeSwitch<Operation *, Value>(op)
      // self + scalar
      .Case([&](ForeachAddScalarOp foreach) {
        return b.add(at.operand(foreach.getSelf()), getScalarValue(foreach.getScalar()));
      })
      .Case([&](ForeachAddScalarListOp foreach) {
        return b.add(at.operand(foreach.getSelf()), at.scalar(foreach.getScalars()));
      })
      .Case([&](ForeachAddListOp foreach) {
        return b.add(at.operand(foreach.getSelf()), at.operand(foreach.getOther()), getScalarValue(foreach.getAlpha()));
      })
      .Case([&](ForeachAddTensorOp foreach) {
        return b.add(at.operand(foreach.getSelf()), b.align(foreach.getOther()), getScalarValue(foreach.getAlpha()));
      })
      // self - scalar
      .Case([&](ForeachSubScalarOp foreach) {
        return b.sub(at.operand(foreach.getSelf()), getScalarValue(foreach.getScalar()));
      })
      .Case([&](ForeachSubScalarListOp foreach) {
        return b.sub(at.operand(foreach.getSelf()), at.scalar(foreach.getScalars()));
      })
      .Case([&](ForeachSubListOp foreach) {
        return b.sub(at.operand(foreach.getSelf()), at.operand(foreach.getOther()), getScalarValue(foreach.getAlpha()));
      })
      // self * scalar
      .Case([&](ForeachMulScalarOp foreach) {
        return b.mul(at.operand(foreach.getSelf()), getScalarValue(foreach.getScalar()));
      })
      .Case([&](ForeachMulScalarListOp foreach) {
        return b.mul(at.operand(foreach.getSelf()), at.scalar(foreach.getScalars()));
      })
      .Case([&](ForeachMulListOp foreach) {
        Value other =
            isDivisor(op->getResult(at.index)) ? at.divisor(foreach.getOther()) : at.operand(foreach.getOther());
        return b.mul(at.operand(foreach.getSelf()), other);
      })
      .Case(
          [&](ForeachMulTensorOp foreach) { return b.mul(at.operand(foreach.getSelf()), b.align(foreach.getOther())); })
      // self / scalar
      .Case([&](ForeachDivScalarOp foreach) {
        return b.div(at.operand(foreach.getSelf()), getScalarValue(foreach.getScalar()));
      })
      .Case([&](ForeachDivScalarListOp foreach) {
        // By 1 / x: a spread list of scalars is 0 in the padding.
        SmallVector<double> reciprocals;
        for (Attribute scalar : foreach.getScalars())
          reciprocals.push_back(1 / getScalarValue(scalar));
        if (!b.isChunk() || llvm::all_equal(foreach.getScalars()))
          return b.div(at.operand(foreach.getSelf()), at.scalar(foreach.getScalars()));
        return b.mul(at.operand(foreach.getSelf()), b.toElements(b.fromSegments(reciprocals)));
      })
      .Case([&](ForeachDivListOp foreach) {
        return b.div(at.operand(foreach.getSelf()), at.divisor(foreach.getOther()));
      })
      .Case(
          [&](ForeachDivTensorOp foreach) { return b.div(at.operand(foreach.getSelf()), b.align(foreach.getOther())); })
      // functions
      .Case([&](ForeachNegOp foreach) { return b.unary<NegOp>(at.operand(foreach.getSelf())); })
      .Case([&](ForeachSqrtOp foreach) { return b.unary<SqrtOp>(at.operand(foreach.getSelf())); })
      .Case([&](ForeachReciprocalOp foreach) { return b.unary<ReciprocalOp>(at.operand(foreach.getSelf())); })
      .Case([&](ForeachPowScalarAndTensorOp foreach) {
        return b.pow(getScalarValue(foreach.getSelf()), at.operand(foreach.getExponent()));
      })
      .Case([&](ForeachPowScalarOp foreach) {
        return b.pow(at.operand(foreach.getSelf()), Number(getScalarValue(foreach.getExponent())));
      })
      .Case([&](ForeachPowScalarListOp foreach) {
        return b.pow(at.operand(foreach.getSelf()), at.scalar(foreach.getExponent()));
      })
      .Case([&](ForeachPowListOp foreach) {
        return b.pow(at.operand(foreach.getSelf()), Number(at.operand(foreach.getExponent())));
      })
      .Case([&](ForeachLerpScalarOp foreach) {
        return b.lerp(at.operand(foreach.getSelf()), at.operand(foreach.getTensors1()),
                      getScalarValue(foreach.getWeight()));
      })
      .Case([&](ForeachLerpScalarListOp foreach) {
        return b.lerp(at.operand(foreach.getSelf()), at.operand(foreach.getTensors1()), at.scalar(foreach.getWeight()));
      })
      .Case([&](ForeachLerpListOp foreach) {
        return b.lerp(at.operand(foreach.getSelf()), at.operand(foreach.getTensors1()),
                      at.operand(foreach.getWeights()));
      })
      // self + value * tensor1 (* or /) tensor2
      .Case([&](ForeachAddcmulScalarOp foreach) {
        return b.addcmul(at.operand(foreach.getSelf()), at.operand(foreach.getTensor1()),
                         at.operand(foreach.getTensor2()), getScalarValue(foreach.getValue()));
      })
      .Case([&](ForeachAddcmulScalarListOp foreach) {
        return b.addcmul(at.operand(foreach.getSelf()), at.operand(foreach.getTensor1()),
                         at.operand(foreach.getTensor2()), at.scalar(foreach.getScalars()));
      })
      .Case([&](ForeachAddcmulTensorOp foreach) {
        return b.addcmul(at.operand(foreach.getSelf()), at.operand(foreach.getTensor1()),
                         at.operand(foreach.getTensor2()),
                         scalarEntry(b, rewriter, op, foreach.getScalars(), at.index));
      })
      .Case([&](ForeachAddcdivScalarOp foreach) {
        return b.addcdiv(at.operand(foreach.getSelf()), at.operand(foreach.getTensor1()),
                         at.divisor(foreach.getTensor2()), getScalarValue(foreach.getValue()));
      })
      .Case([&](ForeachAddcdivScalarListOp foreach) {
        return b.addcdiv(at.operand(foreach.getSelf()), at.operand(foreach.getTensor1()),
                         at.divisor(foreach.getTensor2()), at.scalar(foreach.getScalars()));
      })
      .Case([&](ForeachAddcdivTensorOp foreach) {
        return b.addcdiv(at.operand(foreach.getSelf()), at.operand(foreach.getTensor1()),
                         at.divisor(foreach.getTensor2()),
                         scalarEntry(b, rewriter, op, foreach.getScalars(), at.index));
      })
      // bounds
      .Case([&](ForeachMaximumListOp foreach) {
        return b.binary<MaximumOp>(at.operand(foreach.getSelf()), at.operand(foreach.getOther()));
      })
      .Case([&](ForeachMaximumScalarOp foreach) {
        return b.clamp(at.operand(foreach.getSelf()), getScalarValue(foreach.getScalar()), std::nullopt);
      })
      .Case([&](ForeachMinimumScalarOp foreach) {
        return b.clamp(at.operand(foreach.getSelf()), std::nullopt, getScalarValue(foreach.getScalar()));
      })
      .Default(Value());
}

LogicalResult spmd::decomposeForeach(ListOpInterface op, RewriterBase &rewriter) {
  SmallVector<Value> values;
  for (unsigned index = 0; index < op->getNumResults(); ++index) {
    if (auto norm = dyn_cast<ForeachNormScalarOp>(*op)) {
      FailureOr<Value> value = decomposeNorm(norm, rewriter, index);
      if (failed(value))
        return failure();
      values.push_back(*value);
      continue;
    }
    auto type = typeOf(op->getResult(index));
    // Segments are numbered by the lists of scalars alone: groups are not used.
    SmallVector<int64_t> segments;
    if (StringRef scalars = op.getScalarsName(); !scalars.empty())
      if (auto list = op->getAttrOfType<ArrayAttr>(scalars))
        segments.assign(list.size(), 0);
    UpdateBuilder b(rewriter, op->getLoc(), type, op.getUnitAttr(), segments);
    auto map = dyn_cast<ForeachMapOp>(*op);
    Value value = map ? decomposeMap(map, rewriter, b, index) : decomposePosition(op, rewriter, {b, index});
    if (!value)
      return op->emitOpError() << "has no decomposition";
    // A list op rounds once, whatever it is made of.
    values.push_back(b.round(value, type));
  }
  rewriter.replaceOp(op, values);
  return success();
}
