//===- ReshardToGroups.cpp - spmd-reshard-to-groups -----------------------===//
//
// [Note: groups] What forward has gathered across all ranks, backward needs again. Between them a rank keeps a piece,
// as large as what it gathered through the ranks of its group, and backward gathers the pieces within the group, which
// is a node of a cluster, say. The group is the last of the axes along which the unit is cut.
//
//===----------------------------------------------------------------------===//

#include "Views.h"
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_RESHARDTOGROUPS
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

struct ReshardToGroupsPass : StepPass<spmd::impl::ReshardToGroupsBase<ReshardToGroupsPass>> {
  LogicalResult runOnStep(func::FuncOp step) override;
};

} // namespace

/// The unit that keeps what `gather` gathers over groups; null when none does.
static ShardUnitOp getGroupedUnit(AllGatherOp gather) {
  auto unit = gather.getUnitAttr() ? SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(gather, gather.getUnitAttr())
                                   : ShardUnitOp();
  bool isGrouped = unit && unit.getReshardGroup() && unit.getReshardAfterForward() && !unit.hasWholeParameters();
  return isGrouped && gather.getAxesAttr() == unit.getAxesAttr() ? unit : ShardUnitOp();
}

/// What is sent: a chunk, and the type that it is cast to on the way.
static std::pair<Value, Type> getSent(AllGatherOp gather) {
  auto narrow = gather.getInput().getDefiningOp<aten::ToCopyOp>();
  return {narrow ? narrow.getSelf() : gather.getInput(), gather.getType()};
}

/// A rank's piece of what its group has, of `whole`: along the other of `axes` groups have the same.
static RankedTensorType getPieceType(RankedTensorType whole, int64_t group, size_t axes) {
  SmallVector<int64_t> shape{whole.getDimSize(0) / group};
  Attribute encoding;
  if (whole.getEncoding()) {
    SmallVector<AxisState> states(axes, AxisState::replicated());
    states.back() = AxisState::owned();
    encoding = ShardingAttr::get(whole.getContext(), whole.getShape(), states);
  }
  return RankedTensorType::get(shape, whole.getElementType(), encoding);
}

/// The piece that a rank keeps of what `gather` has gathered until `again`, cut when forward has read it.
static Value keepPiece(AllGatherOp gather, AllGatherOp again, MeshOp mesh, ArrayAttr axes, int64_t group) {
  Operation *last = getLastReader(gather);
  OpBuilder builder(gather);
  builder.setInsertionPointAfter(last && last->isBeforeInBlock(again) ? last : gather);
  RankedTensorType type = getPieceType(typeOf(gather), group, mesh.getDataAxes().size());
  auto piece = SliceOp::create(builder, gather.getLoc(), type, gather.getResult(), gather.getMeshAttr(), axes,
                               builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(1),
                               builder.getI64IntegerAttr(type.getDimSize(0)));
  if (Attribute segment = gather->getAttr(kSegmentAttr))
    piece->setAttr(kSegmentAttr, segment);
  return piece;
}

/// Gathers the pieces where `gather` gathered all ranks' chunks.
static void gatherWithinGroup(AllGatherOp gather, Value piece, ArrayAttr axes) {
  Operation *narrow = gather.getInput().getDefiningOp<aten::ToCopyOp>();
  gather.getInputMutable().assign(piece);
  gather.setAxesAttr(axes);
  if (narrow && narrow->use_empty())
    narrow->erase();
}

LogicalResult ReshardToGroupsPass::runOnStep(func::FuncOp step) {
  struct Kept {
    std::pair<Value, Type> sent;
    AllGatherOp gather;
    Value piece;
  };
  SmallVector<Kept> kept;
  for (auto gather : llvm::make_early_inc_range(step.getBody().front().getOps<AllGatherOp>())) {
    ShardUnitOp unit = getGroupedUnit(gather);
    if (!unit)
      continue;
    std::pair<Value, Type> sent = getSent(gather);
    std::optional<StepPhase> phase = getPhase(gather);
    auto *last = llvm::find_if(kept, [&](const Kept &entry) { return entry.sent == sent; });
    if (phase == StepPhase::forward) {
      if (last == kept.end())
        last = &kept.emplace_back();
      *last = {sent, gather, Value()};
    } else if (phase == StepPhase::backward && last != kept.end()) {
      auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(gather, gather.getMeshAttr());
      ArrayAttr axes = ArrayAttr::get(&getContext(), mesh.getDataAxes().getValue().take_back());
      if (!last->piece)
        last->piece = keepPiece(last->gather, gather, mesh, axes, *unit.getReshardGroup());
      gatherWithinGroup(gather, last->piece, axes);
    }
  }
  return success();
}
