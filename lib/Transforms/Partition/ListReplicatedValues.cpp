//===- ListReplicatedValues.cpp - spmd-list-replicated-values -------------===//

#include "States.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Spmd/ResultSource.h"
#include "dialects/Spmd/Source.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_LISTREPLICATEDVALUES
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

/// Less is not worth a line.
static constexpr int64_t kSmallest = 4096;

/// Bytes of a value that every rank has whole, 0 of every other.
static int64_t getReplicatedBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto sharding = tensor ? dyn_cast_or_null<ShardingAttr>(tensor.getEncoding()) : ShardingAttr();
  if (!sharding || !llvm::all_of(sharding.getStates(), [](const AxisState &state) { return state.isReplicated(); }))
    return 0;
  return getTensorBytes(tensor);
}

namespace {
struct ListReplicatedValues : StepPass<spmd::impl::ListReplicatedValuesBase<ListReplicatedValues>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    ModuleOp module = getOperation();
    module->removeAttr(kReplicatedAttr);
    bool isAlone = llvm::all_of(module.getOps<MeshOp>(), [](MeshOp mesh) { return mesh.getNumRanks() == 1; });
    if (isAlone)
      return success();
    Builder builder(module.getContext());
    SmallVector<Attribute> values;
    step.walk([&](aten::AtenOpInterface op) {
      if (op.isView())
        return;
      for (Type type : op->getResultTypes())
        if (int64_t bytes = getReplicatedBytes(type); bytes >= kSmallest)
          values.push_back(builder.getDictionaryAttr(
              {builder.getNamedAttr("op", builder.getStringAttr(op->getName().stripDialect())),
               builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytes)),
               builder.getNamedAttr("source", builder.getStringAttr(describeSource(op->getLoc())))}));
    });
    if (!values.empty())
      module->setAttr(kReplicatedAttr, builder.getArrayAttr(values));
    return success();
  }
};
} // namespace
