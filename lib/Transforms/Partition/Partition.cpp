//===- Partition.cpp - spmd-partition -------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenDialect.h"
#include "spmd/Transforms/Partition/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_PARTITION
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct PartitionPass : spmd::impl::PartitionBase<PartitionPass> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (view != "global") {
      module.emitError() << "view '" << view << "' is not one of: global";
      return signalPassFailure();
    }
    FailureOr<partition::Step> step = partition::Step::read(module);
    if (failed(step) || failed(partition::Partitioner::run(*step)))
      return signalPassFailure();
  }
};
} // namespace
