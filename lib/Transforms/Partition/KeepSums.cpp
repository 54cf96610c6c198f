//===- KeepSums.cpp - gradients that are added up across later ------------===//
//
// [Note: sums across]
// With `accumulate=scattered` a gradient that outlives the step is a chunk like any other state, but ranks along the
// axes before the shard axis have summands of it: a step that adds to it reduces its own gradients along the shard axis
// alone. The step is partitioned as with `sharded`, where every sum is all-reduced across at once, and then these
// all-reduces are moved behind what is linear: the sum of two results is the result of the sum. Where something else
// reads a value it is all-reduced, at most once for a unit. What the step leaves is added up by a later one.
//
//===----------------------------------------------------------------------===//

#include "KeepSums.h"
#include "SameAcross.h"
#include "States.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace spmd::partition {

namespace {

class SumsAcross {
public:
  SumsAcross(const Step &step, func::FuncOp func) : step(step), func(func), builder(func) {}

  LogicalResult run();

private:
  LogicalResult takeArguments();
  void simplify();
  void addSums();
  LogicalResult keepResults();
  LogicalResult reduceWhereRead();
  bool isAcross(AllReduceOp op) const { return op.getUnitAttr() && op.getAxes() == step.replicateAxes; }
  Value sumAcross(Value sum, FlatSymbolRefAttr unit, Location loc);
  Value reduce(Value sum, FlatSymbolRefAttr unit);
  Value getZeroSum(Value value);
  void tag(Operation *op) {
    if (segment)
      op->setAttr(kSegmentAttr, segment);
  }

  const Step &step;
  func::FuncOp func;
  OpBuilder builder;
  Attribute segment;                      ///< of what is made
  llvm::SmallSetVector<unsigned, 8> kept; ///< arguments that are sums
  Sums sums;
  DenseMap<Value, FlatSymbolRefAttr> units; ///< of sums
};

RankedTensorType withOuter(Type type, AxisState::Outer outer) {
  auto tensor = cast<RankedTensorType>(type);
  auto whole = RankedTensorType::get(getGlobalShape(type), tensor.getElementType());
  return getLocalType(whole, getState(type)->within(outer));
}

} // namespace

LogicalResult SumsAcross::takeArguments() {
  builder.setInsertionPointToStart(&func.getBody().front());
  for (BlockArgument argument : func.getArguments()) {
    auto role = getArgRole<ShardAttr>(func, argument.getArgNumber());
    if (!role || role.getState() != "grad")
      continue;
    AxisState state = *getState(argument.getType());
    if (!state.isOwned() || state.outer != AxisState::Outer::replicated)
      return func.emitError()
             << "accumulate=scattered: unit " << role.getUnit()
             << " is not cut along one of two axes of the mesh, so no sum can be deferred; use --mesh with two axes "
                "and a mode that cuts the unit along the last one, or accumulate=sharded";
    kept.insert(argument.getArgNumber());
    argument.setType(withOuter(argument.getType(), AxisState::Outer::partial));
    SmallVector<OpOperand *> uses = llvm::map_to_vector(argument.getUses(), [](OpOperand &use) { return &use; });
    units[argument] = role.getUnit();
    Value whole = sumAcross(argument, role.getUnit(), func.getLoc()); // which the first reader will have in its place
    for (OpOperand *use : uses)
      use->set(whole);
  }
  return success();
}

/// Chunks are put together of equal ones, one for each parameter; here one is enough.
void SumsAcross::simplify() {
  IRRewriter rewriter(func.getContext());
  DominanceInfo dominance(func);
  eliminateCommonSubExpressions(rewriter, dominance, func);
  for (auto select : llvm::make_early_inc_range(func.getBody().front().getOps<aten::WhereSelfOp>()))
    if (select.getSelf() == select.getOther() && select.getSelf().getType() == select.getType())
      rewriter.replaceOp(select, select.getSelf());
}

Value SumsAcross::sumAcross(Value sum, FlatSymbolRefAttr unit, Location loc) {
  Attribute kinds = ReduceKindAttr::get(builder.getContext(), ReduceKind::sum);
  auto op = AllReduceOp::create(builder, loc, TypeRange{withOuter(sum.getType(), AxisState::Outer::replicated)},
                                ValueRange{sum}, step.meshRef(), step.replicateAxes, unit, builder.getArrayAttr(kinds));
  tag(op);
  return op->getResult(0);
}

/// The same in the type in which the unit's gradients are reduced.
Value SumsAcross::reduce(Value sum, FlatSymbolRefAttr unit) {
  Location loc = sum.getDefiningOp() ? sum.getLoc() : func.getLoc();
  auto type = cast<RankedTensorType>(sum.getType());
  Type wire = type.getElementType();
  for (const Unit &each : step.units)
    if (ShardUnitOp(each.op).getSymNameAttr() == unit.getAttr())
      wire = each.reduceType ? Type(each.reduceType) : each.layout.getDtype();
  auto cast = [&](Value value, Type dtype) -> Value {
    auto own = mlir::cast<RankedTensorType>(value.getType());
    if (own.getElementType() == dtype)
      return value;
    auto copy = aten::ToCopyOp::create(builder, loc, own.clone(dtype), value, dtype);
    tag(copy);
    return copy;
  };
  return cast(sumAcross(cast(sum, wire), unit, loc), type.getElementType());
}

/// Computes what is linear in sums on the sums, too.
void SumsAcross::addSums() {
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front().without_terminator())) {
    if (auto across = dyn_cast<AllReduceOp>(op); across && isAcross(across)) {
      sums[across->getResult(0)] = across->getOperand(0);
      units[across->getOperand(0)] = across.getUnitAttr();
      continue;
    }
    SmallVector<unsigned> linear;
    FlatSymbolRefAttr unit;
    for (OpOperand &operand : op.getOpOperands())
      if (auto found = sums.find(operand.get()); found != sums.end()) {
        linear.push_back(operand.getOperandNumber());
        unit = units.lookup(found->second);
      }
    if (linear.empty() || !isLinearAcross(&op, linear))
      continue;
    builder.setInsertionPointAfter(&op);
    Operation *onSums = builder.clone(op);
    for (unsigned operand : linear)
      onSums->setOperand(operand, sums.lookup(op.getOperand(operand)));
    onSums->getResult(0).setType(withOuter(op.getResult(0).getType(), AxisState::Outer::partial));
    sums[op.getResult(0)] = onSums->getResult(0);
    units[onSums->getResult(0)] = unit;
  }
}

/// Zeros are a sum of zeros.
Value SumsAcross::getZeroSum(Value value) {
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice || !isPackOfZeros(slice.getInput()))
    return {};
  builder.setInsertionPointAfter(slice);
  Operation *zeros = builder.clone(*slice);
  zeros->getResult(0).setType(withOuter(value.getType(), AxisState::Outer::partial));
  return zeros->getResult(0);
}

LogicalResult SumsAcross::keepResults() {
  Operation *terminator = func.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(func, operand.getOperandNumber()));
    std::optional<unsigned> arg = update ? findArg(func, update.getArg()) : std::nullopt;
    if (!arg || !kept.contains(*arg))
      continue;
    Value sum = sums.lookup(operand.get());
    if (!sum)
      sum = getZeroSum(operand.get());
    FlatSymbolRefAttr unit = sum ? FlatSymbolRefAttr() : cast<ShardAttr>(update.getArg()).getUnit();
    if (Operation *op = sum ? nullptr : findAdditionOfSame(operand.get(), sums))
      return op->emitError() << "accumulate=scattered: here the gradients of unit " << unit << " "
                             << describeSame(func, op, sums)
                             << ", but a gradient that is left to a later call must be a sum over the ranks; use "
                                "accumulate=sharded";
    if (!sum)
      return emitError(operand.get().getLoc())
             << "accumulate=scattered: the value that the step leaves in the gradients of unit " << unit
             << " is no longer a sum of gradients; clear the gradients after the optimizer's step (zero_grad()), or "
                "use accumulate=sharded";
    operand.set(sum);
  }
  func.setFunctionType(builder.getFunctionType(func.getBody().getArgumentTypes(), terminator->getOperandTypes()));
  return success();
}

/// Where something that is not linear reads a value it is all-reduced, unless what it is computed from is.
LogicalResult SumsAcross::reduceWhereRead() {
  DenseSet<Value> isWhole;
  DenseMap<Attribute, Operation *> reduced;
  SmallVector<Operation *> moved;
  for (auto &[value, sum] : sums) {
    Operation *op = value.getDefiningOp();
    auto isRead = [&](Operation *user) { return user->getNumResults() != 1 || !sums.contains(user->getResult(0)); };
    bool isComputed = !isa<AllReduceOp>(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
      return !sums.contains(operand) || isWhole.contains(operand);
    });
    if (isComputed) {
      isWhole.insert(value);
      continue;
    }
    moved.push_back(op);
    if (llvm::none_of(value.getUsers(), isRead))
      continue;
    FlatSymbolRefAttr unit = units.lookup(sum);
    auto [first, isNew] = reduced.try_emplace(unit, *llvm::find_if(value.getUsers(), isRead));
    if (!isNew && isAddition(first->second)) {
      InFlightDiagnostic diag =
          emitError(first->second->getLoc())
          << "accumulate=scattered: here the gradients of unit " << unit << " "
          << describeSame(func, first->second, sums)
          << ", apart from what is left of earlier calls or computed behind it, and both would be "
             "all-reduced; use accumulate=sharded";
      diag.attachNote(op->getLoc()) << "the other is computed here";
      return diag;
    }
    if (!isNew) {
      InFlightDiagnostic diag = emitError(op->getLoc())
                                << "accumulate=scattered: the gradients of unit " << unit
                                << " are read here, and elsewhere before all is added to them, and would be "
                                   "all-reduced for each; use accumulate=sharded";
      diag.attachNote(first->second->getLoc()) << "the first time is here";
      return diag;
    }
    // An argument is added up before it is read first, any other sum at once.
    Operation *near = sum.getDefiningOp();
    if (near) {
      builder.setInsertionPointAfter(near);
    } else {
      near = *llvm::min_element(value.getUsers(), [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      builder.setInsertionPoint(near);
    }
    segment = near->getAttr(kSegmentAttr);
    Value whole = reduce(sum, unit);
    isWhole.insert(whole);
    isWhole.insert(value);
    value.replaceAllUsesWith(whole);
  }
  for (Operation *op : llvm::reverse(moved))
    if (op->use_empty())
      op->erase();
  for (auto &[value, sum] : llvm::reverse(sums))
    if (Operation *op = sum.getDefiningOp(); op && op->use_empty() && !isa<ReduceScatterOp>(op))
      op->erase();
  return success();
}

LogicalResult SumsAcross::run() {
  if (!step.replicateAxes)
    return func.emitError() << "accumulate=scattered: all ranks share a unit on this mesh, and there is no axis across "
                               "which a sum could be put off; use --mesh with two axes, or accumulate=sharded";
  if (failed(takeArguments()))
    return failure();
  if (kept.empty())
    return success();
  simplify();
  addSums();
  return success(succeeded(keepResults()) && succeeded(reduceWhereRead()));
}

LogicalResult keepSumsAcross(const Step &step, func::FuncOp func) { return SumsAcross(step, func).run(); }

/// The one other op that adds to `value`, of its type; null where something else reads it too.
static aten::AddTensorOp findNextSum(Value value) {
  auto next = value.hasOneUse() ? dyn_cast<aten::AddTensorOp>(*value.user_begin()) : aten::AddTensorOp();
  bool adds = next && next.getSelf() == value && next.getOther().getType() == value.getType() &&
              next.getType() == value.getType() && aten::getScalarValue(next.getAlpha()) == 1;
  return adds ? next : aten::AddTensorOp();
}

void addToSumsLast(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments()) {
    auto state = getArgRole<StateAttr>(func, argument.getArgNumber());
    if (!state || !state.isGradient())
      continue;
    for (aten::AddTensorOp sum = findNextSum(argument), next; sum && (next = findNextSum(sum.getResult()));
         sum = next) {
      OpBuilder builder(next);
      auto own = cast<aten::AddTensorOp>(builder.clone(*next));
      own->setOperand(0, sum.getOther());
      next->setOperand(0, argument);
      next->setOperand(1, own->getResult(0));
      sum->erase();
    }
  }
}

bool isLinearAcross(Operation *op, ArrayRef<unsigned> operands) {
  if (op->getNumResults() != 1)
    return false;
  if (isa<aten::WhereSelfOp>(op))
    return operands == ArrayRef<unsigned>{1, 2};
  if (isa<aten::ForeachMulScalarOp, aten::ForeachMulTensorOp, aten::ForeachDivScalarOp, aten::ForeachDivTensorOp,
          aten::ForeachNegOp>(op))
    return operands == ArrayRef<unsigned>{0};
  auto pointwise = dyn_cast<aten::AtenOpInterface>(op);
  if (!pointwise || !pointwise.isPointwise())
    return false;
  FailureOr<aten::ShardingRule> rule = pointwise.getShardingRule();
  if (failed(rule))
    return false;
  if (rule->linearity == aten::Linearity::additive)
    return operands.size() == op->getNumOperands();
  return rule->linearity == aten::Linearity::multilinear && operands.size() == 1 &&
         llvm::is_contained(rule->multilinearOperands, operands.front());
}

bool isPackOfZeros(Value value) {
  auto pack = value.getDefiningOp<PackOp>();
  return pack && llvm::all_of(pack.getValues(), [](Value part) {
           auto full = part.getDefiningOp<aten::FullOp>();
           auto value = full ? dyn_cast<FloatAttr>(full.getFillValue()) : FloatAttr();
           return value && value.getValue().isPosZero();
         });
}

} // namespace spmd::partition
