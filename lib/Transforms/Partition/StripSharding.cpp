//===- StripSharding.cpp - spmd-strip-sharding ----------------------------===//

#include "dialects/Spmd/Roles.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "spmd/Transforms/Partition/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_STRIPSHARDING
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct StripShardingPass : spmd::impl::StripShardingBase<StripShardingPass> {
  void runOnOperation() override {
    AttrTypeReplacer replacer;
    replacer.addReplacement([](RankedTensorType type) -> std::optional<Type> {
      if (!isa_and_nonnull<ShardingAttr>(type.getEncoding()))
        return std::nullopt;
      return RankedTensorType::get(type.getShape(), type.getElementType());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
