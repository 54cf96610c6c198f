//===- BucketCollectives.cpp - spmd-bucket-collectives --------------------===//

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/SetVector.h"

namespace spmd {
#define GEN_PASS_DEF_BUCKETCOLLECTIVES
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// Ops with results of at most this many elements may wait for a message.
constexpr int64_t kSmall = 64;

static bool isSmallOp(Operation *op) {
  return op->getNumResults() > 0 && isMemoryEffectFree(op) && !isa<CollectiveOpInterface>(op) &&
         llvm::all_of(op->getResultTypes(), [](Type type) {
           auto tensor = dyn_cast<RankedTensorType>(type);
           return tensor && tensor.getNumElements() <= kSmall;
         });
}

namespace {

/// The all_reduces of one message, and where it goes.
struct Message {
  SmallVector<AllReduceOp> members;
  /// The last op that defines an operand; null when all are arguments.
  Operation *last = nullptr;
};

struct BucketCollectivesPass : StepPass<spmd::impl::BucketCollectivesBase<BucketCollectivesPass>> {
  LogicalResult runOnStep(func::FuncOp step) override;

private:
  Operation *findNeed(Operation *op);
  Message choose(ArrayRef<AllReduceOp> open);
  void merge(const Message &message, Block &body);
};

} // namespace

/// The first op that needs a result of `op`, looking through small ops; the
/// terminator when none does.
Operation *BucketCollectivesPass::findNeed(Operation *op) {
  Operation *need = op->getBlock()->getTerminator();
  SmallVector<Operation *> open{op};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!open.empty())
    for (Operation *user : open.pop_back_val()->getUsers()) {
      if (!seen.insert(user).second)
        continue;
      if (isSmallOp(user))
        open.push_back(user);
      else if (user->isBeforeInBlock(need))
        need = user;
    }
  return need;
}

/// All ops that need a result of one of `ops`.
static llvm::SmallPtrSet<Operation *, 32> getDependents(ArrayRef<AllReduceOp> ops) {
  llvm::SmallPtrSet<Operation *, 32> dependents;
  SmallVector<Operation *> open;
  for (AllReduceOp op : ops)
    open.push_back(op);
  while (!open.empty())
    for (Operation *user : open.pop_back_val()->getUsers())
      if (dependents.insert(user).second)
        open.push_back(user);
  return dependents;
}

/// The op that defines the operand latest.
static Operation *getLastProducer(AllReduceOp op) {
  Operation *last = nullptr;
  for (Value input : op.getInputs())
    if (Operation *producer = input.getDefiningOp(); producer && (!last || last->isBeforeInBlock(producer)))
      last = producer;
  return last;
}

/// A message has elements of one type.
static Type getElementType(AllReduceOp op) { return typeOf(op.getInputs().front()).getElementType(); }

Message BucketCollectivesPass::choose(ArrayRef<AllReduceOp> open) {
  Operation *need = nullptr;
  AllReduceOp first;
  for (AllReduceOp op : open) {
    Operation *mine = findNeed(op);
    if (!need || mine->isBeforeInBlock(need)) {
      need = mine;
      first = op;
    }
  }
  Message message;
  llvm::SmallPtrSet<Operation *, 32> dependents = getDependents(open);
  for (AllReduceOp op : open) {
    Operation *last = getLastProducer(op);
    bool ready = !dependents.contains(op) && (!last || last->isBeforeInBlock(need));
    if (!ready || op.getMeshAttr() != first.getMeshAttr() || op.getAxes() != first.getAxes() ||
        getElementType(op) != getElementType(first))
      continue;
    message.members.push_back(op);
    if (last && (!message.last || message.last->isBeforeInBlock(last)))
      message.last = last;
  }
  return message;
}

void BucketCollectivesPass::merge(const Message &message, Block &body) {
  OpBuilder builder(message.members.front());
  if (message.last)
    builder.setInsertionPointAfter(message.last);
  else
    builder.setInsertionPointToStart(&body);
  SmallVector<Value> inputs;
  SmallVector<Attribute> kinds;
  SmallVector<Type> types;
  SmallVector<Location> locs;
  for (AllReduceOp op : message.members) {
    llvm::append_range(inputs, op.getInputs());
    llvm::append_range(kinds, op.getKinds());
    llvm::append_range(types, op.getResultTypes());
    locs.push_back(op.getLoc());
  }
  AllReduceOp first = message.members.front();
  auto merged = AllReduceOp::create(builder, builder.getFusedLoc(locs), types, inputs, first.getMeshAttr(),
                                    first.getAxes(), FlatSymbolRefAttr(), builder.getArrayAttr(kinds));
  if (Attribute segment = first->getAttr(kSegmentAttr))
    merged->setAttr(kSegmentAttr, segment);
  unsigned next = 0;
  for (AllReduceOp op : message.members) {
    for (Value result : op.getResults())
      result.replaceAllUsesWith(merged.getResult(next++));
    op.erase();
  }
  // Small ops that use it and stood above it go below, in their order.
  llvm::SetVector<Operation *> below;
  for (Operation &op : body) {
    bool dependent = llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return producer && (producer == merged || below.contains(producer));
    });
    if (dependent && op.isBeforeInBlock(merged))
      below.insert(&op);
  }
  Operation *place = merged;
  for (Operation *op : below) {
    op->moveAfter(place);
    place = op;
  }
}

LogicalResult BucketCollectivesPass::runOnStep(func::FuncOp step) {
  Block &body = step.getBody().front();
  SmallVector<AllReduceOp> open;
  for (auto op : body.getOps<AllReduceOp>())
    if (!op.getUnitAttr())
      open.push_back(op);
  while (!open.empty()) {
    Message message = choose(open);
    llvm::erase_if(open, [&](AllReduceOp op) { return llvm::is_contained(message.members, op); });
    if (message.members.size() > 1)
      merge(message, body);
  }
  return success();
}
