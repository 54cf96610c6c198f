//===- ImportStep.cpp - A step package as a module ------------------------===//

#include "ImportStep.h"
#include "spmd/Import/Import.h"

#include "Emitter.h"
#include "Functionalize.h"
#include "Iterations/Repeats.h"
#include "Package/StepPackage.h"

#include "dialects/Aten/AtenDialect.h"
#include "dialects/Spmd/DynamicBatch.h"
#include "dialects/Spmd/Iterations.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace spmd;

namespace {
class StepImporter {
public:
  StepImporter(const step::Step &step, MLIRContext *context) : step(step), builder(context), context(context) {}

  OwningOpRef<ModuleOp> run();

  /// After run: the phases that the nodes before `node` are in.
  int64_t countPhases(size_t node) const { return phasesBefore[node]; }

private:
  void addModuleAttributes(ModuleOp module, ArrayRef<Attribute> phases);
  void addModuleTree(ModuleOp module);
  Attribute getRole(const step::Input &input);
  Attribute getOption(const step::Option &option);
  DictionaryAttr getPrecision(const units::Precision &precision);
  Attribute getAnnotation(const units::Annotation &annotation);
  Location getLocation(const step::Node &node);
  FailureOr<SmallVector<Attribute>> emitNodes(Emitter &emitter, Functionalizer &values);
  LogicalResult addResults(func::FuncOp func, Emitter &emitter, Functionalizer &values);

  const step::Step &step;
  Builder builder;
  MLIRContext *context;
  SmallVector<Attribute> roles;      ///< of the arguments
  std::vector<int64_t> phasesBefore; ///< by node, and at the end
};
} // namespace

Attribute StepImporter::getRole(const step::Input &input) {
  FloatAttr number = input.number ? builder.getF64FloatAttr(*input.number) : FloatAttr();
  switch (input.kind) {
  case step::InputKind::param: {
    auto param = llvm::find_if(step.parameters, [&](const auto &entry) { return entry.name == input.name; });
    return ParamAttr::get(context, input.name, param->trainable);
  }
  case step::InputKind::buffer: {
    auto buffer = llvm::find_if(step.buffers, [&](const auto &entry) { return entry.name == input.name; });
    return BufferAttr::get(context, input.name, buffer->persistent);
  }
  case step::InputKind::constant:
    return ConstantAttr::get(context, input.name);
  case step::InputKind::state:
    return StateAttr::get(context, input.name, input.of, number);
  case step::InputKind::hyper:
    return HyperAttr::get(context, input.name, input.group, number);
  case step::InputKind::rng:
    return RngAttr::get(context, input.name, input.integer);
  case step::InputKind::batch:
    return BatchAttr::get(context, input.name, input.batchDim);
  }
  llvm_unreachable("covered switch");
}

Attribute StepImporter::getOption(const step::Option &option) {
  switch (option.kind) {
  case step::Option::Kind::none:
    return builder.getUnitAttr();
  case step::Option::Kind::boolean:
    return builder.getBoolAttr(option.boolean);
  case step::Option::Kind::integer:
    return builder.getI64IntegerAttr(option.integer);
  case step::Option::Kind::real:
    return builder.getF64FloatAttr(option.real);
  case step::Option::Kind::string:
    return builder.getStringAttr(option.string);
  case step::Option::Kind::list:
    return builder.getArrayAttr(llvm::map_to_vector(option.list, [&](const auto &item) { return getOption(item); }));
  }
  llvm_unreachable("covered switch");
}

static ArrayAttr getStrings(Builder &builder, const std::vector<std::string> &strings) {
  SmallVector<StringRef> refs(strings.begin(), strings.end());
  return builder.getStrArrayAttr(refs);
}

DictionaryAttr StepImporter::getPrecision(const units::Precision &precision) {
  NamedAttrList dtypes;
  for (auto &[name, dtype] : precision.entries())
    if (dtype)
      dtypes.set(name, TypeAttr::get(getElementType(*dtype, context)));
  return dtypes.getDictionary(context);
}

Attribute StepImporter::getAnnotation(const units::Annotation &annotation) {
  const units::UnitOptions &options = annotation.options;
  auto number = [&](std::optional<int64_t> value) { return value ? builder.getI64IntegerAttr(*value) : IntegerAttr(); };
  SmallVector<int64_t> sizes;
  if (options.mesh && options.mesh->hasTwoAxes())
    sizes.push_back(options.mesh->replicate);
  if (options.mesh)
    sizes.push_back(options.mesh->shard);
  DenseI64ArrayAttr mesh = options.mesh ? builder.getDenseI64ArrayAttr(sizes) : DenseI64ArrayAttr();
  DictionaryAttr precision = options.precision ? getPrecision(*options.precision) : DictionaryAttr();
  return AnnotationAttr::get(context, getStrings(builder, annotation.modules),
                             annotation.ignored.empty() ? ArrayAttr() : getStrings(builder, annotation.ignored),
                             options.mode ? builder.getStringAttr(units::nameOf(*options.mode)) : StringAttr(),
                             number(options.reshardAfterForward), precision, number(options.prefetch), mesh,
                             annotation.reached ? builder.getUnitAttr() : UnitAttr());
}

/// Frames as a call-site chain, innermost first, under the module path.
Location StepImporter::getLocation(const step::Node &node) {
  Location loc = builder.getUnknownLoc();
  if (node.stack) {
    const auto &frames = step.stacks[*node.stack];
    for (const step::Frame &frame : llvm::reverse(frames)) {
      auto at = FileLineColLoc::get(context, frame.file, frame.line, 0);
      loc = isa<UnknownLoc>(loc) ? Location(at) : Location(CallSiteLoc::get(loc, at));
    }
  }
  return node.module ? getSourceLoc(*node.module, loc) : loc;
}

void StepImporter::addModuleAttributes(ModuleOp module, ArrayRef<Attribute> phases) {
  module->setAttr("spmd.step",
                  builder.getDictionaryAttr({builder.getNamedAttr("format", builder.getI64IntegerAttr(1)),
                                             builder.getNamedAttr("name", builder.getStringAttr(step.name)),
                                             builder.getNamedAttr("torch", builder.getStringAttr(step.torch))}));
  module->setAttr(kPhasesAttr, builder.getArrayAttr(phases));
  module->setAttr("spmd.optimizer", builder.getStringAttr(step.optimizer));
  SmallVector<Attribute> groups;
  for (const step::ParamGroup &group : step.groups) {
    NamedAttrList attrs;
    for (const auto &[name, option] : group.options)
      if (option.kind != step::Option::Kind::none)
        attrs.set(name, getOption(option));
    attrs.set("parameters", getStrings(builder, group.parameters));
    groups.push_back(attrs.getDictionary(context));
  }
  module->setAttr("spmd.param_groups", builder.getArrayAttr(groups));
  module->setAttr("spmd.result_tree", builder.getStringAttr(step.resultTree));
  if (!step.zeroGradient.empty())
    module->setAttr("spmd.zero_gradient", getStrings(builder, step.zeroGradient));
  if (!step.units.empty())
    module->setAttr("spmd.annotations", builder.getArrayAttr(llvm::map_to_vector(
                                            step.units, [&](const auto &unit) { return getAnnotation(unit); })));
  if (step.precision) {
    module->setAttr("spmd.precision", getPrecision(*step.precision));
    module->setAttr("spmd.exempt_classes", getStrings(builder, step.exemptClasses));
  }
  if (step.dynamicBatch)
    module->setAttr(
        kDynamicBatchAttr,
        builder.getDictionaryAttr({builder.getNamedAttr("rows", builder.getStringAttr(step.dynamicBatch->rows)),
                                   builder.getNamedAttr("size", builder.getI64IntegerAttr(step.dynamicBatch->size))}));
  NamedAttrList tied;
  for (const step::Parameter &param : step.parameters)
    if (!param.aliases.empty())
      tied.set(param.name, getStrings(builder, param.aliases));
  for (const step::Buffer &buffer : step.buffers)
    if (!buffer.aliases.empty())
      tied.set(buffer.name, getStrings(builder, buffer.aliases));
  if (!tied.empty())
    module->setAttr("spmd.tied", tied.getDictionary(context));
}

void StepImporter::addModuleTree(ModuleOp module) {
  OpBuilder at = OpBuilder::atBlockEnd(module.getBody());
  auto tree = ModuleTreeOp::create(at, at.getUnknownLoc(), "tree");
  at.setInsertionPointToStart(&tree.getBody().emplaceBlock());
  for (const step::TreeModule &entry : step.moduleTree)
    TreeModuleOp::create(at, at.getUnknownLoc(), entry.name, entry.className, getStrings(builder, entry.bases),
                         getStrings(builder, entry.parameters), getStrings(builder, entry.buffers),
                         getStrings(builder, entry.children));
}

/// Emits all nodes; returns the phase of each segment.
FailureOr<SmallVector<Attribute>> StepImporter::emitNodes(Emitter &emitter, Functionalizer &values) {
  SmallVector<Attribute> phases;
  for (const step::Node &node : step.nodes) {
    phasesBefore.push_back(phases.size());
    Attribute phase = builder.getStringAttr(node.phase);
    if (phases.empty() || phases.back() != phase)
      phases.push_back(phase);
    emitter.segment = phases.size() - 1;
    emitter.loc = getLocation(node);
    emitter.place = "op '" + node.op + "'";
    if (std::string source = describeSource(emitter.loc); !source.empty())
      emitter.place += " of " + source;
    emitter.place += " (" + step.fileName + ": " + node.pointer + ")";
    if (failed(values.emitNode(node)))
      return failure();
  }
  phasesBefore.push_back(phases.size());
  return phases;
}

/// Returns the outputs, and the new value of every argument that was written
/// and lives on: parameters, buffers and optimizer state.
LogicalResult StepImporter::addResults(func::FuncOp func, Emitter &emitter, Functionalizer &values) {
  SmallVector<Value> results;
  SmallVector<Attribute> resultRoles;
  for (const step::Output &output : step.outputs) {
    results.push_back(values.read(output.value));
    resultRoles.push_back(output.isLoss ? Attribute(LossAttr::get(context, output.path))
                                        : Attribute(OutputAttr::get(context, output.path)));
  }
  for (auto [index, input] : llvm::enumerate(step.inputs)) {
    if (input.kind == step::InputKind::batch || input.kind == step::InputKind::hyper ||
        input.kind == step::InputKind::constant)
      continue;
    Value last = values.read(input.id);
    if (last == func.getArgument(index))
      continue;
    results.push_back(last);
    resultRoles.push_back(UpdateAttr::get(context, roles[index]));
  }
  if (llvm::is_contained(results, Value()))
    return failure();
  func::ReturnOp::create(emitter.builder, builder.getUnknownLoc(), results);
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [index, role] : llvm::enumerate(resultRoles))
    func.setResultAttr(index, kResultAttr, role);
  return success();
}

OwningOpRef<ModuleOp> StepImporter::run() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc(), step.name);
  addModuleTree(*module);

  SmallVector<Type> argTypes;
  for (const step::Input &input : step.inputs) {
    argTypes.push_back(getTensorType(input.spec, context));
    roles.push_back(getRole(input));
  }
  auto func = func::FuncOp::create(builder.getUnknownLoc(), "step", builder.getFunctionType(argTypes, {}));
  module->push_back(func);
  Block *body = func.addEntryBlock();
  Emitter emitter(body);
  emitter.defaultFloat = getElementType(step.defaultDType, context);
  for (const step::Operator &entry : step.operators)
    emitter.operators[functionalName(entry.op, /*inPlace=*/false)] = &entry;
  Functionalizer values(emitter);
  for (auto [index, input] : llvm::enumerate(step.inputs)) {
    func.setArgAttr(index, kArgAttr, roles[index]);
    values.bindInput(input.id, func.getArgument(index));
  }

  FailureOr<SmallVector<Attribute>> phases = emitNodes(emitter, values);
  if (failed(phases) || failed(addResults(func, emitter, values)))
    return {};
  addModuleAttributes(*module, *phases);

  // Everything is pure: what no result needs goes, latest first.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
  if (failed(verify(*module)))
    return {};
  return module;
}

OwningOpRef<ModuleOp> spmd::importStep(const step::Step &step, MLIRContext *context) {
  context->loadDialect<aten::AtenDialect, func::FuncDialect, SpmdDialect>();
  if (step.repeats.empty())
    return StepImporter(step, context).run();
  step::Step unrolled = step::unroll(step);
  return StepImporter(unrolled, context).run();
}

/// `step` with the first `kept` iterations of a loop only, and what is left out; whole where that cannot be.
static OwningOpRef<ModuleOp> importIterations(const step::Step &step, int64_t kept, MLIRContext *context) {
  const step::Repeat *loop = step.dynamicBatch ? nullptr : step::findUniformLoop(step, kept);
  if (!loop)
    return importStep(step, context);
  context->loadDialect<aten::AtenDialect, func::FuncDialect, SpmdDialect>();
  step::Step few = step::unroll(step::keepIterations(step, *loop, kept));
  StepImporter importer(few, context);
  OwningOpRef<ModuleOp> module = importer.run();
  if (!module)
    return {};
  int64_t behind = loop->begin + kept * (loop->end - loop->begin);
  for (const step::Repeat *before = step.repeats.data(); before != loop; ++before)
    behind += (before->count - 1) * (before->end - before->begin);
  DenseMap<int64_t, StringRef> names;
  for (const step::Input &input : step.inputs)
    names[input.id] = input.name;
  Builder builder(context);
  SmallVector<Attribute> fed;
  for (const step::Repeat::Fed &entry : loop->fed)
    fed.push_back(builder.getStrArrayAttr(llvm::map_to_vector(entry.of, [&](int64_t id) { return names.at(id); })));
  FewIterations iterations{loop->count, kept, builder.getArrayAttr(fed), importer.countPhases(behind)};
  (*module)->setAttr(kIterationsAttr, iterations.toAttr(builder));
  return module;
}

/// `kept`: of a loop that can do with so many iterations; 0: all of all.
static OwningOpRef<ModuleOp> importFile(StringRef path, int64_t kept, MLIRContext *context) {
  SmallString<128> file(path);
  if (llvm::sys::fs::is_directory(path))
    llvm::sys::path::append(file, "step.json");
  auto fail = [&](const runtime::Status &status) {
    emitError(UnknownLoc::get(context)) << status.message;
    return OwningOpRef<ModuleOp>();
  };
  runtime::Expected<step::Step> step = step::readStep(file.str().str());
  if (!step)
    return fail(step.error());
  std::string folder = llvm::sys::path::parent_path(file).str();
  if (folder.empty())
    folder = ".";
  if (runtime::Status status = step::checkWeights(*step, folder); !status.ok())
    return fail(status);
  OwningOpRef<ModuleOp> module = kept ? ::importIterations(*step, kept, context) : importStep(*step, context);
  SmallString<128> otherFile(folder);
  llvm::sys::path::append(otherFile, kOtherBatchName, "step.json");
  if (!module || !step->dynamicBatch || !llvm::sys::fs::exists(otherFile))
    return module;
  runtime::Expected<step::Step> other = step::readStep(otherFile.str().str());
  if (!other)
    return fail(other.error());
  OwningOpRef<ModuleOp> otherModule = importStep(*other, context);
  if (!otherModule)
    return {};
  otherModule->setSymName(kOtherBatchName);
  module->push_back(otherModule.release());
  return module;
}

OwningOpRef<ModuleOp> spmd::importStep(StringRef path, MLIRContext *context) {
  return importFile(path, /*kept=*/0, context);
}

OwningOpRef<ModuleOp> spmd::importIterations(StringRef path, int64_t kept, MLIRContext *context) {
  return importFile(path, kept, context);
}
