//===- AssignShardUnits.cpp - spmd-assign-shard-units ---------------------===//
//
// The IR's side of lib/ShardUnits: the module tree and the parameters out of
// the IR, the units into it.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/ElementType.h"
#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/ReshardOpen.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "spmd/ShardUnits/ShardUnits.h"
#include "spmd/Transforms/StepPass.h"
#include "spmd/Transforms/Units/Passes.h"

namespace spmd {
#define GEN_PASS_DEF_ASSIGNSHARDUNITS
#include "spmd/Transforms/Units/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

struct AssignShardUnitsPass : StepPass<spmd::impl::AssignShardUnitsBase<AssignShardUnitsPass>> {
  using StepPass::StepPass;
  LogicalResult runOnStep(func::FuncOp step) override;

private:
  FailureOr<units::ModuleTree> readTree(func::FuncOp step);
  FailureOr<units::Request> readRequest();
  void createMesh(OpBuilder &builder);
  void createUnits(OpBuilder &builder, const units::ModuleTree &tree, const units::Unit &unit);
  /// At the location alone: with the op, a diagnostic would print the whole program.
  LogicalResult fail(const runtime::Status &status) { return emitError(getOperation().getLoc()) << status.message; }

  LogicalResult checkPrecision(const units::ModuleTree &tree, const units::ShardUnits &assigned,
                               ArrayRef<units::Annotation> annotations);

  int64_t numUnits = 0;
  /// How parameters are cut over the tensor axis.
  llvm::StringMap<ShardingAttr> cuts;
  /// How the ranks are arranged, and the names of the axes.
  units::Mesh arranged;
  SmallVector<StringRef> axes;
  /// Of the tensor axis alone, where the step has one already.
  MeshOp tensorMesh;
  /// Ranks of a group over which units keep parameters between forward and backward; 0: no unit does.
  int64_t group = 0;
  /// Of units that say nothing else.
  units::Precision captured;
};

} // namespace

static std::vector<std::string> getStrings(ArrayAttr array) {
  std::vector<std::string> strings;
  if (array)
    for (StringRef text : array.getAsValueRange<StringAttr>())
      strings.push_back(text.str());
  return strings;
}

//===----------------------------------------------------------------------===//
// From IR
//===----------------------------------------------------------------------===//

/// Group of each parameter by name, from `spmd.param_groups`.
static llvm::StringMap<int64_t> readGroups(ModuleOp module) {
  llvm::StringMap<int64_t> groups;
  auto attr = module->getAttrOfType<ArrayAttr>("spmd.param_groups");
  if (!attr)
    return groups;
  for (auto [number, group] : llvm::enumerate(attr))
    if (auto dict = dyn_cast<DictionaryAttr>(group))
      if (auto names = dict.getAs<ArrayAttr>("parameters"))
        for (auto name : names.getAsRange<StringAttr>())
          groups[name.getValue()] = number;
  return groups;
}

/// Where the step first uses each parameter, given its argument.
static units::FirstUses findFirstUses(func::FuncOp step, ArrayRef<BlockArgument> parameters) {
  units::FirstUses uses(parameters.size());
  auto number = [](Value value) { return reinterpret_cast<uintptr_t>(value.getAsOpaquePointer()); };
  for (auto [i, parameter] : llvm::enumerate(parameters))
    uses.setParameter(number(parameter), i);
  for (Operation &op : step.getBody().front()) {
    std::vector<uint64_t> operands, results;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        operands.push_back(number(operand));
    });
    for (Value result : op.getResults())
      results.push_back(number(result));
    uses.addOp(operands, results);
  }
  return uses;
}

FailureOr<units::ModuleTree> AssignShardUnitsPass::readTree(func::FuncOp step) {
  ModuleOp module = getOperation();
  auto trees = module.getOps<ModuleTreeOp>();
  if (trees.empty() || (*trees.begin()).getBody().front().empty())
    return module.emitError("has no spmd.module_tree with modules");
  std::vector<units::ModuleRecord> modules;
  for (auto entry : (*trees.begin()).getBody().getOps<TreeModuleOp>())
    modules.push_back({entry.getPath().str(), entry.getClassName().str(), getStrings(entry.getBases()),
                       getStrings(entry->getAttrOfType<ArrayAttr>("params")), getStrings(entry.getChildren())});

  llvm::StringMap<int64_t> groups = readGroups(module);
  auto tied = module->getAttrOfType<DictionaryAttr>("spmd.tied");
  std::vector<units::ParameterRecord> parameters;
  SmallVector<BlockArgument> arguments;
  for (unsigned i = 0, e = step.getNumArguments(); i < e; ++i) {
    auto role = getArgRole<ParamAttr>(step, i);
    if (!role)
      continue;
    auto type = typeOf(step.getArgument(i));
    std::optional<runtime::DType> dtype = getDType(type.getElementType());
    if (!dtype)
      return step.emitError() << "parameter '" << role.getName() << "' has type " << type
                              << ", whose elements no shard unit can hold";
    units::ParameterRecord parameter{role.getName().str(), {}, type.getShape().vec(), *dtype, role.getTrainable()};
    if (auto cut = step.getArgAttrOfType<ShardingAttr>(i, kTensorCutAttr))
      cuts[role.getName()] = cut;
    if (tied)
      parameter.aliases = getStrings(tied.getAs<ArrayAttr>(role.getName()));
    parameter.updated = findUpdate(step, i).has_value();
    if (auto group = groups.find(role.getName()); group != groups.end())
      parameter.group = group->second;
    parameters.push_back(std::move(parameter));
    arguments.push_back(step.getArgument(i));
  }
  units::FirstUses uses = findFirstUses(step, arguments);
  for (auto [i, parameter] : llvm::enumerate(parameters))
    parameter.firstUse = uses.get(i);
  runtime::Expected<units::ModuleTree> tree = units::ModuleTree::create(std::move(modules), std::move(parameters));
  if (!tree)
    return fail(tree.error());
  return std::move(*tree);
}

/// The `precision` dictionary; present and empty when it switches mixed precision off.
static units::Precision readPrecision(DictionaryAttr dictionary) {
  auto get = [&](StringRef key) -> std::optional<runtime::DType> {
    auto type = dictionary.getAs<TypeAttr>(key);
    return type ? getDType(type.getValue()) : std::nullopt;
  };
  return {get("param"), get("reduce"), get("grad"), get("buffer"), get("output"), get("master")};
}

static units::Annotation readAnnotation(AnnotationAttr attr) {
  units::Annotation annotation;
  annotation.modules = getStrings(attr.getModules());
  annotation.ignored = getStrings(attr.getIgnored());
  annotation.reached = static_cast<bool>(attr.getReached());
  auto number = [](IntegerAttr value) { return value ? std::optional<int64_t>(value.getInt()) : std::nullopt; };
  if (attr.getMode())
    annotation.options.mode = units::parseMode(attr.getMode().getValue().str());
  annotation.options.reshardAfterForward = number(attr.getReshard());
  if (attr.getPrecision())
    annotation.options.precision = readPrecision(attr.getPrecision());
  annotation.options.prefetch = number(attr.getPrefetch());
  if (DenseI64ArrayAttr mesh = attr.getMesh(); mesh && mesh.size() == 2)
    annotation.options.mesh = units::Mesh{mesh[0], mesh[1]};
  else if (mesh && mesh.size() == 1)
    annotation.options.mesh = units::Mesh::of(mesh[0]);
  return annotation;
}

FailureOr<units::Request> AssignShardUnitsPass::readRequest() {
  ModuleOp module = getOperation();
  for (MeshOp op : module.getOps<MeshOp>())
    if (op.getDataAxes().empty())
      tensorMesh = op;
  if (!module.getOps<ShardUnitOp>().empty() ||
      llvm::any_of(module.getOps<MeshOp>(), [&](MeshOp op) { return op != tensorMesh; }))
    return module.emitError("already has a mesh or shard units");
  units::Request request;
  runtime::Expected<units::Mesh> chosen = units::chooseMesh(ranks, mesh);
  if (!chosen)
    return emitError(module.getLoc()) << "mesh: " << chosen.error().message, failure();
  if (chosen->tensor != (tensorMesh ? tensorMesh.getNumRanks() : 1))
    return emitError(module.getLoc()) << "mesh: " << chosen->describe() << " has a tensor axis of " << chosen->tensor
                                      << " ranks, and the step is one of "
                                      << (tensorMesh ? tensorMesh.getNumRanks() : 1)
                                      << "; run spmd-partition-tensor with this mesh before",
           failure();
  request.mesh = *chosen;
  request.isMeshOpen = mesh.empty();
  request.defaults.mode = units::parseMode(mode);
  if (!request.defaults.mode)
    return module.emitError() << "mode '" << mode << "' is not one of: " << units::kModes;
  if (!reshardAfterForward.empty()) {
    runtime::Expected<int64_t> reshard = units::parseReshard(reshardAfterForward);
    if (!reshard)
      return module.emitError() << "reshard-after-forward '" << reshardAfterForward << "': " << reshard.error().message;
    request.defaults.reshardAfterForward = *reshard;
  }
  runtime::Expected<units::Precision> given = units::parsePrecision(precision);
  if (!given)
    return module.emitError() << "precision: " << given.error().message;
  if (!given->empty())
    request.defaults.precision = *given;
  if (auto attr = module->getAttrOfType<DictionaryAttr>("spmd.precision")) {
    captured = readPrecision(attr);
    request.defaults.precision = given->orElse(captured);
    request.exemptClasses = getStrings(module->getAttrOfType<ArrayAttr>("spmd.exempt_classes"));
  }
  runtime::Expected<units::Policy> parsed = units::parsePolicy(policy);
  if (!parsed)
    return fail(parsed.error());
  request.policy = *parsed;
  if (!policyFile.empty()) {
    if (request.policy.kind != units::Policy::Kind::annotations)
      return module.emitError("policy and policy-file exclude each other");
    if (runtime::Status status = units::readPlanFile(policyFile, request); !status.ok())
      return fail(status);
  }
  llvm::append_range(request.ignoredModules, ignoredModules);
  llvm::append_range(request.ignoredParameters, ignoredParameters);
  request.strictTied |= strictTied;
  if (auto annotations = module->getAttrOfType<ArrayAttr>("spmd.annotations"))
    for (auto annotation : annotations.getAsRange<AnnotationAttr>())
      request.annotations.push_back(readAnnotation(annotation));
  return request;
}

//===----------------------------------------------------------------------===//
// Into IR
//===----------------------------------------------------------------------===//

static DictionaryAttr writePrecision(OpBuilder &builder, const units::Precision &precision) {
  NamedAttrList attrs;
  for (auto &[name, dtype] : precision.entries())
    if (dtype)
      attrs.set(name, TypeAttr::get(getElementType(*dtype, builder.getContext())));
  return attrs.empty() ? DictionaryAttr() : attrs.getDictionary(builder.getContext());
}

static UnitMode getMode(units::Mode mode) {
  if (mode == units::Mode::replicate)
    return UnitMode::replicate;
  return mode == units::Mode::shardOptimizer ? UnitMode::shard_optimizer : UnitMode::fully_shard;
}

/// A mesh that nobody named has the axis "data". Where parameters are kept over groups of ranks, a group is an axis.
void AssignShardUnitsPass::createMesh(OpBuilder &builder) {
  SmallVector<int64_t> sizes;
  if (arranged.hasTwoAxes()) {
    axes.push_back("replicate");
    sizes.push_back(arranged.replicate);
  }
  if (group) {
    axes.append({"outer", "inner"});
    sizes.append({arranged.shard / group, group});
  } else {
    axes.push_back(arranged.hasTwoAxes() || !mesh.empty() ? "shard" : "data");
    sizes.push_back(arranged.shard);
  }
  SmallVector<StringRef> all(axes);
  if (tensorMesh) {
    all.push_back(*tensorMesh.getTensorAxis());
    sizes.push_back(arranged.tensor);
  }
  auto made = MeshOp::create(builder, getOperation().getLoc(), "mesh", builder.getStrArrayAttr(all),
                             builder.getDenseI64ArrayAttr(sizes), StringAttr());
  if (!tensorMesh)
    return;
  made.setTensorAxisAttr(tensorMesh.getTensorAxisAttr());
  tensorMesh.erase();
}

/// One op per flat buffer of the unit; none when it has no parameters.
void AssignShardUnitsPass::createUnits(OpBuilder &builder, const units::ModuleTree &tree, const units::Unit &unit) {
  SmallVector<Attribute> modules;
  for (size_t module : unit.modules)
    modules.push_back(builder.getStringAttr(tree.getModule(module).path));
  const units::UnitOptions &options = unit.options;
  int64_t reshard = *options.reshardAfterForward;
  bool isGroup = reshard > units::UnitOptions::kReshard;
  for (const units::UnitBuffer &buffer : unit.buffers) {
    SmallVector<FlatParameter> parameters;
    for (size_t number : buffer.parameters) {
      const units::ParameterRecord &record = tree.getParameter(number);
      parameters.push_back({record.name, record.shape, record.group, record.trainable, cuts.lookup(record.name)});
    }
    bool isWhole = *options.mode == units::Mode::replicate;
    int64_t owners = isWhole ? arranged.dataRanks() : arranged.shard;
    FlatAttr layout = buildFlatLayout(getElementType(buffer.dtype, builder.getContext()), parameters, owners);
    auto op = ShardUnitOp::create(
        builder, getOperation().getLoc(), builder.getStringAttr("unit" + std::to_string(numUnits++)),
        builder.getArrayAttr(modules), FlatSymbolRefAttr::get(builder.getContext(), "mesh"),
        builder.getStrArrayAttr(isWhole ? ArrayRef(axes) : ArrayRef(axes).take_back(group ? 2 : 1)),
        UnitModeAttr::get(builder.getContext(), getMode(*options.mode)),
        reshard == units::UnitOptions::kKeep ? UnitAttr() : builder.getUnitAttr(), layout,
        isGroup && !isWhole ? builder.getI64IntegerAttr(reshard) : IntegerAttr(),
        options.prefetch ? builder.getI64IntegerAttr(*options.prefetch) : IntegerAttr(),
        writePrecision(builder, *options.precision), unit.isIgnored ? builder.getUnitAttr() : UnitAttr());
    if (unit.isReshardOpen && op.isSharded())
      op->setAttr(kReshardOpenAttr, builder.getUnitAttr());
  }
}

/// The precision with which the step was captured in a module: that of the annotation nearest above, or `otherwise`.
static units::Precision getCaptured(StringRef path, ArrayRef<units::Annotation> annotations, units::Precision otherwise) {
  const units::Annotation *nearest = nullptr;
  size_t length = 0;
  for (const units::Annotation &annotation : annotations)
    for (StringRef module : annotation.modules)
      if ((module.empty() || path == module || (path.starts_with(module) && path[module.size()] == '.')) &&
          (!nearest || module.size() >= length)) {
        nearest = &annotation;
        length = module.size();
      }
  return nearest && nearest->options.precision ? *nearest->options.precision : otherwise;
}

/// The types of buffers and of results are in the graph, where no annotation says that it was captured so; those of the
/// gradients that an optimizer gets, too.
LogicalResult AssignShardUnitsPass::checkPrecision(const units::ModuleTree &tree, const units::ShardUnits &assigned,
                                                   ArrayRef<units::Annotation> annotations) {
  if (precision.empty() && policyFile.empty())
    return success();
  for (const units::Unit &unit : assigned.units) {
    const units::Precision &own = *unit.options.precision;
    const std::string &path = tree.getModule(unit.modules.front()).path;
    std::optional<runtime::DType> grad = getCaptured(path, annotations, captured).grad;
    if (!own.empty() && own.grad != grad)
      return emitError(getOperation().getLoc())
             << "precision of shard unit '" << (path.empty() ? "(root)" : path) << "': 'grad' is chosen when a step is "
             << "captured, with precision= of spmd.capture and spmd.compile, and this one was captured "
             << (grad ? std::string("with grad=") + runtime::nameOf(*grad) : "without");
    if (own.empty() || (own.buffer == captured.buffer && own.output == captured.output))
      continue;
    return emitError(getOperation().getLoc())
           << "precision of shard unit '" << (path.empty() ? "(root)" : path)
           << "': 'buffer' and 'output' are chosen when a step is captured, with precision= of spmd.capture and "
              "spmd.compile, and this one was captured otherwise";
  }
  return success();
}

LogicalResult AssignShardUnitsPass::runOnStep(func::FuncOp step) {
  ModuleOp module = getOperation();
  FailureOr<units::Request> request = readRequest();
  if (failed(request))
    return failure();
  FailureOr<units::ModuleTree> tree = readTree(step);
  if (failed(tree))
    return failure();
  runtime::Expected<units::ShardUnits> assigned = units::assignShardUnits(*tree, *request);
  if (!assigned)
    return fail(assigned.error());
  if (failed(checkPrecision(*tree, *assigned, request->annotations)))
    return failure();
  for (const std::string &warning : assigned->warnings)
    emitWarning(module.getLoc()) << warning;
  for (const std::string &remark : assigned->remarks)
    emitRemark(module.getLoc()) << remark;

  OpBuilder builder(step);
  arranged = assigned->mesh;
  group = assigned->reshardGroup;
  createMesh(builder);
  // In the order of the module tree, whose root comes first.
  llvm::sort(assigned->units, [](const units::Unit &a, const units::Unit &b) { return a.modules[0] < b.modules[0]; });
  for (const units::Unit &unit : assigned->units)
    createUnits(builder, *tree, unit);
  createUnits(builder, *tree, assigned->ignored);
  return success();
}
