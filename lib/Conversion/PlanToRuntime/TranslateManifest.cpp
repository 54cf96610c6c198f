//===- TranslateManifest.cpp - What a module says of its plan -------------===//

#include "KernelKind.h"
#include "TranslateOperation.h"
#include "TranslateRepeats.h"
#include "TranslateRole.h"
#include "dialects/Spmd/ElementType.h"
#include "dialects/Spmd/ResultSource.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/KernelTable.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace spmd;

namespace {

class ManifestTranslator {
public:
  ManifestTranslator(ModuleOp module, plan::ProgramOp program, const runtime::Plan &plan,
                     const ArtifactKernels &kernels)
      : module(module), program(program), plan(plan), kernels(kernels) {
    for (auto [id, buffer] : llvm::enumerate(program.getOps<plan::BufferOp>()))
      buffers[buffer.getSymName()] = {static_cast<int64_t>(id), buffer};
  }

  FailureOr<runtime::Manifest> translate();

private:
  // Sections, in the order of the format.
  void addHeader();
  void addArena();
  void addProgram();
  void addKernels();
  void addUnits();
  LogicalResult addInputs();
  LogicalResult addOutputs();
  void addReplicated();
  LogicalResult addValues();

  /// Offset in the arena, and the buffer's number.
  template <typename Entry>
  void addPlace(Entry &entry, plan::RefAttr ref) {
    auto [id, buffer] = buffers.lookup(ref.getBuffer().getValue());
    entry.offset = static_cast<int64_t>(buffer.getOffset()) + ref.getOffset();
    entry.buffer = id;
  }
  std::vector<std::string> aliasesOf(StringRef parameter);

  ModuleOp module;
  plan::ProgramOp program;
  const runtime::Plan &plan;
  const ArtifactKernels &kernels;
  llvm::StringMap<std::pair<int64_t, plan::BufferOp>> buffers;
  runtime::Manifest manifest;
};

} // namespace

static std::string getString(DictionaryAttr dictionary, StringRef key) {
  auto value = dictionary ? dictionary.getAs<StringAttr>(key) : StringAttr();
  return value ? value.str() : "";
}

static std::vector<std::string> toStrings(ArrayAttr values) {
  std::vector<std::string> strings;
  if (values)
    for (StringRef value : values.getAsValueRange<StringAttr>())
      strings.push_back(value.str());
  return strings;
}

std::vector<std::string> ManifestTranslator::aliasesOf(StringRef parameter) {
  auto tied = module->getAttrOfType<DictionaryAttr>("spmd.tied");
  return toStrings(tied ? tied.getAs<ArrayAttr>(parameter) : ArrayAttr());
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// The state that shards the tensor, or null. There is at most one (checkLayout).
static const AxisState *findShard(Attribute layout) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(layout);
  if (!sharding)
    return nullptr;
  for (const AxisState &state : sharding.getStates())
    if (state.isShard())
      return &state;
  return nullptr;
}

static bool isVarying(Attribute layout) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(layout);
  return sharding && llvm::any_of(sharding.getStates(), [](const AxisState &state) { return state.isVarying(); });
}

static LogicalResult checkLayout(Operation *op, Attribute layout) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(layout);
  if (!sharding)
    return success();
  int64_t shards = llvm::count_if(sharding.getStates(), [](const AxisState &state) { return state.isShard(); });
  if (shards > 1 || llvm::any_of(sharding.getStates(), [](const AxisState &s) { return s.isPartial() || s.isOwned(); }))
    return op->emitOpError("has layout ") << layout << "; inputs and outputs are replicated or sharded on one axis";
  return success();
}

/// How a tensor is cut over the ranks: global shape, and dim, pre, chunk when it is.
template <typename Entry>
static void addLayout(Entry &entry, Attribute layout, RankedTensorType local) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(layout);
  entry.shape = (sharding ? sharding.getGlobalShape() : local.getShape()).vec();
  if (const AxisState *shard = findShard(layout))
    entry.split = {shard->dim, shard->pre, shard->chunk};
  entry.localShape = local.getShape().vec();
}

//===----------------------------------------------------------------------===//
// Sections, in the order of the format
//===----------------------------------------------------------------------===//

void ManifestTranslator::addHeader() {
  auto compile = module->getAttrOfType<DictionaryAttr>("spmd.compile");
  manifest.compiler = SPMD_VERSION;
  manifest.step = getString(module->getAttrOfType<DictionaryAttr>("spmd.step"), "name");
  manifest.target = getString(compile, "target");
  if (manifest.target.empty())
    manifest.target = "host";
  manifest.mode = getString(compile, "mode");
  manifest.policy = getString(compile, "policy");
  manifest.view = getString(compile, "view");
  for (auto mesh : module.getOps<MeshOp>())
    for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes()))
      manifest.mesh.push_back({name.str(), size, mesh.getTensorAxis() == name});
  manifest.ranks = program.getRanks();
}

void ManifestTranslator::addArena() {
  manifest.stateBytes = program.getStateBytes();
  manifest.transientBytes = program.getTransientBytes();
  manifest.arenaBytes = manifest.stateBytes + manifest.transientBytes;
  for (const runtime::Buffer &buffer : plan.buffers)
    if (buffer.state)
      manifest.classBytes[buffer.memoryClass] += buffer.bytes;
  for (NamedAttribute entry : program.getPeak())
    if (auto bufferClass = plan::symbolizeBufferClass(entry.getName()))
      manifest.classBytes[plan::getClassName(*bufferClass).str()] += cast<IntegerAttr>(entry.getValue()).getInt();
}

void ManifestTranslator::addProgram() {
  std::string name = program.getSymName().str();
  manifest.programs.push_back({name, name + ".plan.json",
                               runtime::formatHash(runtime::hashBytes(runtime::collectiveTrace(plan))), /*hash=*/""});
}

static runtime::LaunchParameter translateParameter(Attribute parameter) {
  runtime::LaunchParameter translated;
  auto typed = cast<TypedAttr>(parameter);
  if (isa<IndexType>(typed.getType())) {
    translated.reference = cast<IntegerAttr>(parameter).getInt();
    return translated;
  }
  translated.dtype = *getDType(typed.getType());
  translated.bits = isa<FloatAttr>(parameter) ? cast<FloatAttr>(parameter).getValue().bitcastToAPInt().getZExtValue()
                                              : cast<IntegerAttr>(parameter).getValue().getZExtValue();
  return translated;
}

static runtime::UserLaunch translateUserLaunch(kernel::LaunchAttr launch) {
  runtime::UserLaunch translated;
  translated.function = launch.getFunction().str();
  llvm::copy(launch.getGrid(), translated.grid.begin());
  llvm::copy(launch.getBlock(), translated.block.begin());
  for (Attribute parameter : launch.getParameters())
    translated.parameters.push_back(translateParameter(parameter));
  return translated;
}

static runtime::KernelLaunch translateLaunch(StringRef chip, const kernel::GpuKernel &kernel) {
  runtime::KernelLaunch launch;
  launch.kernel = kernel.symbol;
  launch.chip = chip.str();
  launch.blocks = kernel.blocks;
  launch.threads = kernel.threads;
  launch.dynamicSharedBytes = kernel.dynamicSharedBytes;
  launch.pointers = kernel.pointers;
  launch.coordinates = kernel.coordinates;
  launch.movedBytes = kernel.movedBytes;
  launch.offset = kernel.offset;
  launch.bytes = kernel.bytes;
  launch.registers = kernel.registers;
  launch.staticSharedBytes = kernel.staticSharedBytes;
  launch.localBytes = kernel.localBytes;
  launch.spillStoreBytes = kernel.spillStoreBytes;
  launch.spillLoadBytes = kernel.spillLoadBytes;
  launch.barriers = kernel.barriers;
  if (kernel.launch)
    launch.user = translateUserLaunch(kernel.launch);
  return launch;
}

void ManifestTranslator::addKernels() {
  manifest.kernels = kernels.files;
  llvm::StringMap<int64_t> movedBytes;
  for (const kernel::HostKernel &kernel : kernels.hostKernels)
    movedBytes[kernel.symbol] = kernel.movedBytes;
  llvm::StringMap<bool> seen;
  module.walk([&](kernel::KernelOpInterface op) {
    StringAttr symbol = op.getSymbolAttr();
    if (!symbol || !op.isGenerated() || !seen.try_emplace(symbol.getValue()).second)
      return;
    runtime::KernelInfo info{symbol.str(), kernel::getKernelKind(op).str(), op.getBytesMoved(), std::nullopt,
                             kernel::getProducts(op)};
    if (auto moved = movedBytes.find(symbol.getValue()); moved != movedBytes.end())
      info.movedBytes = moved->second;
    manifest.kernelTable.push_back(std::move(info));
  });
  for (const auto &[chip, kernel] : kernels.launches)
    manifest.launches.push_back(translateLaunch(chip, kernel));
}

void ManifestTranslator::addUnits() {
  for (auto op : module.getOps<ShardUnitOp>()) {
    FlatAttr layout = op.getLayout();
    runtime::Unit unit;
    unit.name = op.getSymName().str();
    unit.modules = toStrings(op.getModules());
    // Parameters are floating-point (verified), and the runtime has all such types that steps can have.
    unit.dtype = getDType(layout.getDtype()).value_or(runtime::DType::F32);
    unit.padded = layout.getPadded();
    unit.chunk = op.getChunk();
    auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, op.getMeshAttr());
    if (op.isSharded() && mesh && op.getAxes() != mesh.getAxisNames())
      unit.axes = toStrings(op.getAxes());
    unit.wholeGradient = op->hasAttr(kWholeGradientAttr);
    for (SegmentAttr segment : layout.getSegments()) {
      unit.segments.push_back({segment.getName().str(), aliasesOf(segment.getName()), segment.getShape().vec(),
                               segment.getGroup(), segment.getOffset(), segment.getNumel(), segment.getTrainable()});
      if (ShardingAttr tensor = segment.getTensor()) {
        AxisState cut = tensor.getStates().front();
        unit.segments.back().wholeShape = tensor.getGlobalShape().vec();
        unit.segments.back().tensor = {cut.dim, cut.pre, cut.chunk};
      }
    }
    manifest.units.push_back(std::move(unit));
  }
}

LogicalResult ManifestTranslator::addInputs() {
  for (auto input : program.getOps<plan::InputOp>()) {
    auto type = cast<RankedTensorType>(input.getType());
    FailureOr<RoleEntry> entry = translateRole(input, input.getRole(), type);
    if (failed(entry))
      return failure();
    if (auto *state = std::get_if<runtime::StateEntry>(&*entry)) {
      if (state->kind == runtime::StateEntry::Kind::Replicated)
        state->aliases = aliasesOf(state->name);
      if (auto layout = dyn_cast_or_null<ShardingAttr>(input.getLayoutAttr()))
        state->isSum = llvm::any_of(layout.getStates(), [](const AxisState &s) { return s.isSummand(); });
      addPlace(*state, input.getRef());
      manifest.state.push_back(std::move(*state));
    } else if (auto *batch = std::get_if<runtime::BatchInput>(&*entry)) {
      if (failed(checkLayout(input, input.getLayoutAttr())))
        return failure();
      addLayout(*batch, input.getLayoutAttr(), type);
      addPlace(*batch, input.getRef());
      batch->indexBound = input.getIndexBound();
      batch->ignoreIndex = input.getIgnoreIndex();
      manifest.batch.push_back(std::move(*batch));
    } else if (auto *hyper = std::get_if<runtime::HyperParameter>(&*entry)) {
      addPlace(*hyper, input.getRef());
      manifest.hyper.push_back(std::move(*hyper));
    }
  }
  return success();
}

LogicalResult ManifestTranslator::addOutputs() {
  for (auto op : program.getOps<plan::OutputOp>()) {
    if (!isa<LossAttr, OutputAttr>(op.getRole()))
      return op.emitOpError("has role ") << op.getRole() << ", which is no result's";
    auto type = cast<RankedTensorType>(op.getType());
    FailureOr<RoleEntry> entry = translateRole(op, op.getRole(), type);
    if (failed(entry) || failed(checkLayout(op, op.getLayoutAttr())))
      return failure();
    auto output = std::get<runtime::Output>(std::move(*entry));
    output.isVarying = isVarying(op.getLayoutAttr());
    addLayout(output, op.getLayoutAttr(), type);
    addPlace(output, op.getRef());
    manifest.outputs.push_back(std::move(output));
  }
  auto tree = module->getAttrOfType<StringAttr>("spmd.result_tree");
  manifest.resultTree = tree ? tree.str() : "";
  manifest.zeroGradient = toStrings(module->getAttrOfType<ArrayAttr>("spmd.zero_gradient"));
  return success();
}

void ManifestTranslator::addReplicated() {
  auto values = module->getAttrOfType<ArrayAttr>(kReplicatedAttr);
  if (!values)
    return;
  for (auto value : values.getAsRange<DictionaryAttr>()) {
    auto bytes = value.getAs<IntegerAttr>("bytes");
    manifest.replicated.push_back({getString(value, "op"), getString(value, "source"), bytes ? bytes.getInt() : 0});
  }
}

/// What the step computes; see plan.dataflow.
LogicalResult ManifestTranslator::addValues() {
  auto dataflows = module.getOps<plan::DataflowOp>();
  if (dataflows.empty())
    return success();
  manifest.values.emplace();
  DenseMap<Value, int32_t> numbers;
  llvm::StringMap<int32_t> inputs;
  auto numbersOf = [&](ValueRange values) {
    std::vector<int32_t> list;
    for (Value value : values)
      list.push_back(numbers.at(value));
    return list;
  };
  auto sizeOf = [](Value value) { return cast<plan::BytesType>(value.getType()).getSize(); };
  using Kind = runtime::ValueEntry::Kind;
  for (Operation &op : (*dataflows.begin()).getOps()) {
    runtime::ValueEntry entry;
    for (Value result : op.getResults())
      entry.bytes.push_back(sizeOf(result));
    auto name = [&](Kind kind, Attribute role, Type type) -> LogicalResult {
      FailureOr<RoleEntry> bound = translateRole(&op, role, cast<RankedTensorType>(type));
      if (failed(bound))
        return failure();
      entry.kind = kind;
      entry.binding = std::visit([](const auto &it) { return runtime::bindingOf(it); }, *bound);
      return success();
    };
    if (auto source = dyn_cast<plan::SourceOp>(op)) {
      if (failed(name(Kind::Source, source.getRole(), source.getTensor())))
        return failure();
      if (auto batch = dyn_cast<BatchAttr>(source.getRole()))
        inputs[batch.getName()] = static_cast<int32_t>(numbers.size());
    } else if (auto compute = dyn_cast<plan::ComputeOp>(op)) {
      entry.kind = Kind::Compute;
      FailureOr<runtime::Operation> operation = translateOperation(compute);
      if (failed(operation))
        return failure();
      entry.operation = std::move(*operation);
      entry.of = numbersOf(compute.getOperands());
      if (std::optional<ArrayAttr> reads = compute.getReads())
        for (auto ofResult : reads->getAsRange<DenseI32ArrayAttr>())
          entry.reads.push_back(ofResult.asArrayRef().vec());
      if (std::optional<ArrayRef<int32_t>> byRank = compute.getByRank())
        entry.byRank = byRank->vec();
      if (std::optional<ArrayAttr> along = compute.getAlong())
        entry.along = toStrings(*along);
    } else if (auto part = dyn_cast<plan::PartOp>(op)) {
      entry.kind = Kind::Part;
      entry.of = {numbers.at(part.getWhole())};
      entry.at = {static_cast<int64_t>(part.getAt())};
      if (part.getSegment()) {
        entry.segments = {part.getSegment()->str()};
        entry.unit = part.getUnit()->str();
      }
    } else if (auto join = dyn_cast<plan::JoinOp>(op)) {
      entry.kind = Kind::Join;
      entry.of = numbersOf(join.getParts());
      entry.at = join.getAt().vec();
      entry.segments = toStrings(join.getSegments());
      entry.unit = join.getUnit().str();
    } else if (auto target = dyn_cast<plan::TargetOp>(op)) {
      if (failed(name(Kind::Target, target.getRole(), target.getTensor())))
        return failure();
      entry.of = {numbers.at(target.getValue())};
    }
    for (Value result : op.getResults())
      numbers.try_emplace(result, static_cast<int32_t>(numbers.size()));
    manifest.values->entries.push_back(std::move(entry));
  }
  plan::DataflowOp dataflow = *dataflows.begin();
  FailureOr<std::optional<runtime::Repeats>> repeats = translateRepeats(dataflow, dataflow.getIterationAttr(), inputs);
  if (failed(repeats))
    return failure();
  manifest.values->repeats = std::move(*repeats);
  return success();
}

FailureOr<runtime::Manifest> ManifestTranslator::translate() {
  addHeader();
  addArena();
  addProgram();
  addKernels();
  addUnits();
  if (failed(addInputs()) || failed(addOutputs()))
    return failure();
  addReplicated();
  if (failed(addValues()))
    return failure();
  return std::move(manifest);
}

plan::ProgramOp spmd::getProgram(ModuleOp module) {
  SmallVector<plan::ProgramOp> programs = llvm::to_vector(module.getOps<plan::ProgramOp>());
  if (programs.size() == 1)
    return programs.front();
  module.emitError("expected one plan.program, found ") << programs.size();
  return {};
}

FailureOr<runtime::Manifest> spmd::translateManifest(ModuleOp module, plan::ProgramOp program,
                                                     const runtime::Plan &plan, const ArtifactKernels &kernels) {
  return ManifestTranslator(module, program, plan, kernels).translate();
}

std::string spmd::formatLaunch(StringRef chip, const kernel::GpuKernel &kernel) {
  return runtime::formatLaunch(translateLaunch(chip, kernel));
}
