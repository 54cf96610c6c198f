//===- PartitionTensor.cpp - spmd-partition-tensor ------------------------===//

#include "TensorPartitioner.h"

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"
#include "spmd/ShardUnits/ShardUnits.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/StepPass.h"

namespace spmd {
#define GEN_PASS_DEF_PARTITIONTENSOR
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using namespace spmd::partition;

namespace {

struct PartitionTensorPass : StepPass<spmd::impl::PartitionTensorBase<PartitionTensorPass>> {
  using StepPass::StepPass;
  LogicalResult runOnStep(func::FuncOp step) override;

private:
  FailureOr<std::vector<units::Placement>> readPlacements();
  FailureOr<const units::Placement *> findPlacement(ArrayRef<units::Placement> placements, StringRef parameter,
                                                    llvm::BitVector &used);
  FailureOr<AxisState> getState(const units::Placement &placement, StringRef parameter, RankedTensorType type);
  LogicalResult placeState(StateAttr state, BlockArgument argument);
  /// At the location alone: with the op, a diagnostic would print the whole program.
  InFlightDiagnostic fail() { return emitError(getOperation().getLoc()); }

  int64_t ranks = 1;
  llvm::StringMap<std::pair<RankedTensorType, AxisState>> parameters; ///< that are cut
  llvm::DenseMap<Value, AxisState> states;
};

} // namespace

FailureOr<std::vector<units::Placement>> PartitionTensorPass::readPlacements() {
  runtime::Expected<std::vector<units::Placement>> placements = units::parsePlacements(overridePlacements);
  if (!placements)
    return fail() << "override-placements: " << placements.error().message;
  if (!placements->empty() || policyFile.empty())
    return std::move(*placements);
  units::Request request;
  if (runtime::Status status = units::readPlanFile(policyFile, request); !status.ok())
    return fail() << status.message;
  return std::move(request.placements);
}

/// The first that matches one of the parameter's names; null without one.
FailureOr<const units::Placement *> PartitionTensorPass::findPlacement(ArrayRef<units::Placement> placements,
                                                                       StringRef parameter, llvm::BitVector &used) {
  SmallVector<std::string> names{parameter.str()};
  if (auto tied = getOperation()->getAttrOfType<DictionaryAttr>("spmd.tied"))
    if (auto aliases = tied.getAs<ArrayAttr>(parameter))
      for (StringRef alias : aliases.getAsValueRange<StringAttr>())
        names.push_back(alias.str());
  const units::Placement *found = nullptr;
  for (auto [index, placement] : llvm::enumerate(placements))
    if (llvm::any_of(names, [&, &placement = placement](const std::string &name) { return placement.matches(name); })) {
      used.set(index);
      found = found ? found : &placement;
    }
  return found;
}

FailureOr<AxisState> PartitionTensorPass::getState(const units::Placement &placement, StringRef parameter,
                                                   RankedTensorType type) {
  if (!placement.dim)
    return AxisState::replicated();
  int64_t rank = type.getRank(), dim = *placement.dim < 0 ? *placement.dim + rank : *placement.dim;
  if (dim < 0 || dim >= rank)
    return fail() << "override-placements: parameter '" << parameter << "' of type " << type << " has no dimension "
                  << *placement.dim << " for " << placement.describe();
  int64_t size = type.getDimSize(dim), parts = placement.parts;
  if (size == 0 || size % parts != 0 || size / parts % ranks != 0) // and no product of what is given
    return fail() << "override-placements: dimension " << dim << " of parameter '" << parameter << "' has size " << size
                  << ", which " << (parts == 1 ? "" : std::to_string(parts) + " parts on ") << ranks
                  << " ranks do not divide; place it whole, or take a mesh with another tensor axis";
  return AxisState::shard(dim, parts, size / parts / ranks);
}

/// State of a parameter that is cut is cut alike: what has its shape. One number for each parameter is the same on all.
LogicalResult PartitionTensorPass::placeState(StateAttr state, BlockArgument argument) {
  auto found = parameters.find(state.getOf());
  if (found == parameters.end())
    return success();
  auto type = typeOf(argument);
  auto [parameter, cut] = found->second;
  if (type.getRank() == 0)
    return success();
  if (type.getShape() != parameter.getShape())
    return fail() << "optimizer state '" << state.getState() << "' of parameter '" << state.getOf() << "' has type "
                  << type << " and the parameter " << parameter
                  << ", so it cannot be cut over the tensor axis as the parameter is; place the parameter whole, or "
                     "take an optimizer whose state has the parameter's shape";
  states[argument] = cut;
  return success();
}

LogicalResult PartitionTensorPass::runOnStep(func::FuncOp step) {
  ModuleOp module = getOperation();
  runtime::Expected<units::Mesh> chosen = units::chooseMesh(units::kRanksNotSaid, mesh);
  if (!chosen)
    return fail() << "mesh: " << chosen.error().message;
  FailureOr<std::vector<units::Placement>> placements = readPlacements();
  if (failed(placements))
    return failure();
  ranks = chosen->tensor;
  if (ranks == 1) {
    if (!placements->empty() && chosen->ranks() > 1 && !chosen->namesTensor)
      return fail() << "override-placements place parameters on a tensor axis, and the mesh has none: "
                    << chosen->describe() << "; use --mesh=shard:M,tensor:T";
    return success();
  }
  if (!module.getOps<MeshOp>().empty())
    return module.emitError("already has a mesh");
  if (view == "local")
    return fail() << "view=local: each rank's own rows and a tensor axis, along which ranks have the same rows, do not "
                     "go together; use view=global";
  llvm::BitVector used(placements->size());
  std::vector<std::string> known;
  for (BlockArgument argument : step.getArguments()) {
    auto param = getArgRole<ParamAttr>(step, argument.getArgNumber());
    if (!param)
      continue;
    known.push_back(param.getName().str());
    FailureOr<const units::Placement *> placement = findPlacement(*placements, param.getName(), used);
    if (failed(placement) || !*placement)
      continue;
    auto type = typeOf(argument);
    FailureOr<AxisState> state = getState(**placement, param.getName(), type);
    if (failed(state))
      return failure();
    if (!state->isShard())
      continue;
    states[argument] = *state;
    parameters[param.getName()] = {type, *state};
  }
  for (auto [index, placement] : llvm::enumerate(*placements))
    if (!used.test(index))
      return fail() << "override-placements: '" << placement.pattern << "' matches no parameter"
                    << units::suggestNames(placement.pattern, known);
  if (parameters.empty())
    return fail() << "the mesh has a tensor axis of " << ranks << " ranks, and no parameter is cut over it; place some "
                  << "with --override-placements=PATTERN=shard(DIM), or leave the axis out";
  for (BlockArgument argument : step.getArguments())
    if (auto state = getArgRole<StateAttr>(step, argument.getArgNumber()); state && failed(placeState(state, argument)))
      return failure();
  OpBuilder builder(step);
  auto axis = builder.getStringAttr("tensor");
  auto op = MeshOp::create(builder, module.getLoc(), "mesh", builder.getArrayAttr(axis),
                           builder.getDenseI64ArrayAttr(ranks), axis);
  return TensorPartitioner::run(step, op, states);
}
