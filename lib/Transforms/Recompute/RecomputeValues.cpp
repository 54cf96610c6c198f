//===- RecomputeValues.cpp - spmd-recompute-values ------------------------===//
//
// [Note: an example of recomputation] With %h marked in
//
//     %g = mm %x, %w1
//     %h = silu %g           {spmd.recompute}
//     %y = mm %h, %w2
//     // backward
//     %dw2 = mm %dy^T, %h    W
//     %dh = mm %dy, %w2^T
//     %dg = silu' %dh, %g
//
// the gradient W reads a copy of silu in place of %h. Left where it is, the copy would be a kernel of its own, which
// reads %g once more. The kernel of silu' reads %g anyway, behind %dh. So W, with the cast of its result, moves behind
// %dh; the copy then is one more output of that kernel, and costs the bytes that it writes.
//
//===----------------------------------------------------------------------===//

#include "SavedValues.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "spmd/Transforms/Recompute/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace spmd {
#define GEN_PASS_DEF_RECOMPUTEVALUES
#include "spmd/Transforms/Recompute/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using namespace spmd::recompute;

namespace {

/// Copies ops of forward into backward.
class Copies {
public:
  explicit Copies(func::FuncOp step) : body(step.getBody().front()), saved(step) {}

  LogicalResult run();

private:
  bool isMarked(Value base) const {
    Operation *op = base.getDefiningOp();
    return op && op->hasAttr(kRecomputeAttr);
  }
  bool needsCopy(Value base);
  FailureOr<Value> copy(Value value, Operation *reader);
  FailureOr<Value> copyParameter(Value parameter, Operation *reader);
  void moveBefore(Operation *op, Operation *reader);
  void moveGradients();
  std::optional<SmallVector<Operation *>> findMoved(Operation *gradient, Operation *behind);
  Operation *findKernelBehind(Operation *gradient, ArrayRef<Value> inputs);

  Block &body;
  SavedValues saved;
  llvm::DenseMap<Value, bool> needed;
  /// By value of forward and segment of the readers.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> copies;
  /// The copies.
  llvm::DenseSet<Operation *> copied;
};

struct RecomputeValuesPass : StepPass<spmd::impl::RecomputeValuesBase<RecomputeValuesPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    bool isMarked = llvm::any_of(step.getBody().front(), [](Operation &op) { return op.hasAttr(kRecomputeAttr); });
    return isMarked ? Copies(step).run() : success();
  }
};

} // namespace

/// Whether a reader in backward reads another value than that of forward: a marked one, or one that is derived from it.
bool Copies::needsCopy(Value base) {
  Operation *op = base.getDefiningOp();
  if (!op || !saved.isForward(op))
    return false;
  if (isMarked(base)) // with the statistics that the op gives beside
    return true;
  if (saved.isSource(base) || saved.isSaved(base) || !isLight(op))
    return false;
  auto known = needed.find(base);
  if (known != needed.end())
    return known->second;
  bool result =
      isPure(op) && llvm::any_of(op->getOperands(), [&](Value operand) { return needsCopy(getBase(operand)); });
  needed[base] = result;
  return result;
}

/// Moves an op, and what it reads, before `reader`.
void Copies::moveBefore(Operation *op, Operation *reader) {
  if (op->isBeforeInBlock(reader))
    return;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp())
      moveBefore(def, reader);
  op->moveBefore(reader);
}

FailureOr<Value> Copies::copyParameter(Value parameter, Operation *reader) {
  auto forward = parameter.getDefiningOp<UnpackOp>();
  int64_t segment = *getSegment(reader);
  if (Value again = saved.findParameter(parameter, segment)) {
    moveBefore(again.getDefiningOp(), reader);
    return again;
  }
  auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(forward, forward.getUnitAttr());
  UnpackOp gathered = saved.findUnpack(parameter, segment);
  bool isKept = unit && !unit.getReshardAfterForward();
  if (!gathered || isKept || gathered.getFlat().getType() != forward.getFlat().getType()) {
    if (isKept)
      return parameter;
    return forward.emitOpError("is of a unit that backward does not gather, and a value that backward is to compute "
                               "again reads it");
  }
  moveBefore(gathered, reader);
  OpBuilder builder(gathered);
  Attribute name = forward.getNames()[cast<OpResult>(parameter).getResultNumber()];
  auto again = UnpackOp::create(builder, gathered.getLoc(), TypeRange{parameter.getType()}, gathered.getFlat(),
                                gathered.getUnitAttr(), builder.getArrayAttr({name}));
  again->setAttr(kSegmentAttr, gathered->getAttr(kSegmentAttr));
  return again.getResults().front();
}

/// The value that `reader` reads in place of one of forward.
FailureOr<Value> Copies::copy(Value value, Operation *reader) {
  if (saved.isParameter(value))
    return copyParameter(value, reader);
  Operation *op = value.getDefiningOp();
  bool isKept = !isMarked(value) && (saved.isSource(value) || saved.isSaved(value));
  if (!op || !saved.isForward(op) || (isKept && !isView(op)))
    return value;
  int64_t segment = *getSegment(reader);
  if (Value known = copies.lookup({value, segment}))
    return known;
  if (!isPure(op) || op->getNumRegions() || !isa<aten::AtenOpInterface>(op))
    return op->emitOpError("cannot be computed again, and a value that backward is to compute again needs it");
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> again = copy(operand, reader);
    if (failed(again))
      return failure();
    mapping.map(operand, *again);
  }
  if (isView(op) && mapping.lookup(op->getOperand(0)) == op->getOperand(0))
    return value;
  Operation *clone = OpBuilder(reader).clone(*op, mapping);
  clone->removeAttr(kRecomputeAttr);
  if (!isView(op))
    clone->setAttr(kRecomputedAttr, UnitAttr::get(op->getContext()));
  clone->setAttr(kSegmentAttr, reader->getAttr(kSegmentAttr));
  copied.insert(clone);
  for (auto [original, again] : llvm::zip(op->getResults(), clone->getResults()))
    copies[{original, segment}] = again;
  return copies.lookup({value, segment});
}

LogicalResult Copies::run() {
  SmallVector<Operation *> readers;
  for (Operation &op : body)
    if (saved.isBackward(&op))
      readers.push_back(&op);
  for (Operation *reader : readers)
    for (OpOperand &operand : reader->getOpOperands())
      if (needsCopy(getBase(operand.get()))) {
        FailureOr<Value> again = copy(operand.get(), reader);
        if (failed(again))
          return failure();
        operand.set(*again);
      }
  for (Operation &op : body)
    op.removeAttr(kRecomputeAttr);
  moveGradients();
  return success();
}

/// The last heavy op that runs behind `gradient` and before the first kernel that reads one of `inputs` behind it. Null
/// if there is none.
Operation *Copies::findKernelBehind(Operation *gradient, ArrayRef<Value> inputs) {
  Operation *first = nullptr;
  SmallVector<Value> open(inputs);
  llvm::DenseSet<Operation *> seen;
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (!seen.insert(user).second)
        continue;
      // Through views, and through what readers compute within their own kernels.
      if (isView(user) || copied.contains(user) || saved.isForward(user)) {
        if (isLight(user))
          llvm::append_range(open, user->getResults());
        continue;
      }
      bool isReader = saved.isBackward(user) && isLight(user) && gradient->isBeforeInBlock(user);
      if (isReader && (!first || user->isBeforeInBlock(first)))
        first = user;
    }
  if (!first)
    return nullptr;
  Operation *last = nullptr;
  SmallVector<Operation *> needed{first};
  seen.clear();
  while (!needed.empty()) {
    Operation *op = needed.pop_back_val();
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || def == gradient || !gradient->isBeforeInBlock(def) || !seen.insert(def).second)
        continue;
      needed.push_back(def);
      if (isHeavy(def) && (!last || last->isBeforeInBlock(def)))
        last = def;
    }
  }
  return last;
}

/// `gradient` and the light ops that follow from it before `behind` (a cast to the dtype of the reduction), in order.
/// Nothing if any other op there reads them.
std::optional<SmallVector<Operation *>> Copies::findMoved(Operation *gradient, Operation *behind) {
  SmallVector<Operation *> moved{gradient};
  for (size_t i = 0; i < moved.size(); ++i)
    for (Operation *user : moved[i]->getUsers()) {
      if (behind->isBeforeInBlock(user) || llvm::is_contained(moved, user))
        continue;
      if (!isLight(user) || !isPure(user))
        return std::nullopt;
      moved.push_back(user);
    }
  llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return moved;
}

/// See [Note: an example of recomputation].
void Copies::moveGradients() {
  SmallVector<Operation *> gradients;
  for (Operation &op : body)
    if (saved.isBackward(&op) && isHeavy(&op) && !copied.contains(&op))
      gradients.push_back(&op);
  for (Operation *gradient : gradients) {
    SmallVector<Value> inputs;
    SmallVector<Value> open;
    for (Value operand : gradient->getOperands()) {
      Operation *def = getBase(operand).getDefiningOp();
      if (def && copied.contains(def) && isLight(def))
        open.push_back(getBase(operand));
    }
    while (!open.empty())
      for (Value operand : open.pop_back_val().getDefiningOp()->getOperands()) {
        Value base = getBase(operand);
        Operation *def = base.getDefiningOp();
        if (def && copied.contains(def) && isLight(def))
          open.push_back(base);
        else if (!saved.isSource(base))
          inputs.push_back(base);
      }
    if (inputs.empty())
      continue;
    Operation *behind = findKernelBehind(gradient, inputs);
    std::optional<SmallVector<Operation *>> moved = behind ? findMoved(gradient, behind) : std::nullopt;
    if (!moved)
      continue;
    for (Operation *op : *moved) {
      op->moveAfter(behind);
      behind = op;
    }
  }
}
