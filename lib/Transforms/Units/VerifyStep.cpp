//===- VerifyStep.cpp - spmd-verify-step ----------------------------------===//

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "spmd/Transforms/StepPass.h"
#include "spmd/Transforms/Units/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace spmd {
#define GEN_PASS_DEF_VERIFYSTEP
#include "spmd/Transforms/Units/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

bool isAten(Operation &op) { return isa<aten::AtenOpInterface>(op); }

/// 1: every argument and result has a role, and an update has the type of what it updates.
LogicalResult verifyRoles(func::FuncOp step) {
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i)
    if (!getArgRole(step, i))
      return step.emitError() << "argument " << i << " of @step has no role";
  for (unsigned i = 0, e = step.getNumResults(); i < e; ++i)
    if (!getResultRole(step, i))
      return step.emitError() << "result " << i << " of @step has no role";
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i)
    if (std::optional<unsigned> update = findUpdate(step, i))
      if (step.getResultTypes()[*update] != step.getArgumentTypes()[i])
        return step.emitError() << "result " << *update << " of @step updates argument " << i << " but has type "
                                << step.getResultTypes()[*update] << " instead of " << step.getArgumentTypes()[i];
  return success();
}

/// 2: every op says to which run of one phase it belongs.
LogicalResult verifySegments(func::FuncOp step) {
  for (Operation &op : step.getBody().front().without_terminator())
    if (!getSegment(&op))
      return op.emitOpError() << "has no " << kSegmentAttr;
  return success();
}

/// "parameter 'h.0.w' of module 'h.0' (train.Block)"
std::string describeParameter(ModuleOp module, StringRef name) {
  std::string text = ("parameter '" + name + "'").str();
  for (ModuleTreeOp tree : module.getOps<ModuleTreeOp>())
    for (auto owner : tree.getBody().getOps<TreeModuleOp>())
      if (llvm::is_contained(owner->getAttrOfType<ArrayAttr>("params").getAsValueRange<StringAttr>(), name))
        return text + (owner.getPath().empty() ? " of the root module" : " of module '" + owner.getPath().str() + "'") +
               " (" + owner.getClassName().str() + ")";
  return text;
}

/// 3: every parameter lies in exactly one shard unit.
LogicalResult verifyUnits(ModuleOp module, func::FuncOp step) {
  llvm::StringMap<ShardUnitOp> inUnit;
  for (ShardUnitOp unit : module.getOps<ShardUnitOp>())
    for (SegmentAttr segment : unit.getLayout().getSegments())
      if (auto [first, isNew] = inUnit.try_emplace(segment.getName(), unit); !isNew)
        return unit.emitError() << describeParameter(module, segment.getName()) << " is in two shard units, @"
                                << first->second.getSymName() << " and @" << unit.getSymName();
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i)
    if (auto param = getArgRole<ParamAttr>(step, i))
      if (!inUnit.contains(param.getName()))
        return step.emitError() << describeParameter(module, param.getName()) << " is in no shard unit";
  return success();
}

/// 4: no list op of an optimizer is left.
LogicalResult verifyDecomposed(func::FuncOp step) {
  for (Operation &op : step.getBody().front())
    if (isa<aten::ListOpInterface>(op))
      return op.emitOpError() << "is an optimizer op that should have been decomposed";
  return success();
}

/// 5: no aten op and no sharding state is left.
LogicalResult verifyKernels(func::FuncOp step) {
  for (Operation &op : step.getBody().front()) {
    if (isAten(op))
      return op.emitOpError() << "should have become a kernel";
    for (Type type : op.getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getEncoding())
        return op.emitOpError() << "has a result of type " << type << ", which still carries an encoding";
  }
  return success();
}

struct VerifyStepPass : StepPass<spmd::impl::VerifyStepBase<VerifyStepPass>> {
  using StepPass::StepPass;

  LogicalResult runOnStep(func::FuncOp step) override { return verify(getOperation(), step); }

private:
  LogicalResult verify(ModuleOp module, func::FuncOp step) {
    if (failed(verifyRoles(step)))
      return failure();
    if (phase == "import")
      return verifySegments(step);
    if (phase == "units")
      return success(succeeded(verifySegments(step)) && succeeded(verifyUnits(module, step)));
    if (phase == "decompose")
      return success(succeeded(verifySegments(step)) && succeeded(verifyDecomposed(step)));
    if (phase == "kernels")
      return verifyKernels(step);
    return module.emitError() << "unknown phase '" << phase << "'; allowed: import, units, decompose, kernels";
  }
};

} // namespace
