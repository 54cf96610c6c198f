//===- ManifestJson.cpp - manifest.json -----------------------------------===//

#include "JsonWriter.h"
#include "KernelKind.h"
#include "dialects/Spmd/ResultSource.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/PlanToJson/PlanToJson.h"
#include "spmd/Runtime/Core/GemmWorkspace.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using llvm::json::OStream;

namespace {

class ManifestWriter {
public:
  ManifestWriter(ModuleOp module, plan::ProgramOp program, const ArtifactKernels &kernels, raw_ostream &os)
      : module(module), program(program), kernels(kernels), writer(os) {
    for (auto [id, buffer] : llvm::enumerate(program.getOps<plan::BufferOp>()))
      buffers[buffer.getSymName()] = {static_cast<int64_t>(id), buffer};
  }

  LogicalResult write();

private:
  void writeHeader();
  void writeArena();
  void writePrograms();
  void writeKernels();
  void writeUnits();
  void writeState();
  void writeBatch();
  void writeHyper();
  void writeOutputs();
  void writeOutsideArena();
  void writeReplicated();
  void writeValues();

  /// Offset in the arena, and the buffer's number.
  void writePlace(OStream &json, plan::RefAttr ref);
  void writeAliases(OStream &json, StringRef parameter);
  /// How a tensor is cut over the ranks: global shape, and dim, pre, chunk when it is.
  void writeLayout(OStream &json, Attribute layout, RankedTensorType local);
  static const AxisState *findShard(Attribute layout);
  template <typename... Roles>
  SmallVector<plan::InputOp> inputsWithRole() {
    return llvm::to_vector(llvm::make_filter_range(program.getOps<plan::InputOp>(),
                                                   [](plan::InputOp input) { return isa<Roles...>(input.getRole()); }));
  }

  ModuleOp module;
  plan::ProgramOp program;
  const ArtifactKernels &kernels;
  JsonWriter writer;
  llvm::StringMap<std::pair<int64_t, plan::BufferOp>> buffers;
};

} // namespace

static StringRef getString(DictionaryAttr dictionary, StringRef key) {
  auto value = dictionary ? dictionary.getAs<StringAttr>(key) : StringAttr();
  return value ? value.getValue() : "";
}

void ManifestWriter::writePlace(OStream &json, plan::RefAttr ref) {
  auto [id, buffer] = buffers.lookup(ref.getBuffer().getValue());
  json.attribute("offset", static_cast<int64_t>(buffer.getOffset()) + ref.getOffset());
  json.attribute("buffer", id);
}

void ManifestWriter::writeAliases(OStream &json, StringRef parameter) {
  auto tied = module->getAttrOfType<DictionaryAttr>("spmd.tied");
  auto names = tied ? tied.getAs<ArrayAttr>(parameter) : ArrayAttr();
  writeStrings(json, "aliases", names ? names : ArrayAttr::get(module.getContext(), {}));
}

/// The state that shards the tensor, or null. There is at most one (checked in write()).
const AxisState *ManifestWriter::findShard(Attribute layout) {
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

void ManifestWriter::writeLayout(OStream &json, Attribute layout, RankedTensorType local) {
  json.attribute("dtype", getDTypeName(local.getElementType()));
  auto sharding = dyn_cast_or_null<ShardingAttr>(layout);
  writeInts(json, "shape", sharding ? sharding.getGlobalShape() : local.getShape());
  if (const AxisState *shard = findShard(layout)) {
    json.attribute("dim", shard->dim);
    json.attribute("pre", shard->pre);
    json.attribute("chunk", shard->chunk);
  }
  writeInts(json, "local_shape", local.getShape());
}

//===----------------------------------------------------------------------===//
// Sections, in the order of the format
//===----------------------------------------------------------------------===//

void ManifestWriter::writeHeader() {
  auto compile = module->getAttrOfType<DictionaryAttr>("spmd.compile");
  writer.attribute("format", "spmd-artifact");
  writer.attribute("version", 2);
  writer.attribute("compiler", SPMD_VERSION);
  writer.attribute("step", getString(module->getAttrOfType<DictionaryAttr>("spmd.step"), "name"));
  StringRef target = getString(compile, "target");
  writer.attribute("target", target.empty() ? "host" : target);
  for (StringRef key : {"mode", "policy", "view"})
    writer.attribute(key, getString(compile, key));
  SmallVector<std::pair<StringRef, int64_t>> axes;
  for (auto mesh : module.getOps<MeshOp>())
    for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes()))
      axes.push_back({name, size});
  writer.objects("mesh", axes, [](OStream &json, const std::pair<StringRef, int64_t> &axis) {
    json.attribute("name", axis.first);
    json.attribute("size", axis.second);
  });
  writer.attribute("ranks", static_cast<int64_t>(program.getRanks()));
}

void ManifestWriter::writeArena() {
  int64_t state = program.getStateBytes(), transient = program.getTransientBytes();
  llvm::MapVector<StringRef, int64_t> classes;
  for (auto buffer : program.getOps<plan::BufferOp>())
    if (buffer.getState())
      classes[plan::getClassName(buffer.getBufferClass())] += buffer.getBytes();
  for (NamedAttribute entry : program.getPeak())
    if (auto bufferClass = plan::symbolizeBufferClass(entry.getName()))
      classes[plan::getClassName(*bufferClass)] += cast<IntegerAttr>(entry.getValue()).getInt();
  writer.object("arena", [&](OStream &json) {
    json.attribute("state_bytes", state);
    json.attribute("transient_bytes", transient);
    json.attribute("bytes", state + transient);
    json.attributeObject("classes", [&] {
      for (auto [name, bytes] : classes)
        json.attribute(name, bytes);
    });
  });
}

void ManifestWriter::writePrograms() {
  // The hash is the runtime's own, of the plan as it will read it.
  std::string text;
  llvm::raw_string_ostream stream(text);
  writePlanJson(program, stream);
  auto plan = runtime::parsePlan("plan", text);
  std::string hash = plan ? runtime::formatHash(runtime::hashBytes(runtime::collectiveTrace(*plan))) : "";
  StringRef name = program.getSymName();
  writer.objects("programs", ArrayRef(name), [&](OStream &json, StringRef program) {
    json.attribute("name", program);
    json.attribute("plan", (program + ".plan.json").str());
    json.attribute("trace_hash", hash);
    json.attribute("hash", runtime::formatHash(runtime::hashBytes(text)));
  });
}

void ManifestWriter::writeKernels() {
  writer.objects("kernels", kernels.files, [](OStream &json, const KernelFile &kernel) {
    auto writeText = [&](StringRef key, StringRef value) {
      if (!value.empty())
        json.attribute(key, value);
    };
    writeText("cpu", kernel.cpu);
    writeText("chip", kernel.chip);
    json.attribute("file", kernel.file);
    json.attribute("hash", kernel.hash);
    writeText("ptx", kernel.ptx);
    writeText("ptx_hash", kernel.ptxHash);
  });
  SmallVector<std::pair<StringRef, kernel::KernelOpInterface>> ops;
  llvm::StringMap<bool> seen;
  module.walk([&](kernel::KernelOpInterface op) {
    if (StringAttr symbol = op.getSymbolAttr();
        symbol && op.isGenerated() && seen.try_emplace(symbol.getValue()).second)
      ops.push_back({symbol.getValue(), op});
  });
  llvm::StringMap<int64_t> movedBytes;
  for (const kernel::HostKernel &kernel : kernels.hostKernels)
    movedBytes[kernel.symbol] = kernel.movedBytes;
  using Entry = std::pair<StringRef, kernel::KernelOpInterface>;
  writer.objects("kernel_table", ops, [&](OStream &json, Entry entry) {
    json.attribute("kernel", entry.first);
    json.attribute("kind", kernel::getKernelKind(entry.second));
    json.attribute("required_bytes", entry.second.getBytesMoved());
    if (auto moved = movedBytes.find(entry.first); moved != movedBytes.end())
      json.attribute("moved_bytes", moved->second);
  });
  if (kernels.launches.empty())
    return;
  using Launch = std::pair<std::string, kernel::GpuKernel>;
  writer.objects("launches", kernels.launches, [](OStream &json, const Launch &launch) {
    const kernel::GpuKernel &kernel = launch.second;
    json.attribute("kernel", kernel.symbol);
    json.attribute("chip", launch.first);
    json.attribute("blocks", kernel.blocks);
    json.attribute("threads", kernel.threads);
    json.attribute("dynamic_shared_bytes", kernel.dynamicSharedBytes);
    json.attribute("pointers", kernel.pointers);
    json.attribute("coordinates", kernel.coordinates);
    if (kernel.movedBytes)
      json.attribute("moved_bytes", *kernel.movedBytes);
    // An emulated kernel has no machine code of its own.
    if (kernel.bytes == 0)
      return;
    json.attribute("static_shared_bytes", kernel.staticSharedBytes);
    json.attribute("registers", kernel.registers);
    json.attribute("local_bytes", kernel.localBytes);
    json.attribute("spill_store_bytes", kernel.spillStoreBytes);
    json.attribute("spill_load_bytes", kernel.spillLoadBytes);
    json.attribute("barriers", kernel.barriers);
    json.attribute("offset", kernel.offset);
    json.attribute("bytes", kernel.bytes);
  });
}

void ManifestWriter::writeUnits() {
  writer.objects("units", module.getOps<ShardUnitOp>(), [&](OStream &json, ShardUnitOp unit) {
    FlatAttr layout = unit.getLayout();
    json.attribute("name", unit.getSymName());
    writeStrings(json, "modules", unit.getModules());
    json.attribute("dtype", getDTypeName(layout.getDtype()));
    json.attribute("padded", layout.getPadded());
    json.attribute("chunk", unit.getChunk());
    if (unit->hasAttr(kWholeGradientAttr))
      json.attribute("whole_gradient", true);
    json.attributeArray("segments", [&] {
      for (SegmentAttr segment : layout.getSegments())
        json.object([&] {
          json.attribute("name", segment.getName());
          writeAliases(json, segment.getName());
          writeInts(json, "shape", segment.getShape());
          json.attribute("group", segment.getGroup());
          json.attribute("offset", segment.getOffset());
          json.attribute("numel", segment.getNumel());
          json.attribute("trainable", segment.getTrainable());
        });
    });
  });
}

void ManifestWriter::writeState() {
  auto writeInit = [](OStream &json, FloatAttr init) {
    if (init)
      json.attribute("init", init.getValueAsDouble());
    else
      json.attribute("init", nullptr);
  };
  auto inputs = inputsWithRole<ShardAttr, TableAttr, ParamAttr, BufferAttr, ConstantAttr, StateAttr, RngAttr>();
  writer.objects("state", inputs, [&](OStream &json, plan::InputOp input) {
    auto type = cast<RankedTensorType>(input.getType());
    auto writeWhole = [&](StringRef name, StringRef state, FloatAttr init) {
      json.attribute("kind", "replicated");
      json.attribute("name", name);
      json.attribute("state", state);
      writeAliases(json, name);
      writeInts(json, "shape", type.getShape());
      writeInit(json, init);
    };
    auto writePart = [&](StringRef kind, auto part) {
      json.attribute("kind", kind);
      json.attribute("unit", part.getUnit().getValue());
      json.attribute("state", part.getState());
      json.attribute("numel", type.getNumElements());
      writeInit(json, part.getInit());
    };
    Attribute role = input.getRole();
    if (auto shard = dyn_cast<ShardAttr>(role))
      writePart("shard", shard);
    else if (auto table = dyn_cast<TableAttr>(role))
      writePart("table", table);
    else if (auto param = dyn_cast<ParamAttr>(role))
      writeWhole(param.getName(), "param", {});
    else if (auto buffer = dyn_cast<BufferAttr>(role))
      writeWhole(buffer.getName(), "buffer", {});
    else if (auto constant = dyn_cast<ConstantAttr>(role))
      writeWhole(constant.getName(), "constant", {});
    else if (auto state = dyn_cast<StateAttr>(role))
      writeWhole(state.getOf(), state.getState(), state.getInit());
    else if (auto rng = dyn_cast<RngAttr>(role))
      writeWhole(rng.getName(), "rng",
                 FloatAttr::get(Float64Type::get(module.getContext()), static_cast<double>(rng.getInit())));
    json.attribute("dtype", getDTypeName(type.getElementType()));
    writePlace(json, input.getRef());
  });
}

void ManifestWriter::writeBatch() {
  writer.objects("batch", inputsWithRole<BatchAttr>(), [&](OStream &json, plan::InputOp input) {
    json.attribute("name", cast<BatchAttr>(input.getRole()).getName());
    writeLayout(json, input.getLayoutAttr(), cast<RankedTensorType>(input.getType()));
    writePlace(json, input.getRef());
    if (std::optional<int64_t> bound = input.getIndexBound())
      json.attribute("index_bound", *bound);
    if (std::optional<int64_t> ignored = input.getIgnoreIndex())
      json.attribute("ignore_index", *ignored);
  });
}

void ManifestWriter::writeHyper() {
  writer.objects("hyper", inputsWithRole<HyperAttr>(), [&](OStream &json, plan::InputOp input) {
    auto hyper = cast<HyperAttr>(input.getRole());
    json.attribute("name", hyper.getName());
    json.attribute("group", hyper.getGroup());
    json.attribute("dtype", getDTypeName(cast<RankedTensorType>(input.getType()).getElementType()));
    json.attribute("value", hyper.getValue() ? hyper.getValue().getValueAsDouble() : 0.0);
    writePlace(json, input.getRef());
  });
}

void ManifestWriter::writeOutputs() {
  writer.objects("outputs", program.getOps<plan::OutputOp>(), [&](OStream &json, plan::OutputOp output) {
    auto loss = dyn_cast<LossAttr>(output.getRole());
    json.attribute("kind", loss ? "loss" : "output");
    json.attribute("path", loss ? loss.getPath() : cast<OutputAttr>(output.getRole()).getPath());
    json.attribute("state", isVarying(output.getLayoutAttr())   ? "varying"
                            : findShard(output.getLayoutAttr()) ? "sharded"
                                                                : "replicated");
    writeLayout(json, output.getLayoutAttr(), cast<RankedTensorType>(output.getType()));
    writePlace(json, output.getRef());
  });
  auto tree = module->getAttrOfType<StringAttr>("spmd.result_tree");
  writer.attribute("result_tree", tree ? tree.getValue() : "");
  llvm::json::Array zeroGradient;
  if (auto names = module->getAttrOfType<ArrayAttr>("spmd.zero_gradient"))
    for (StringRef name : names.getAsValueRange<StringAttr>())
      zeroGradient.push_back(name);
  writer.attribute("zero_gradient", std::move(zeroGradient));
}

/// What a program needs beside its arenas. The sizes of what libraries allocate for themselves are theirs to decide.
void ManifestWriter::writeOutsideArena() {
  auto gemms = program.getOps<plan::GemmOp>();
  bool isCuda = getString(module->getAttrOfType<DictionaryAttr>("spmd.compile"), "target") == "cuda";
  auto multiplies = [&](auto isType) {
    return llvm::any_of(gemms, [&](plan::GemmOp gemm) { return isType(gemm.getDtype()); });
  };
  bool hasBF16 = multiplies([](Type type) { return type.isBF16(); });
  bool hasF16 = multiplies([](Type type) { return type.isF16(); });
  SmallVector<std::pair<StringRef, int64_t>> entries;
  if (isCuda)
    entries.push_back({"CUDA context and code", 0});
  if (!gemms.empty() && isCuda)
    entries.push_back({"cuBLASLt workspace", 0});
  if (!isCuda) {
    // Products of f16, and of bf16 on processors without a unit for it, are products of widened blocks.
    if (hasBF16 || hasF16 || multiplies([](Type type) { return type.isF32(); }))
      entries.push_back({"workspace of f32 products, per thread", runtime::kF32WorkspaceBytes});
    if (hasBF16)
      entries.push_back({"workspace of bf16 products, per thread", runtime::kBF16WorkspaceBytes});
    if (hasF16)
      entries.push_back({"workspace of f16 products, per thread", runtime::kF16WorkspaceBytes});
    if (multiplies([](Type type) { return type.isF64(); }))
      entries.push_back({"OpenBLAS packing buffers", 0});
  }
  entries.push_back({"thread stacks", 0});
  writer.objects("outside_arena", entries, [](OStream &json, const std::pair<StringRef, int64_t> &entry) {
    json.attribute("name", entry.first);
    if (entry.second)
      json.attribute("bytes", entry.second);
    else
      json.attribute("bytes", nullptr);
  });
}

void ManifestWriter::writeReplicated() {
  auto values = module->getAttrOfType<ArrayAttr>(kReplicatedAttr);
  if (!values)
    return;
  writer.objects("replicated", values.getAsRange<DictionaryAttr>(), [](OStream &json, DictionaryAttr value) {
    json.attribute("op", getString(value, "op"));
    auto bytes = value.getAs<IntegerAttr>("bytes");
    json.attribute("bytes", bytes ? bytes.getInt() : 0);
    json.attribute("loc", getString(value, "source"));
  });
}

/// As the runtime calls what it reads of the entries of writeState to writeOutputs.
static std::string getBindingName(Attribute role, Type type) {
  using Kind = runtime::StateEntry::Kind;
  std::string typeName = getDTypeName(cast<RankedTensorType>(type).getElementType());
  // A type that the runtime does not have is refused when it reads the entry itself.
  runtime::DType dtype = runtime::parseDType(typeName).value_or(runtime::DType::F32);
  auto nameState = [&](Kind kind, StringRef owner, StringRef state) {
    runtime::StateEntry entry;
    entry.kind = kind, entry.state = state.str(), entry.dtype = dtype;
    (kind == Kind::Replicated ? entry.name : entry.unit) = owner.str();
    return runtime::bindingName(entry);
  };
  auto nameOutput = [&](StringRef kind, StringRef path) {
    runtime::Output output;
    output.kind = kind.str(), output.path = path.str(), output.dtype = dtype;
    return runtime::bindingName(output);
  };
  return llvm::TypeSwitch<Attribute, std::string>(role)
      .Case([&](ShardAttr shard) { return nameState(Kind::Shard, shard.getUnit().getValue(), shard.getState()); })
      .Case([&](TableAttr table) { return nameState(Kind::Table, table.getUnit().getValue(), table.getState()); })
      .Case([&](ParamAttr param) { return nameState(Kind::Replicated, param.getName(), "param"); })
      .Case([&](BufferAttr buffer) { return nameState(Kind::Replicated, buffer.getName(), "buffer"); })
      .Case([&](ConstantAttr constant) { return nameState(Kind::Replicated, constant.getName(), "constant"); })
      .Case([&](StateAttr state) { return nameState(Kind::Replicated, state.getOf(), state.getState()); })
      .Case([&](RngAttr rng) { return nameState(Kind::Replicated, rng.getName(), "rng"); })
      .Case([&](BatchAttr batch) {
        runtime::BatchInput input;
        input.name = batch.getName().str(), input.dtype = dtype;
        return runtime::bindingName(input);
      })
      .Case([&](HyperAttr hyper) {
        runtime::HyperParameter parameter;
        parameter.name = hyper.getName().str(), parameter.group = hyper.getGroup(), parameter.dtype = dtype;
        return runtime::bindingName(parameter);
      })
      .Case([&](LossAttr loss) { return nameOutput("loss", loss.getPath()); })
      .Case([&](OutputAttr output) { return nameOutput("output", output.getPath()); });
}

/// What the step computes; see plan.dataflow.
void ManifestWriter::writeValues() {
  auto dataflows = module.getOps<plan::DataflowOp>();
  if (dataflows.empty())
    return;
  DenseMap<Value, int64_t> numbers;
  auto writeNumbers = [&](OStream &json, StringRef key, ValueRange values) {
    writeInts(json, key, llvm::map_to_vector(values, [&](Value value) { return numbers.at(value); }));
  };
  auto sizeOf = [](Value value) { return cast<plan::BytesType>(value.getType()).getSize(); };
  writer.objects("values", (*dataflows.begin()).getOps(), [&](OStream &json, Operation &op) {
    if (auto source = dyn_cast<plan::SourceOp>(op)) {
      json.attribute("source", getBindingName(source.getRole(), source.getTensor()));
      json.attribute("bytes", sizeOf(source.getValue()));
    } else if (auto compute = dyn_cast<plan::ComputeOp>(op)) {
      json.attribute("compute", compute.getWhat());
      writeNumbers(json, "of", compute.getOperands());
      writeInts(json, "bytes", llvm::map_to_vector(compute.getValues(), sizeOf));
      if (std::optional<ArrayAttr> reads = compute.getReads())
        json.attributeArray("reads", [&] {
          for (auto ofResult : reads->getAsRange<DenseI32ArrayAttr>())
            json.array([&] {
              for (int32_t number : ofResult.asArrayRef())
                json.value(number);
            });
        });
      if (std::optional<ArrayRef<int32_t>> byRank = compute.getByRank())
        writeInts(json, "by_rank", llvm::to_vector_of<int64_t>(*byRank));
    } else if (auto part = dyn_cast<plan::PartOp>(op)) {
      json.attribute("part", numbers.at(part.getWhole()));
      json.attribute("at", static_cast<int64_t>(part.getAt()));
      json.attribute("bytes", sizeOf(part.getValue()));
      if (part.getSegment()) {
        json.attribute("segment", *part.getSegment());
        json.attribute("unit", *part.getUnit());
      }
    } else if (auto join = dyn_cast<plan::JoinOp>(op)) {
      writeNumbers(json, "join", join.getParts());
      writeInts(json, "at", join.getAt());
      json.attribute("bytes", sizeOf(join.getValue()));
      writeStrings(json, "segments", join.getSegments());
      json.attribute("unit", join.getUnit());
    } else if (auto target = dyn_cast<plan::TargetOp>(op)) {
      json.attribute("target", getBindingName(target.getRole(), target.getTensor()));
      json.attribute("of", numbers.at(target.getValue()));
    }
    for (Value result : op.getResults())
      numbers.try_emplace(result, static_cast<int64_t>(numbers.size()));
  });
}

LogicalResult ManifestWriter::write() {
  auto checkLayout = [](Operation *op, Attribute layout) -> LogicalResult {
    auto sharding = dyn_cast_or_null<ShardingAttr>(layout);
    if (!sharding)
      return success();
    int64_t shards = llvm::count_if(sharding.getStates(), [](const AxisState &state) { return state.isShard(); });
    if (shards > 1 ||
        llvm::any_of(sharding.getStates(), [](const AxisState &s) { return s.isPartial() || s.isOwned(); }))
      return op->emitOpError("has layout ") << layout << "; inputs and outputs are replicated or sharded on one axis";
    return success();
  };
  for (auto input : program.getOps<plan::InputOp>())
    if (isa<BatchAttr>(input.getRole()) && failed(checkLayout(input, input.getLayoutAttr())))
      return failure();
  for (auto output : program.getOps<plan::OutputOp>()) {
    if (!isa<LossAttr, OutputAttr>(output.getRole()))
      return output.emitOpError("has role ") << output.getRole() << ", which is no result's";
    if (failed(checkLayout(output, output.getLayoutAttr())))
      return failure();
  }
  writeHeader();
  writeArena();
  writePrograms();
  writeKernels();
  writeUnits();
  writeState();
  writeBatch();
  writeHyper();
  writeOutputs();
  writeOutsideArena();
  writeReplicated();
  writeValues();
  writer.finish();
  return success();
}

plan::ProgramOp spmd::getProgram(ModuleOp module) {
  SmallVector<plan::ProgramOp> programs = llvm::to_vector(module.getOps<plan::ProgramOp>());
  if (programs.size() == 1)
    return programs.front();
  module.emitError("expected one plan.program, found ") << programs.size();
  return {};
}

LogicalResult spmd::writeManifestJson(ModuleOp module, plan::ProgramOp program, const ArtifactKernels &kernels,
                                      raw_ostream &os) {
  return ManifestWriter(module, program, kernels, os).write();
}
