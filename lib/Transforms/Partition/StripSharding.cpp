//===- StripSharding.cpp - spmd-strip-sharding ----------------------------===//

#include "dialects/Spmd/Roles.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/Partition/Verify.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_STRIPSHARDING
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// Each rank has a value of its own, or a summand.
static bool isApart(ShardingAttr layout) {
  return llvm::any_of(layout.getStates(), [](const AxisState &s) { return s.isPartial() || s.isVarying(); });
}

/// Remembers how batch inputs and results are cut over the ranks: the runtime cuts global batches, and joins outputs,
/// by it. States of which each rank has a summand are told from those that all have alike by it, too.
static void keepLayouts(func::FuncOp step) {
  auto getLayout = [](Type type) -> ShardingAttr {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? dyn_cast_or_null<ShardingAttr>(tensor.getEncoding()) : ShardingAttr();
  };
  int64_t ranks = 1;
  for (auto mesh : step->getParentOfType<ModuleOp>().getOps<MeshOp>())
    ranks = mesh.getNumRanks();
  for (auto [index, type] : llvm::enumerate(step.getArgumentTypes()))
    if (auto batch = getArgRole<BatchAttr>(step, index); batch && getLayout(type)) {
      ShardingAttr own = getVaryingBatchLayout(batch, cast<RankedTensorType>(type), ranks);
      step.setArgAttr(index, kLayoutAttr, own ? own : getLayout(type));
    }
  for (auto [index, type] : llvm::enumerate(step.getArgumentTypes()))
    if (isa_and_nonnull<StateAttr, ShardAttr>(getArgRole(step, index)) && getLayout(type) && isApart(getLayout(type)))
      step.setArgAttr(index, kLayoutAttr, getLayout(type));
  for (auto [index, type] : llvm::enumerate(step.getResultTypes()))
    if (ShardingAttr layout = getLayout(type))
      if (isApart(layout) || !isa_and_nonnull<UpdateAttr>(getResultRole(step, index)))
        step.setResultAttr(index, kLayoutAttr, layout);
}

namespace {
struct StripShardingPass : StepPass<spmd::impl::StripShardingBase<StripShardingPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    keepLayouts(step);
    step->removeAttr(kRecordedValuesAttr);
    AttrTypeReplacer replacer;
    replacer.addReplacement([](RankedTensorType type) -> std::optional<Type> {
      if (!isa_and_nonnull<ShardingAttr>(type.getEncoding()))
        return std::nullopt;
      return RankedTensorType::get(type.getShape(), type.getElementType());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    return success();
  }
};
} // namespace
