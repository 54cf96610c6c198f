//===- ManifestReader.cpp - The JSON form of a manifest -------------------===//

#include "CommandFields.h"
#include "ValuesReader.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Manifest.h"

#include <algorithm>
#include <charconv>

using namespace spmd::runtime;

static std::optional<int64_t> optionalInt(JsonValue value, const char *key) {
  if (!value.has(key))
    return std::nullopt;
  return value[key].asInt();
}

static std::string optionalString(JsonValue value, const char *key) {
  return value.has(key) ? value[key].asString() : std::string();
}

static std::vector<std::string> optionalStrings(JsonValue value, const char *key) {
  return value.has(key) ? value[key].asStrings() : std::vector<std::string>();
}

/// "12.4".
static LibraryVersion readVersion(JsonValue value) {
  std::string text = value.asString();
  LibraryVersion version;
  const char *end = text.data() + text.size();
  auto [dot, first] = std::from_chars(text.data(), end, version.major);
  if (first != std::errc() || version.major < 0 || dot == end || *dot != '.') {
    value.fail("expected a version, as \"12.4\", found '" + text + "'");
    return version;
  }
  auto [last, second] = std::from_chars(dot + 1, end, version.minor);
  if (second != std::errc() || version.minor < 0 || last != end)
    value.fail("expected a version, as \"12.4\", found '" + text + "'");
  return version;
}

static NeededLibraries readNeeds(JsonValue value) {
  NeededLibraries needs;
  auto read = [&](const char *key, std::optional<LibraryVersion> &version) {
    if (value.has(key))
      version = readVersion(value[key]);
  };
  read("driver", needs.driver);
  read("cublaslt", needs.cublasLt);
  read("nccl", needs.nccl);
  return needs;
}

/// A file of the artifact: a plain name, so that an artifact never reaches
/// outside its folder.
static std::string fileName(JsonValue value) {
  std::string name = value.asString();
  if (name.find('/') != std::string::npos || name == "." || name == "..")
    value.fail("expected a file name without folders, found '" + name + "'");
  return name;
}

/// A shape whose number of elements is a size too.
static std::vector<int64_t> shapeOf(JsonValue value) {
  std::vector<int64_t> shape = value.asSizes();
  int64_t count = numElements(shape);
  if (count < 0 || count > int64_t(1) << 50)
    value.fail("shape " + formatShape(shape) + " has too many elements");
  return shape;
}

/// Checks that [offset, offset + bytes) lies in [0, limit).
static void checkRange(JsonValue value, int64_t offset, int64_t bytes, int64_t limit, const char *region) {
  if (offset > limit || bytes > limit - offset)
    value["offset"].fail("bytes [" + std::to_string(offset) + ", " +
                         (bytes > INT64_MAX - offset ? "2^63 or more" : std::to_string(offset + bytes)) +
                         ") are outside the " + region + " of " + std::to_string(limit) + " bytes");
}

/// Names of axes of the mesh, in its order.
static std::vector<std::string> readAxes(JsonValue value, const Manifest &manifest) {
  std::vector<std::string> axes = value.asStrings();
  auto next = manifest.mesh.begin();
  for (const std::string &axis : axes) {
    next = std::find_if(next, manifest.mesh.end(), [&](const MeshAxis &known) { return known.name == axis; });
    if (next == manifest.mesh.end()) {
      value.fail("expected axes of the mesh, in its order; found '" + axis + "'");
      return {};
    }
    ++next;
  }
  return axes;
}

static DimSplit readSplit(JsonValue value, const std::vector<int64_t> &shape, const std::vector<int64_t> &localShape,
                          int64_t ranks, const char *local);

static Unit readUnit(JsonValue value, const Manifest &manifest) {
  Unit unit;
  unit.name = value["name"].asString();
  unit.modules = optionalStrings(value, "modules");
  unit.dtype = value["dtype"].asDType();
  unit.padded = value["padded"].asSize();
  unit.chunk = value["chunk"].asSize();
  if (value.has("axes"))
    unit.axes = readAxes(value["axes"], manifest);
  int64_t ranks = 1;
  for (const MeshAxis &axis : manifest.mesh)
    if (unit.axes.empty() || std::find(unit.axes.begin(), unit.axes.end(), axis.name) != unit.axes.end())
      ranks *= axis.size;
  if (unit.chunk != unit.padded && unit.chunk * ranks != unit.padded)
    value["chunk"].fail(std::to_string(ranks) + " chunks of " + std::to_string(unit.chunk) + " are not the " +
                        std::to_string(unit.padded) + " padded elements");
  if (value.has("whole_gradient"))
    unit.wholeGradient = value["whole_gradient"].asBool();
  int64_t end = 0;
  value["segments"].forEach([&](JsonValue entry) {
    Segment segment;
    segment.name = entry["name"].asString();
    segment.aliases = optionalStrings(entry, "aliases");
    segment.shape = shapeOf(entry["shape"]);
    segment.group = entry["group"].asInt();
    segment.offset = entry["offset"].asSize();
    segment.numel = entry["numel"].asSize();
    segment.trainable = entry["trainable"].asBool();
    if (entry.has("whole_shape")) {
      segment.wholeShape = shapeOf(entry["whole_shape"]);
      segment.tensor = readSplit(entry, segment.wholeShape, segment.shape, manifest.tensorRanks(), "shape");
      // Rows of a batch may be padded; a part of a parameter that went past its end would be read and written there.
      const DimSplit &split = segment.tensor;
      bool isCut = split.dim && *split.dim >= 0 && *split.dim < static_cast<int64_t>(segment.wholeShape.size());
      if (isCut &&
          segment.wholeShape[static_cast<size_t>(*split.dim)] != split.pre * split.chunk * manifest.tensorRanks())
        entry["whole_shape"].fail("expected " + std::to_string(manifest.tensorRanks()) + " parts of " +
                                  formatShape(segment.shape) + ", found " + formatShape(segment.wholeShape));
    }
    if (segment.numel != numElements(segment.shape))
      entry["numel"].fail("shape " + formatShape(segment.shape) + " does not have " + std::to_string(segment.numel) +
                          " elements");
    if (segment.offset < end || segment.offset + segment.numel > unit.padded)
      entry["offset"].fail("segment overlaps its predecessor or leaves the "
                           "unit's flat buffer");
    end = segment.offset + segment.numel;
    unit.segments.push_back(std::move(segment));
  });
  return unit;
}

static StateEntry readState(JsonValue value, const Manifest &manifest) {
  StateEntry entry;
  std::string kind = value["kind"].asString();
  entry.state = value["state"].asString();
  entry.dtype = value["dtype"].asDType();
  entry.offset = value["offset"].asSize();
  entry.buffer = optionalInt(value, "buffer");
  if (value.has("init"))
    entry.init = value["init"].asDouble();
  if (value.has("persistent"))
    entry.persistent = value["persistent"].asBool();
  if (value.has("sum"))
    entry.isSum = value["sum"].asBool();

  if (kind == "replicated") {
    entry.kind = StateEntry::Kind::Replicated;
    entry.name = value["name"].asString();
    entry.aliases = optionalStrings(value, "aliases");
    entry.shape = shapeOf(value["shape"]);
    entry.numel = numElements(entry.shape);
  } else if (kind == "shard" || kind == "table") {
    bool isShard = kind == "shard";
    entry.kind = isShard ? StateEntry::Kind::Shard : StateEntry::Kind::Table;
    entry.unit = value["unit"].asString();
    entry.numel = value["numel"].asSize();
    const Unit *unit = manifest.findUnit(entry.unit);
    if (!unit) {
      value["unit"].fail("no unit is named '" + entry.unit + "'");
      return entry;
    }
    int64_t wanted = isShard ? unit->chunk : static_cast<int64_t>(unit->segments.size());
    // With mode shard_optimizer ranks have all parameters.
    if (isShard && entry.state == "param" && entry.numel == unit->padded)
      wanted = unit->padded;
    if (entry.numel != wanted)
      value["numel"].fail("expected " + std::to_string(wanted) + " for a " + kind + " of " + entry.unit + ", found " +
                          std::to_string(entry.numel));
  } else {
    value["kind"].fail("expected shard, table or replicated, found '" + kind + "'");
  }
  checkRange(value, entry.offset, entry.bytes(), manifest.stateBytes, "state region");
  return entry;
}

/// Reads how `shape` is cut over so many ranks, whose parts the member `local` says to have `localShape`.
static DimSplit readSplit(JsonValue value, const std::vector<int64_t> &shape, const std::vector<int64_t> &localShape,
                          int64_t ranks, const char *local) {
  DimSplit split;
  split.dim = optionalInt(value, "dim");
  std::vector<int64_t> wanted = shape;
  if (split.dim) {
    if (*split.dim < 0 || *split.dim >= static_cast<int64_t>(shape.size())) {
      value["dim"].fail("shape " + formatShape(shape) + " has no dim " + std::to_string(*split.dim));
      return split;
    }
    split.pre = value["pre"].asSize();
    split.chunk = value["chunk"].asSize();
    int64_t size = shape[static_cast<size_t>(*split.dim)];
    if (split.pre < 1 || size % split.pre != 0 || split.chunk * ranks < size / split.pre) {
      value["chunk"].fail("dim of " + std::to_string(size) + " seen as [" + std::to_string(split.pre) + "][" +
                          std::to_string(split.pre < 1 ? 0 : size / split.pre) + "] does not fit " +
                          std::to_string(ranks) + " chunks of " + std::to_string(split.chunk));
      return split;
    }
    wanted[static_cast<size_t>(*split.dim)] = split.pre * split.chunk;
  }
  if (localShape != wanted)
    value[local].fail("expected " + formatShape(wanted) + ", found " + formatShape(localShape));
  return split;
}

static BatchInput readBatch(JsonValue value, const Manifest &manifest) {
  BatchInput input;
  input.name = value["name"].asString();
  input.dtype = value["dtype"].asDType();
  input.shape = shapeOf(value["shape"]);
  input.localShape = shapeOf(value["local_shape"]);
  input.offset = value["offset"].asSize();
  input.indexBound = optionalInt(value, "index_bound");
  input.ignoreIndex = optionalInt(value, "ignore_index");
  input.buffer = optionalInt(value, "buffer");
  input.split = readSplit(value, input.shape, input.localShape, manifest.dataRanks(), "local_shape");
  checkRange(value, input.offset, input.localBytes(), manifest.arenaBytes, "arena");
  return input;
}

static HyperParameter readHyper(JsonValue value, const Manifest &manifest) {
  HyperParameter hyper;
  hyper.name = value["name"].asString();
  hyper.group = value["group"].asSize();
  hyper.dtype = value["dtype"].asDType();
  hyper.offset = value["offset"].asSize();
  hyper.value = value["value"].asDouble();
  hyper.buffer = optionalInt(value, "buffer");
  checkRange(value, hyper.offset, sizeOf(hyper.dtype), manifest.arenaBytes, "arena");
  return hyper;
}

static Output readOutput(JsonValue value, const Manifest &manifest) {
  Output output;
  std::string kind = value["kind"].asString();
  if (kind != nameOf(Binding::Kind::Loss) && kind != nameOf(Binding::Kind::Output))
    value["kind"].fail("expected loss or output, found '" + kind + "'");
  output.kind = kind == nameOf(Binding::Kind::Loss) ? Binding::Kind::Loss : Binding::Kind::Output;
  output.path = optionalString(value, "path");
  output.dtype = value["dtype"].asDType();
  output.shape = shapeOf(value["shape"]);
  output.localShape = value.has("local_shape") ? shapeOf(value["local_shape"]) : output.shape;
  output.offset = value["offset"].asSize();
  output.buffer = optionalInt(value, "buffer");
  std::string state = value["state"].asString();
  if (state != "replicated" && state != "sharded" && state != "varying")
    value["state"].fail("expected replicated, sharded or varying, found '" + state + "'");
  output.isVarying = state == "varying";
  if (state == "sharded")
    output.split = readSplit(value, output.shape, output.localShape, manifest.dataRanks(), "local_shape");
  checkRange(value, output.offset, output.localBytes(), manifest.arenaBytes, "arena");
  return output;
}

static KernelFile readKernelFile(JsonValue value) {
  KernelFile file;
  file.chip = optionalString(value, "chip");
  if (value.has("cpu") || file.chip.empty())
    file.cpu = value["cpu"].asString();
  file.file = fileName(value["file"]);
  file.hash = optionalString(value, "hash");
  if (value.has("ptx"))
    file.ptx = fileName(value["ptx"]);
  file.ptxHash = optionalString(value, "ptx_hash");
  return file;
}

/// A number of threads, blocks or bytes in [low, high].
static int64_t readCount(JsonValue value, int64_t low, int64_t high) {
  int64_t count = value.asSize();
  if (count < low || count > high)
    value.fail("expected " + std::to_string(low) + " to " + std::to_string(high) + ", found " + std::to_string(count));
  return count;
}

/// 16 hex digits.
static uint64_t readBits(JsonValue value) {
  std::string text = value.asString();
  uint64_t bits = 0;
  for (char c : text)
    bits = bits << 4 | static_cast<uint64_t>(c >= 'a' ? c - 'a' + 10 : c - '0');
  if (formatHash(bits) != text)
    value.fail("expected 16 hex digits, found '" + text + "'");
  return bits;
}

/// Three sizes that CUDA launches.
static std::array<int64_t, 3> readSizes(JsonValue value, const std::array<int64_t, 3> &most) {
  std::vector<int64_t> sizes = value.asSizes();
  std::array<int64_t, 3> read{1, 1, 1};
  if (sizes.size() != read.size()) {
    value.fail("expected three sizes, found " + std::to_string(sizes.size()));
    return read;
  }
  for (size_t i = 0; i < read.size(); ++i) {
    read[i] = sizes[i];
    if (sizes[i] < 1 || sizes[i] > most[i])
      value.fail("expected size " + std::to_string(i) + " to be 1 to " + std::to_string(most[i]) + ", found " +
                 std::to_string(sizes[i]));
  }
  return read;
}

static UserLaunch readUserLaunch(JsonValue value, int64_t pointers) {
  UserLaunch launch;
  launch.function = value["function"].asString();
  launch.grid = readSizes(value["grid"], {INT32_MAX, 65535, 65535});
  launch.block = readSizes(value["block"], {1024, 1024, 64});
  value["parameters"].forEach([&](JsonValue entry) {
    LaunchParameter parameter;
    if (entry.has("reference")) {
      parameter.reference = entry["reference"].asSize();
      if (parameter.reference >= pointers)
        entry["reference"].fail("expected one of " + std::to_string(pointers) + " pointers, found " +
                                std::to_string(parameter.reference));
    } else {
      parameter.dtype = entry["dtype"].asDType();
      parameter.bits = readBits(entry["bits"]);
    }
    launch.parameters.push_back(parameter);
  });
  return launch;
}

static KernelLaunch readLaunch(JsonValue value, const Manifest &manifest) {
  KernelLaunch launch;
  launch.kernel = value["kernel"].asString();
  launch.chip = value["chip"].asString();
  auto isOfChip = [&](const KernelFile &file) { return file.chip == launch.chip; };
  auto file = std::find_if(manifest.kernels.begin(), manifest.kernels.end(), isOfChip);
  if (file == manifest.kernels.end())
    value["chip"].fail("no file of kernels is for '" + launch.chip + "'");
  // What CUDA launches in one dimension.
  bool isUsers = value.has("function");
  launch.blocks = readCount(value["blocks"], 1, isUsers ? INT64_MAX : INT32_MAX);
  launch.threads = readCount(value["threads"], 1, 1024);
  launch.dynamicSharedBytes = readCount(value["dynamic_shared_bytes"], 0, INT32_MAX);
  launch.pointers = readCount(value["pointers"], 0, INT32_MAX);
  launch.coordinates = readCount(value["coordinates"], 0, static_cast<int64_t>(manifest.mesh.size()));
  launch.movedBytes = optionalInt(value, "moved_bytes");
  if (file == manifest.kernels.end() || !file->cpu.empty())
    return launch;
  launch.offset = value["offset"].asSize();
  launch.bytes = readCount(value["bytes"], 1, INT32_MAX);
  if (isUsers) { // of which ptxas says nothing
    launch.user = readUserLaunch(value, launch.pointers);
    return launch;
  }
  launch.registers = readCount(value["registers"], 1, 255);
  launch.staticSharedBytes = value["static_shared_bytes"].asSize();
  launch.localBytes = value["local_bytes"].asSize();
  launch.spillStoreBytes = value["spill_store_bytes"].asSize();
  launch.spillLoadBytes = value["spill_load_bytes"].asSize();
  launch.barriers = value["barriers"].asSize();
  return launch;
}

static void readKernels(JsonValue root, Manifest &manifest) {
  root["kernels"].forEach([&](JsonValue value) { manifest.kernels.push_back(readKernelFile(value)); });
  if (root.has("kernel_table"))
    root["kernel_table"].forEach([&](JsonValue value) {
      manifest.kernelTable.push_back({value["kernel"].asString(), value["kind"].asString(),
                                      value["required_bytes"].asSize(), optionalInt(value, "moved_bytes")});
      if (value.has("product_flops"))
        manifest.kernelTable.back().products = {value["product_flops"].asInt(), value["product_dtype"].asDType()};
    });
  if (root.has("launches"))
    root["launches"].forEach([&](JsonValue value) {
      KernelLaunch launch = readLaunch(value, manifest);
      if (manifest.findLaunch(launch.kernel, launch.chip))
        value["kernel"].fail("'" + launch.kernel + "' has a launch on " + launch.chip + " before");
      manifest.launches.push_back(std::move(launch));
    });
}

static void readArena(JsonValue arena, Manifest &manifest) {
  manifest.stateBytes = arena["state_bytes"].asSize();
  manifest.transientBytes = arena["transient_bytes"].asSize();
  manifest.arenaBytes = arena["bytes"].asSize();
  if (manifest.arenaBytes != manifest.stateBytes + manifest.transientBytes)
    arena["bytes"].fail(
        "expected state_bytes + transient_bytes = " + std::to_string(manifest.stateBytes + manifest.transientBytes) +
        ", found " + std::to_string(manifest.arenaBytes));
  if (arena.has("classes"))
    arena["classes"].forEachMember(
        [&](const std::string &name, JsonValue bytes) { manifest.classBytes[name] = bytes.asSize(); });
}

/// More than any mesh has, and few enough to be listed.
static constexpr int64_t kMostRanks = 1 << 20;

static void readMesh(JsonValue root, Manifest &manifest) {
  int64_t product = 1;
  root["mesh"].forEach([&](JsonValue value) {
    MeshAxis axis{value["name"].asString(), value["size"].asSize()};
    if (value.has("tensor"))
      axis.isTensor = value["tensor"].asBool();
    if (!manifest.mesh.empty() && manifest.mesh.back().isTensor)
      value["name"].fail("no axis stands behind the tensor axis '" + manifest.mesh.back().name + "'");
    if (axis.size < 1 || product > kMostRanks / axis.size) {
      value["size"].fail("expected at least 1 rank, and no more than " + std::to_string(kMostRanks) +
                         " on all axes together; found " + std::to_string(axis.size));
      axis.size = 1; // what comes after divides by it
    }
    product *= axis.size;
    manifest.mesh.push_back(std::move(axis));
  });
  manifest.ranks = root["ranks"].asSize();
  if (manifest.ranks < 1 || manifest.ranks != product)
    root["ranks"].fail("expected the product of the mesh axes, " + std::to_string(product) + ", found " +
                       std::to_string(manifest.ranks));
}

/// What a program has of its own beside its arena: in the manifest itself for the first one, else in its entry.
static void readProgram(JsonValue value, Manifest &manifest) {
  value["batch"].forEach([&](JsonValue input) { manifest.batch.push_back(readBatch(input, manifest)); });
  value["hyper"].forEach([&](JsonValue hyper) { manifest.hyper.push_back(readHyper(hyper, manifest)); });
  value["outputs"].forEach([&](JsonValue output) { manifest.outputs.push_back(readOutput(output, manifest)); });
  if (value.has("outside_arena"))
    value["outside_arena"].forEach([&](JsonValue entry) {
      manifest.outsideArena.push_back({entry["name"].asString(), optionalInt(entry, "bytes")});
    });
  if (value.has("needs"))
    manifest.needs = readNeeds(value["needs"]);
  if (value.has("replicated"))
    value["replicated"].forEach([&](JsonValue entry) {
      manifest.replicated.push_back({entry["op"].asString(), optionalString(entry, "loc"), entry["bytes"].asSize()});
    });
  if (value.has("values")) {
    manifest.values.emplace();
    value["values"].forEach([&](JsonValue entry) { manifest.values->entries.push_back(readValueEntry(entry)); });
    manifest.values->repeats = readRepeats(value);
  }
}

/// A program behind the first one, with what `shared` has for all of them.
static Manifest readOtherProgram(JsonValue value, const Manifest &shared, const ProgramEntry &entry) {
  Manifest other = shared;
  other.programs = {entry};
  other.classBytes.clear();
  readArena(value["arena"], other);
  if (other.stateBytes != shared.stateBytes)
    value["arena"]["state_bytes"].fail("expected the state of all programs, " + std::to_string(shared.stateBytes) +
                                       " bytes, found " + std::to_string(other.stateBytes));
  readProgram(value, other);
  if (!other.values)
    value.fail("expected what the program computes, 'values'");
  return other;
}

Expected<Manifest> spmd::runtime::parseManifest(const std::string &name, std::string_view text) {
  JsonDocument document(name, text);
  JsonValue root = document.root();
  Manifest manifest;

  // The version comes first: a later version may lay out the rest differently.
  std::string format = root["format"].asString();
  if (format != "spmd-artifact")
    root["format"].fail("expected 'spmd-artifact', found '" + format + "'");
  int64_t version = root["version"].asInt();
  if (version != kManifestVersion)
    root["version"].fail("this runtime reads version " + std::to_string(kManifestVersion) +
                         ", the artifact has version " + std::to_string(version) +
                         "; compile the step again with this release");
  if (!document.status().ok())
    return document.status();

  manifest.compiler = optionalString(root, "compiler");
  manifest.step = optionalString(root, "step");
  manifest.target = root["target"].asString();
  manifest.mode = optionalString(root, "mode");
  manifest.policy = optionalString(root, "policy");
  manifest.view = optionalString(root, "view");
  manifest.resultTree = optionalString(root, "result_tree");
  manifest.zeroGradient = optionalStrings(root, "zero_gradient");
  readMesh(root, manifest);
  readArena(root["arena"], manifest);
  root["programs"].forEach([&](JsonValue value) {
    manifest.programs.push_back({value["name"].asString(), fileName(value["plan"]), value["trace_hash"].asString(),
                                 optionalString(value, "hash")});
  });
  readKernels(root, manifest);
  root["units"].forEach([&](JsonValue value) { manifest.units.push_back(readUnit(value, manifest)); });
  root["state"].forEach([&](JsonValue value) { manifest.state.push_back(readState(value, manifest)); });
  Manifest shared = manifest;
  readProgram(root, manifest);
  size_t number = 0;
  root["programs"].forEach([&](JsonValue value) {
    if (number > 0)
      manifest.others.push_back(readOtherProgram(value, shared, shared.programs[number]));
    ++number;
  });
  if (!document.status().ok())
    return document.status();
  return manifest;
}
