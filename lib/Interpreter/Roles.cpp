//===- Roles.cpp - between global tensors and ranks' arguments ------------===//

#include "Roles.h"
#include "UnitChunk.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Spmd.h"
#include "spmd/Interpreter/RankRows.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::interp {

Attribute getArgumentRole(func::FuncOp step, unsigned index) {
  Attribute role = step.getArgAttr(index, "spmd.arg");
  if (!role)
    step.emitError() << "argument " << index << " has no role (spmd.arg)";
  return role;
}

Attribute getResultRole(func::FuncOp step, unsigned index) {
  Attribute role = step.getResultAttr(index, "spmd.result");
  if (!role)
    step.emitError() << "result " << index << " has no role (spmd.result)";
  return role;
}

static RankedTensorType withLayout(Type type, Attribute layout) {
  auto tensor = cast<RankedTensorType>(type);
  if (!layout)
    return tensor;
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), layout);
}

RankedTensorType getArgumentType(func::FuncOp step, unsigned index) {
  RankedTensorType type = withLayout(step.getArgument(index).getType(), step.getArgAttr(index, kLayoutAttr));
  auto batch = dyn_cast_or_null<BatchAttr>(step.getArgAttr(index, "spmd.arg"));
  if (!batch)
    return type;
  int64_t ranks = 1;
  for (auto mesh : step->getParentOfType<ModuleOp>().getOps<MeshOp>())
    ranks = mesh.getNumDataRanks();
  // What ranks have of their own is given as one global batch.
  ShardingAttr layout = getVaryingBatchLayout(batch, type, ranks);
  return layout ? withLayout(type, layout) : type;
}

RankedTensorType getResultType(func::FuncOp step, unsigned index) {
  return withLayout(step.getResultTypes()[index], step.getResultAttr(index, kLayoutAttr));
}

static ShardingAttr getSharding(RankedTensorType type) { return dyn_cast_or_null<ShardingAttr>(type.getEncoding()); }

static ShapeRef globalShape(RankedTensorType type) {
  ShardingAttr sharding = getSharding(type);
  return sharding ? sharding.getGlobalShape() : type.getShape();
}

static std::string stateKey(llvm::StringRef state, llvm::StringRef parameter) {
  return state == "param" ? parameter.str() : ("optimizer/" + state + "/" + parameter).str();
}

static std::string stateKind(llvm::StringRef state) { return state == "param" ? "parameters" : state.str(); }

/// The parameter in a wider type begins as the parameter.
static std::string beginningOf(llvm::StringRef state, llvm::StringRef parameter, std::optional<double> init) {
  return state == "master" && !init ? parameter.str() : "";
}

static std::optional<double> initial(FloatAttr init) {
  return init ? std::optional(init.getValueAsDouble()) : std::nullopt;
}

/// The shape of a parameter, of which the tensor axis may leave a rank a part.
static ShapeRef getWholeShape(SegmentAttr segment) {
  return segment.getTensor() ? segment.getTensor().getGlobalShape() : segment.getShape();
}

/// One global tensor per segment of a unit; entries of tables are 0-dim.
static FailureOr<SmallVector<GlobalTensor>> describeUnit(FlatSymbolRefAttr unitName, llvm::StringRef state,
                                                         bool isTable, DType dtype, std::optional<double> init,
                                                         Operation *scope) {
  FailureOr<ShardUnitOp> unit = lookupUnit(scope, unitName);
  if (failed(unit))
    return failure();
  SmallVector<GlobalTensor> result;
  for (SegmentAttr segment : unit->getLayout().getSegments()) {
    // A parameter that is frozen, or in no optimizer, has a place in its unit's optimizer state, and no state in it.
    bool isOptimizerState = state != "param" && state != "grad";
    bool hasNone = (!segment.getTrainable() && state != "param") || (segment.getGroup() < 0 && isOptimizerState);
    result.push_back({stateKey(state, segment.getName()), stateKind(state),
                      isTable ? Shape() : Shape(getWholeShape(segment)), dtype, hasNone ? 0.0 : init, hasNone,
                      beginningOf(state, segment.getName(), init)});
  }
  return result;
}

FailureOr<SmallVector<GlobalTensor>> describeRole(Attribute role, RankedTensorType type, Operation *scope) {
  using List = FailureOr<SmallVector<GlobalTensor>>;
  std::optional<DType> dtype = getDType(type.getElementType());
  if (!dtype)
    return scope->emitError() << "tensors of " << type.getElementType() << " are not supported";
  auto one = [&](std::string key, std::string kind, std::optional<double> init = std::nullopt) -> List {
    return SmallVector<GlobalTensor>{{std::move(key), std::move(kind), Shape(globalShape(type)), *dtype, init, false}};
  };
  return llvm::TypeSwitch<Attribute, List>(role)
      .Case([&](ParamAttr a) { return one(a.getName().str(), "parameters"); })
      .Case([&](BufferAttr a) { return one(a.getName().str(), "buffers"); })
      .Case([&](ConstantAttr a) { return one("constant/" + a.getName().str(), "constants"); })
      .Case([&](StateAttr a) {
        List state = one(stateKey(a.getState(), a.getOf()), stateKind(a.getState()), initial(a.getInit()));
        state->front().beginsAs = beginningOf(a.getState(), a.getOf(), initial(a.getInit()));
        return state;
      })
      .Case([&](HyperAttr a) {
        return one("hyper/" + a.getName().str() + "/" + std::to_string(a.getGroup()), "hyper", initial(a.getValue()));
      })
      .Case([&](RngAttr a) { return one("rng/" + a.getName().str(), "rng", static_cast<double>(a.getInit())); })
      .Case([&](BatchAttr a) { return one("batch/" + a.getName().str(), "batch"); })
      .Case([&](ShardAttr a) {
        return describeUnit(a.getUnit(), a.getState(), /*isTable=*/false, *dtype, initial(a.getInit()), scope);
      })
      .Case([&](TableAttr a) {
        return describeUnit(a.getUnit(), a.getState(), /*isTable=*/true, *dtype, initial(a.getInit()), scope);
      })
      .Case([&](LossAttr a) { return one("loss/" + a.getPath().str(), "loss"); })
      .Case([&](OutputAttr a) { return one("output/" + a.getPath().str(), "outputs"); })
      .Case([&](UpdateAttr a) { return describeRole(a.getArg(), type, scope); })
      .Default([&](Attribute other) -> List { return scope->emitError() << "unknown role " << other; });
}

/// The attribute of the argument that a role is about.
static Attribute withoutUpdate(Attribute role) {
  auto update = dyn_cast<UpdateAttr>(role);
  return update ? update.getArg() : role;
}

/// Ranks have summands of what the role says.
static bool isSum(Attribute role, const AxisState &state) {
  return isa<StateAttr>(role) && state.isSummand();
}

/// Ranks along the first axis have summands of a chunk.
static bool isSumAcross(RankedTensorType type) {
  ShardingAttr sharding = getSharding(type);
  return sharding && sharding.getStates().size() == 2 && sharding.getStates().front().isSummand();
}

/// Each rank has the whole flat buffer of what the role says.
static bool isWholeParameters(ShardUnitOp unit, ShardAttr role) {
  return unit.hasWholeParameters() && role.getState() == "param";
}

/// The chunk of `flat` of every rank.
static FailureOr<PerRank> shardFlat(ShardUnitOp unit, bool isWhole, ArrayRef<Tensor> segments, DType dtype,
                                    const Mesh &mesh) {
  PerRank result;
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    FailureOr<UnitChunk> chunk = getUnitChunk(unit, mesh.coordinates(rank), isWhole);
    if (failed(chunk))
      return failure();
    Tensor local(dtype, {chunk->size});
    for (const SegmentRun &run : chunk->runs) {
      Tensor from = segments[run.segment];
      if (ShardingAttr tensor = unit.getLayout().getSegments()[run.segment].getTensor()) {
        AxisState cut = tensor.getStates().front();
        from = takeRows(from, cut.dim, cut.pre, cut.chunk, mesh.tensorRank(rank));
      }
      for (int64_t i = run.begin; i < run.end; ++i)
        local.set(i, from.at(run.source + i - run.begin));
    }
    result.push_back(std::move(local));
  }
  return result;
}

FailureOr<PerRank> shard(Attribute role, RankedTensorType type, Operation *scope, ArrayRef<Tensor> globals,
                         const Mesh &mesh) {
  role = withoutUpdate(role);
  DType dtype = *getDType(type.getElementType());
  if (auto flat = dyn_cast<ShardAttr>(role)) {
    FailureOr<ShardUnitOp> unit = lookupUnit(scope, flat.getUnit());
    if (failed(unit))
      return failure();
    FailureOr<PerRank> chunks = shardFlat(*unit, isWholeParameters(*unit, flat), globals, dtype, mesh);
    if (succeeded(chunks) && isSumAcross(type))
      for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank)
        if (mesh.coordinates(rank)[0] != 0) // the first has all of it
          (*chunks)[rank] = Tensor(dtype, (*chunks)[rank].shape());
    return chunks;
  }
  if (isa<TableAttr>(role)) {
    Tensor table(dtype, {static_cast<int64_t>(globals.size())});
    for (auto [i, entry] : llvm::enumerate(globals))
      table.set(i, entry.at(0));
    return PerRank(mesh.numRanks(), table);
  }
  PerRank result(mesh.numRanks(), globals[0]);
  ShardingAttr sharding = getSharding(type);
  if (!sharding)
    return result;
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    SmallVector<int64_t> coordinates = mesh.coordinates(rank);
    for (auto [axis, state] : llvm::enumerate(sharding.getStates())) {
      // One state alone is that of all ranks in their order.
      int64_t position = sharding.getStates().size() == 1 ? mesh.dataRank(rank) : coordinates[axis];
      if (state.isShard())
        result[rank] = takeRows(result[rank], state.dim, state.pre, state.chunk, position);
      else if (isSum(role, state)) // the first rank has all of it
        result[rank] = position == 0 ? result[rank] : Tensor(dtype, result[rank].shape());
      else if (!state.isReplicated() && !state.isVarying())
        return scope->emitError() << "an argument cannot be " << state.str() << ": " << role;
    }
  }
  return result;
}

static LogicalResult checkIdentical(Operation *scope, Attribute role, const PerRank &locals, ArrayRef<int64_t> group) {
  for (int64_t rank : group.drop_front())
    if (!locals[group[0]].identical(locals[rank]))
      return scope->emitError() << "the result " << role << " differs on ranks " << group[0] << " and " << rank;
  return success();
}

/// Segments out of the chunks of all ranks; what is no segment must be zero.
static FailureOr<SmallVector<Tensor>> unshardFlat(ShardUnitOp unit, bool isWhole, Attribute role,
                                                  const PerRank &locals, const Mesh &mesh) {
  // Of each place on the tensor axis.
  int64_t parts = mesh.hasTensorAxis ? mesh.sizes.back() : 1;
  SmallVector<SmallVector<Tensor>> partsOf;
  for (SegmentAttr segment : unit.getLayout().getSegments()) {
    partsOf.emplace_back();
    for (int64_t part = 0; part < parts; ++part) // tensors share what they are copied from
      partsOf.back().push_back(Tensor(locals[0].dtype(), segment.getShape()));
  }
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    FailureOr<UnitChunk> chunk = getUnitChunk(unit, mesh.coordinates(rank), isWhole);
    if (failed(chunk))
      return failure();
    int64_t checked = 0;
    auto checkPadding = [&](int64_t end) -> LogicalResult {
      for (; checked < end; ++checked)
        if (locals[rank].at(checked) != 0)
          return unit.emitError() << "padding is not zero: element " << checked << " of " << role << " on rank " << rank
                                  << " is " << locals[rank].at(checked);
      return success();
    };
    for (const SegmentRun &run : chunk->runs) {
      if (failed(checkPadding(run.begin)))
        return failure();
      checked = run.end;
      for (int64_t i = run.begin; i < run.end; ++i)
        partsOf[run.segment][mesh.tensorRank(rank)].set(run.source + i - run.begin, locals[rank].at(i));
    }
    if (failed(checkPadding(chunk->size)))
      return failure();
  }
  SmallVector<Tensor> result;
  for (auto [segment, all] : llvm::zip_equal(unit.getLayout().getSegments(), partsOf)) {
    if (ShardingAttr tensor = segment.getTensor()) {
      AxisState cut = tensor.getStates().front();
      result.push_back(joinRows(all, cut.dim, cut.pre, tensor.getGlobalShape()[cut.dim] / cut.pre));
      continue;
    }
    for (const Tensor &part : all)
      if (!part.identical(all.front()))
        return unit.emitError() << "'" << segment.getName() << "' of " << role << " differs along the tensor axis";
    result.push_back(all.front());
  }
  return result;
}

/// The mean of 0-dim values, as the runtime gives it.
static Tensor mean(ArrayRef<Tensor> values) {
  double sum = 0;
  for (const Tensor &value : values)
    sum += value.at(0);
  return Tensor::scalar(values[0].dtype(), sum / static_cast<double>(values.size()));
}

FailureOr<SmallVector<Tensor>> unshard(Attribute role, RankedTensorType type, Operation *scope, const PerRank &locals,
                                       const Mesh &mesh) {
  role = withoutUpdate(role);
  SmallVector<int64_t> all;
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    all.push_back(rank);
  if (auto flat = dyn_cast<ShardAttr>(role)) {
    FailureOr<ShardUnitOp> unit = lookupUnit(scope, flat.getUnit());
    if (failed(unit))
      return failure();
    bool isWhole = isWholeParameters(*unit, flat);
    if (isWhole || !unit->isSharded())
      for (ArrayRef<int64_t> group : mesh.groupsOfState(0, 1))
        if (failed(checkIdentical(scope, role, locals, group)))
          return failure();
    PerRank chunks = locals;
    if (isSumAcross(type))
      for (ArrayRef<int64_t> group : mesh.groupsOfState(0, 2)) {
        SmallVector<Tensor> summands;
        for (int64_t rank : group)
          summands.push_back(locals[rank]);
        for (int64_t rank : group)
          chunks[rank] = combine(summands, ReduceKind::sum, /*roundEach=*/false);
      }
    return unshardFlat(*unit, isWhole, role, chunks, mesh);
  }
  if (isa<TableAttr>(role)) {
    if (failed(checkIdentical(scope, role, locals, all)))
      return failure();
    SmallVector<Tensor> entries;
    for (int64_t i = 0, e = locals[0].numel(); i < e; ++i)
      entries.push_back(Tensor::scalar(locals[0].dtype(), locals[0].at(i)));
    return entries;
  }
  ShardingAttr sharding = getSharding(type);
  if (!sharding) {
    if (failed(checkIdentical(scope, role, locals, all)))
      return failure();
    return SmallVector<Tensor>{locals[0]};
  }
  // Axis by axis, the first rank of each group takes the combined value.
  PerRank values = locals;
  for (auto [axis, state] : llvm::enumerate(sharding.getStates()))
    for (ArrayRef<int64_t> group : mesh.groupsOfState(axis, sharding.getStates().size())) {
      SmallVector<Tensor> members;
      for (int64_t rank : group)
        members.push_back(values[rank]);
      Tensor whole = members[0];
      if (state.isReplicated()) {
        if (failed(checkIdentical(scope, role, values, group)))
          return failure();
      } else if (state.isShard()) {
        whole = joinRows(members, state.dim, state.pre, sharding.getGlobalShape()[state.dim] / state.pre);
      } else if (isSum(role, state)) {
        whole = combine(members, ReduceKind::sum, /*roundEach=*/false);
      } else if (state.isVarying()) {
        // A buffer is each rank's own: reading gives the first one's.
        bool isResult = isa<LossAttr, OutputAttr>(role);
        whole = isResult && members[0].isFloating() && members[0].shape().empty() ? mean(members) : members[0];
      } else if (state.isPartial()) {
        whole = combine(members, state.kind, /*roundEach=*/false);
      } else {
        return scope->emitError() << "the result " << role << " cannot be " << state.str();
      }
      for (int64_t rank : group)
        values[rank] = whole;
    }
  return SmallVector<Tensor>{values[0]};
}

} // namespace spmd::interp
