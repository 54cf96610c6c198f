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

#include "BodyPadding.h"
#include "Decompose.h"

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"

using namespace mlir;
using namespace spmd;

namespace {
class PaddingAnalysis {
public:
  Padding of(Value value) { return get(value).padding; }

private:
  struct Known {
    Padding padding = Padding::unknown;
    bool isAssumed = false; ///< of a number that is taken to be finite, or not to be 0
  };

  Known get(Value value) {
    auto [found, isNew] = known.try_emplace(value, Known());
    if (!isNew)
      return found->second;
    Known padding = compute(value);
    return known[value] = padding;
  }

  Known compute(Value value) {
    Operation *op = value.getDefiningOp();
    // A number of its own: a learning rate may be 0. Sums are divided by where segments are too, so they are not 0.
    if (typeOf(value).getRank() == 0) {
      if (auto body = dyn_cast_or_null<aten::ScalarBodyOpInterface>(op);
          body && body.hasScalarBody() && isSumByBody(body))
        return {Padding::positive, true};
      Known number = op ? ofAten(op) : Known();
      return number.padding == Padding::unknown ? Known{Padding::finite, true} : number;
    }
    if (!op)
      return {Padding::zero};
    if (auto flat = dyn_cast<PaddingOpInterface>(op)) {
      Value source = flat.getPaddingSource(cast<OpResult>(value));
      return source ? get(source) : Known{Padding::zero};
    }
    return ofAten(op);
  }

  Known ofAten(Operation *op) {
    auto iface = dyn_cast<aten::AtenOpInterface>(op);
    if (!iface)
      return {};
    if (Attribute number = iface.getFillNumber())
      return {getPaddingOfNumber(aten::getScalarValue(number), typeOf(op->getResult(0)).getElementType())};
    if (!iface.hasScalarBody()) // an element that is one of the operand's in the same place is what that is
      return iface.isPointwise() && iface.movesElements() ? get(op->getOperand(0)) : Known();
    SmallVector<Padding> operands;
    bool isAssumed = false;
    for (Value operand : op->getOperands()) {
      Known known = get(operand);
      operands.push_back(known.padding);
      isAssumed |= known.isAssumed;
    }
    Padding padding = getPaddingOfBody(iface, operands, /*decides=*/!isAssumed);
    return {padding, isAssumed && padding != Padding::zero};
  }

  llvm::DenseMap<Value, Known> known;
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
