//===- DedupCollectives.cpp - spmd-dedup-collectives ----------------------===//

#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/MapVector.h"

namespace spmd {
#define GEN_PASS_DEF_DEDUPCOLLECTIVES
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

/// Everything that makes two collectives one. MLIR's CSE compares all attributes, the segment too: it would not take
/// the gather of the backward for that of the forward where gathered buffers stay.
struct Key {
  OperationName name;
  SmallVector<Value> operands;
  Attribute attributes;
  SmallVector<Type> types;
  bool operator==(const Key &o) const {
    return name == o.name && operands == o.operands && attributes == o.attributes && types == o.types;
  }
};

struct DedupCollectivesPass : StepPass<spmd::impl::DedupCollectivesBase<DedupCollectivesPass>> {
  LogicalResult runOnStep(func::FuncOp step) override;

private:
  Attribute getKeyAttributes(CollectiveOpInterface op);
  void mergeUnpacks(Block &body);
};

} // namespace

/// The attributes, without the segment when gathered buffers stay.
Attribute DedupCollectivesPass::getKeyAttributes(CollectiveOpInterface op) {
  NamedAttrList attrs(op->getAttrDictionary());
  auto unit =
      op.getUnitAttr() ? SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(op, op.getUnitAttr()) : ShardUnitOp();
  if (unit && isa<AllGatherOp>(op) && !unit.getReshardAfterForward())
    attrs.erase(kSegmentAttr);
  return attrs.getDictionary(op->getContext());
}

/// Views of one buffer in one segment become one op, in layout order.
void DedupCollectivesPass::mergeUnpacks(Block &body) {
  llvm::MapVector<std::pair<Value, Attribute>, SmallVector<UnpackOp>> groups;
  for (auto op : body.getOps<UnpackOp>())
    groups[{op.getFlat(), op->getAttr(kSegmentAttr)}].push_back(op);
  for (auto &[key, ops] : groups) {
    UnpackOp first = ops.front();
    auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(first, first.getUnitAttr());
    if (!unit || ops.size() == 1)
      continue;
    // Segment number to the values that stand for it.
    std::map<int64_t, SmallVector<Value>> segments;
    for (UnpackOp op : ops)
      for (auto [name, value] : llvm::zip(op.getNames().getAsRange<StringAttr>(), op.getResults()))
        segments[getSegmentIndex(unit.getLayout(), name)].push_back(value);
    OpBuilder builder(first);
    SmallVector<Attribute> names;
    SmallVector<Type> types;
    for (auto &[index, values] : segments) {
      names.push_back(builder.getStringAttr(unit.getLayout().getSegments()[index].getName()));
      types.push_back(values.front().getType());
    }
    auto merged =
        UnpackOp::create(builder, first.getLoc(), types, key.first, first.getUnitAttr(), builder.getArrayAttr(names));
    if (key.second)
      merged->setAttr(kSegmentAttr, key.second);
    for (auto [result, entry] : llvm::zip(merged.getResults(), segments))
      for (Value value : entry.second)
        value.replaceAllUsesWith(result);
    for (UnpackOp op : ops)
      op.erase();
  }
}

LogicalResult DedupCollectivesPass::runOnStep(func::FuncOp step) {
  Block &body = step.getBody().front();
  SmallVector<std::pair<Key, Operation *>> seen;
  for (auto op : llvm::make_early_inc_range(body.getOps<CollectiveOpInterface>())) {
    if (op.isStart())
      continue;
    Key key{op->getName(), SmallVector<Value>(op->getOperands()), getKeyAttributes(op),
            SmallVector<Type>(op->getResultTypes())};
    auto *first = llvm::find_if(seen, [&](auto &entry) { return entry.first == key; });
    if (first == seen.end()) {
      seen.push_back({std::move(key), op});
      continue;
    }
    op->replaceAllUsesWith(first->second->getResults());
    op->erase();
  }
  mergeUnpacks(body);
  return success();
}
