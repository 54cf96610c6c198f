//===- Step.cpp - what @step's roles say ----------------------------------===//

#include "Step.h"

#include "States.h"
#include "dialects/Aten/TensorType.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace spmd::partition {

FailureOr<Step> Step::read(func::FuncOp func, bool accumulatesUnsharded) {
  Step step;
  step.func = func;
  if (failed(step.readUnits(func->getParentOfType<ModuleOp>())) || failed(step.readArguments(accumulatesUnsharded)))
    return failure();
  return step;
}

FlatSymbolRefAttr Step::meshRef() const { return FlatSymbolRefAttr::get(mesh->getAttrOfType<StringAttr>("sym_name")); }

static FloatType getReduceType(ShardUnitOp op) {
  DictionaryAttr precision = op.getPrecisionAttr();
  auto reduce = precision ? precision.getAs<TypeAttr>("reduce") : TypeAttr();
  auto type = reduce ? dyn_cast<FloatType>(reduce.getValue()) : FloatType();
  return type == op.getLayout().getDtype() ? FloatType() : type;
}

LogicalResult Step::readUnits(ModuleOp module) {
  auto meshes = module.getOps<MeshOp>();
  if (std::distance(meshes.begin(), meshes.end()) != 1)
    return module.emitError("must have one spmd.mesh; run "
                            "spmd-assign-shard-units before partition");
  mesh = *meshes.begin();
  if (axes().empty() || axes().size() > 3)
    return mesh.emitOpError()
           << "has " << axes().size() << (mesh.getTensorAxis() ? " axes beside the tensor axis" : " axes")
           << ", partition knows one to three: ranks that have the same, and ranks that share it, in "
              "groups or not";
  ranks = mesh.getNumDataRanks();
  ArrayRef<Attribute> names = axes().getValue();
  // Ranks that share a unit are those along the last axis, or in groups along the last two; along an axis before these
  // they have the same.
  size_t shared = names.size() == 3 || isSharedByAll(module, mesh) ? std::min<size_t>(names.size(), 2) : 1;
  shardAxes = ArrayAttr::get(mesh.getContext(), names.take_back(shared));
  shardRanks = mesh.getNumRanks(shardAxes);
  if (shared < names.size())
    replicateAxes = ArrayAttr::get(mesh.getContext(), names.drop_back(shared));
  for (auto op : module.getOps<ShardUnitOp>()) {
    ArrayAttr expected = op.isSharded() ? shardAxes : axes();
    if (op.getAxes() != expected)
      return op.emitOpError() << "is on axes " << op.getAxes() << ", expected " << expected << ": a "
                              << (op.isSharded() ? "unit is cut along the last axis of the mesh, or every one along all"
                                                 : "replicated unit is the same on all ranks");
    units.push_back({op, op.getLayout(), op.isSharded(), op.hasWholeParameters(), getReduceType(op), {}});
  }
  return success();
}

/// The unit's argument for this state, made at its first member.
static UnitArgument &getArgument(Unit &unit, StringRef state, bool isTable, Type dtype, FloatAttr init) {
  for (UnitArgument &argument : unit.arguments)
    if (argument.state == state && argument.isTable == isTable && argument.dtype == dtype)
      return argument;
  unit.arguments.push_back({state, isTable, dtype, init, {}});
  unit.arguments.back().members.resize(unit.numSegments());
  return unit.arguments.back();
}

/// The kinds of state that are one number for each parameter: a step counter, the product of NAdam's momenta. The
/// number of a parameter without dims looks like a state of its shape; the others of the kind tell.
static llvm::StringSet<> findTables(func::FuncOp func) {
  llvm::StringMap<int64_t> rankOf;
  for (BlockArgument arg : func.getArguments())
    if (auto param = getArgRole<ParamAttr>(func, arg.getArgNumber()))
      rankOf[param.getName()] = typeOf(arg).getRank();
  llvm::StringSet<> tables;
  tables.insert("step"); // Of parameters without dims alone nothing else would tell.
  for (BlockArgument arg : func.getArguments())
    if (auto state = getArgRole<StateAttr>(func, arg.getArgNumber()))
      if (typeOf(arg).getRank() == 0 && rankOf.lookup(state.getOf()) != 0)
        tables.insert(state.getState());
  return tables;
}

LogicalResult Step::readArguments(bool accumulatesUnsharded) {
  llvm::StringMap<Place> byName;
  llvm::StringSet<> tables = findTables(func);
  for (auto [number, unit] : llvm::enumerate(units))
    for (auto [index, segment] : llvm::enumerate(unit.layout.getSegments()))
      if (!byName.try_emplace(segment.getName(), Place{static_cast<int64_t>(number), static_cast<int64_t>(index)})
               .second)
        return unit.op.emitOpError() << "has parameter '" << segment.getName() << "', which another unit has too";

  // Parameters before states, so that they are every unit's first argument.
  for (bool wantParams : {true, false})
    for (BlockArgument arg : func.getArguments()) {
      auto param = getArgRole<ParamAttr>(func, arg.getArgNumber());
      auto state = getArgRole<StateAttr>(func, arg.getArgNumber());
      if (wantParams ? !param : !state)
        continue;
      StringRef name = param ? param.getName() : state.getOf();
      auto found = byName.find(name);
      if (found == byName.end())
        return func.emitError() << "parameter '" << name
                                << "' is in no shard unit; run "
                                   "spmd-assign-shard-units before partition";
      if (state && state.isGradient() && accumulatesUnsharded && ranks > 1) {
        if (func.getArgAttr(arg.getArgNumber(), kTensorCutAttr))
          return func.emitError() << "accumulate=unsharded: the gradient of parameter '" << name
                                  << "' is cut over the tensor axis, and only one that is cut over the other axes as "
                                     "well outlives a step; use accumulate=sharded";
        summands.insert(arg);
        continue;
      }
      Place place = found->second;
      Unit &unit = units[place.unit];
      ArrayRef<int64_t> shape = unit.layout.getSegments()[place.segment].getShape();
      auto type = typeOf(arg);
      bool isTable = state && type.getRank() == 0 && tables.contains(state.getState());
      // Means of rows or columns: ranks have all of them, as they have buffers.
      if (state && !isTable && type.getShape() != shape)
        continue;
      if (type.getShape() != shape && !isTable)
        return func.emitError() << "parameter '" << name << "' has type " << type << ", but its segment has "
                                << RankedTensorType::get(shape, type.getElementType());
      UnitArgument &argument = getArgument(unit, param ? "param" : state.getState(), isTable, type.getElementType(),
                                           state ? state.getInit() : FloatAttr());
      if (argument.init != (state ? state.getInit() : FloatAttr()))
        argument.init = {}; // They differ: the weights file must have them.
      argument.members[place.segment] = arg;
      places[arg] = place;
      if (isTable)
        tableArguments.insert(arg);
    }
  return success();
}

} // namespace spmd::partition
