//===- ManifestWriter.cpp - A manifest as JSON ----------------------------===//
//
// What ManifestReader.cpp reads. The same manifest gives the same bytes.
//
//===----------------------------------------------------------------------===//

#include "CommandFields.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Manifest.h"

using namespace spmd::runtime;

namespace {
class ManifestWriter {
public:
  explicit ManifestWriter(const Manifest &manifest) : manifest(manifest) {}

  std::string write();

private:
  void writeHeader();
  void writeArena(const Manifest &program);
  void writeProgram(const Manifest &program);
  void writeKernels();
  void writeLaunch(const KernelLaunch &launch);
  void writeUserLaunch(const UserLaunch &launch);
  void writeUnit(const Unit &unit);
  void writeState(const StateEntry &entry);
  void writeBatch(const BatchInput &input);
  void writeHyper(const HyperParameter &hyper);
  void writeOutput(const Output &output);
  /// `key` has its kind.
  void writeBinding(const char *key, const Binding &binding);
  void writeLaunch(const KernelOperation &kernel);
  void writeOperation(const KernelOperation &kernel);
  void writeOperation(const AttentionOperation &attention);
  void writeOperation(const GemmOperation &gemm);
  void writeOperation(const CollectiveOperation &collective);
  void writeOperation(const CheckIndexCommand &check);
  void writeValue(const ValueEntry &entry);

  /// Offset in the arena, and the buffer's number.
  template <typename Entry>
  void writePlace(const Entry &entry) {
    json.member("offset", entry.offset);
    json.optionalMember("buffer", entry.buffer);
  }
  /// How a tensor is cut over the ranks: global shape, and dim, pre, chunk when it is.
  template <typename Entry>
  void writeLayout(const Entry &entry) {
    json.member("dtype", entry.dtype);
    json.member("shape", entry.shape);
    if (entry.split.dim) {
      json.member("dim", *entry.split.dim);
      json.member("pre", entry.split.pre);
      json.member("chunk", entry.split.chunk);
    }
    json.member("local_shape", entry.localShape);
  }

  const Manifest &manifest;
  JsonWriter json;
};
} // namespace

void ManifestWriter::writeHeader() {
  json.member("format", "spmd-artifact");
  json.member("version", kManifestVersion);
  json.member("compiler", manifest.compiler);
  json.member("step", manifest.step);
  json.member("target", manifest.target);
  json.member("mode", manifest.mode);
  json.member("policy", manifest.policy);
  json.member("view", manifest.view);
  json.objects("mesh", manifest.mesh, [&](const MeshAxis &axis) {
    json.member("name", axis.name);
    json.member("size", axis.size);
    if (axis.isTensor)
      json.member("tensor", true);
  });
  json.member("ranks", manifest.ranks);
}

void ManifestWriter::writeArena(const Manifest &program) {
  json.object("arena", [&] {
    json.member("state_bytes", program.stateBytes);
    json.member("transient_bytes", program.transientBytes);
    json.member("bytes", program.arenaBytes);
    json.object("classes", [&] {
      for (const auto &[name, bytes] : program.classBytes)
        json.member(name.c_str(), bytes);
    });
  });
}

void ManifestWriter::writeUserLaunch(const UserLaunch &launch) {
  json.member("function", launch.function);
  json.member("grid", std::vector<int64_t>(launch.grid.begin(), launch.grid.end()));
  json.member("block", std::vector<int64_t>(launch.block.begin(), launch.block.end()));
  json.objects("parameters", launch.parameters, [&](const LaunchParameter &parameter) {
    if (parameter.reference >= 0) {
      json.member("reference", parameter.reference);
      return;
    }
    json.member("dtype", parameter.dtype);
    json.member("bits", formatHash(parameter.bits));
  });
}

void ManifestWriter::writeLaunch(const KernelLaunch &launch) {
  json.member("kernel", launch.kernel);
  json.member("chip", launch.chip);
  json.member("blocks", launch.blocks);
  json.member("threads", launch.threads);
  json.member("dynamic_shared_bytes", launch.dynamicSharedBytes);
  json.member("pointers", launch.pointers);
  json.member("coordinates", launch.coordinates);
  json.optionalMember("moved_bytes", launch.movedBytes);
  // An emulated kernel has no machine code of its own.
  if (launch.bytes == 0)
    return;
  if (launch.user) { // of which ptxas says nothing
    json.member("offset", launch.offset);
    json.member("bytes", launch.bytes);
    writeUserLaunch(*launch.user);
    return;
  }
  json.member("static_shared_bytes", launch.staticSharedBytes);
  json.member("registers", launch.registers);
  json.member("local_bytes", launch.localBytes);
  json.member("spill_store_bytes", launch.spillStoreBytes);
  json.member("spill_load_bytes", launch.spillLoadBytes);
  json.member("barriers", launch.barriers);
  json.member("offset", launch.offset);
  json.member("bytes", launch.bytes);
}

void ManifestWriter::writeKernels() {
  json.objects("kernels", manifest.kernels, [&](const KernelFile &kernel) {
    json.optionalMember("cpu", kernel.cpu);
    json.optionalMember("chip", kernel.chip);
    json.member("file", kernel.file);
    json.member("hash", kernel.hash);
    json.optionalMember("ptx", kernel.ptx);
    json.optionalMember("ptx_hash", kernel.ptxHash);
  });
  json.objects("kernel_table", manifest.kernelTable, [&](const KernelInfo &kernel) {
    json.member("kernel", kernel.kernel);
    json.member("kind", kernel.kind);
    json.member("required_bytes", kernel.requiredBytes);
    json.optionalMember("moved_bytes", kernel.movedBytes);
    if (kernel.products) {
      json.member("product_flops", kernel.products->flops);
      json.member("product_dtype", kernel.products->dtype);
    }
  });
  if (!manifest.launches.empty())
    json.objects("launches", manifest.launches, [&](const KernelLaunch &launch) { writeLaunch(launch); });
}

void ManifestWriter::writeUnit(const Unit &unit) {
  json.member("name", unit.name);
  json.member("modules", unit.modules);
  json.member("dtype", unit.dtype);
  json.member("padded", unit.padded);
  json.member("chunk", unit.chunk);
  if (!unit.axes.empty())
    json.member("axes", unit.axes);
  if (unit.wholeGradient)
    json.member("whole_gradient", true);
  json.objects("segments", unit.segments, [&](const Segment &segment) {
    json.member("name", segment.name);
    json.member("aliases", segment.aliases);
    json.member("shape", segment.shape);
    json.member("group", segment.group);
    json.member("offset", segment.offset);
    json.member("numel", segment.numel);
    json.member("trainable", segment.trainable);
    if (!segment.tensor.dim)
      return;
    json.member("whole_shape", segment.wholeShape);
    json.member("dim", *segment.tensor.dim);
    json.member("pre", segment.tensor.pre);
    json.member("chunk", segment.tensor.chunk);
  });
}

void ManifestWriter::writeState(const StateEntry &entry) {
  json.member("kind", nameOf(entry.kind));
  if (entry.kind == StateEntry::Kind::Replicated) {
    json.member("name", entry.name);
    json.member("state", entry.state);
    json.member("aliases", entry.aliases);
    json.member("shape", entry.shape);
  } else {
    json.member("unit", entry.unit);
    json.member("state", entry.state);
    json.member("numel", entry.numel);
  }
  json.member("init", entry.init);
  json.member("dtype", entry.dtype);
  writePlace(entry);
  if (!entry.persistent)
    json.member("persistent", false);
  if (entry.isSum)
    json.member("sum", true);
}

void ManifestWriter::writeBatch(const BatchInput &input) {
  json.member("name", input.name);
  writeLayout(input);
  writePlace(input);
  json.optionalMember("index_bound", input.indexBound);
  json.optionalMember("ignore_index", input.ignoreIndex);
}

void ManifestWriter::writeHyper(const HyperParameter &hyper) {
  json.member("name", hyper.name);
  json.member("group", hyper.group);
  json.member("dtype", hyper.dtype);
  json.member("value", hyper.value);
  writePlace(hyper);
}

void ManifestWriter::writeOutput(const Output &output) {
  json.member("kind", nameOf(output.kind));
  json.member("path", output.path);
  json.member("state", output.isVarying ? "varying" : output.split.dim ? "sharded" : "replicated");
  writeLayout(output);
  writePlace(output);
}

void ManifestWriter::writeBinding(const char *key, const Binding &binding) {
  json.member(key, nameOf(binding.kind));
  json.member(nameKeyOf(binding.kind), binding.name);
  if (binding.hasState())
    json.member("state", binding.state);
  if (binding.kind == Binding::Kind::Hyper)
    json.member("group", binding.group);
  json.member("dtype", binding.dtype);
}

void ManifestWriter::writeLaunch(const KernelOperation &kernel) {
  json.member("kernel", kernel.symbol);
  std::vector<std::string> accesses;
  for (Access access : kernel.arguments)
    accesses.push_back(nameOf(access));
  json.member("args", accesses);
}

void ManifestWriter::writeOperation(const KernelOperation &kernel) {
  json.member("compute", nameOf(KernelCommand()));
  writeLaunch(kernel);
}

void ManifestWriter::writeOperation(const AttentionOperation &attention) {
  AttentionCommand command;
  command.shape = attention.shape;
  json.member("compute", nameOf(command));
  writeLaunch(attention);
  writeAttentionShape(json, attention.shape);
}

void ManifestWriter::writeOperation(const GemmOperation &gemm) {
  json.member("compute", nameOf(GemmCommand()));
  writeGemmSizes(json, gemm.sizes);
  json.member("dtype", gemm.dtype);
  writeActivation(json, gemm.sizes.activation);
  auto writePart = [&](const char *key, bool isThere) {
    if (isThere)
      json.member(key, true);
  };
  writePart("bias", gemm.hasBias);
  writePart("residual", gemm.hasResidual);
  writePart("pre_activation", gemm.hasPreActivation);
  writeBiasGradientOf(json, gemm.sizes.biasGradientOf);
}

void ManifestWriter::writeOperation(const CollectiveOperation &collective) {
  json.member("compute", nameOf(collective.kind));
  writeExchange(json, collective);
  if (!collective.axes.empty())
    json.member("axes", collective.axes);
}

void ManifestWriter::writeOperation(const CheckIndexCommand &check) {
  json.member("compute", nameOf(check));
  writeCheckIndex(json, check);
}

void ManifestWriter::writeValue(const ValueEntry &entry) {
  switch (entry.kind) {
  case ValueEntry::Kind::Source:
    writeBinding("source", entry.binding);
    json.member("bytes", entry.bytes[0]);
    break;
  case ValueEntry::Kind::Compute:
    std::visit([&](const auto &operation) { writeOperation(operation); }, entry.operation);
    json.member("of", entry.of);
    json.member("bytes", entry.bytes);
    if (!entry.reads.empty())
      json.member("reads", entry.reads);
    if (!entry.byRank.empty())
      json.member("by_rank", entry.byRank);
    if (!entry.along.empty())
      json.member("along", entry.along);
    break;
  case ValueEntry::Kind::Part:
    json.member("part", entry.of[0]);
    json.member("at", entry.at[0]);
    json.member("bytes", entry.bytes[0]);
    if (!entry.segments.empty()) {
      json.member("segment", entry.segments[0]);
      json.member("unit", entry.unit);
    }
    break;
  case ValueEntry::Kind::Join:
    json.member("join", entry.of);
    json.member("at", entry.at);
    json.member("bytes", entry.bytes[0]);
    json.member("segments", entry.segments);
    json.member("unit", entry.unit);
    break;
  case ValueEntry::Kind::Target:
    writeBinding("target", entry.binding);
    json.member("of", entry.of[0]);
    break;
  }
}

/// What a program has of its own beside its arena.
void ManifestWriter::writeProgram(const Manifest &program) {
  json.objects("batch", program.batch, [&](const BatchInput &input) { writeBatch(input); });
  json.objects("hyper", program.hyper, [&](const HyperParameter &hyper) { writeHyper(hyper); });
  json.objects("outputs", program.outputs, [&](const Output &output) { writeOutput(output); });
  if (&program == &manifest) {
    json.member("result_tree", manifest.resultTree);
    json.member("zero_gradient", manifest.zeroGradient);
  }
  json.objects("outside_arena", program.outsideArena, [&](const OutsideArena &entry) {
    json.member("name", entry.name);
    json.member("bytes", entry.bytes);
  });
  if (program.needs)
    json.object("needs", [&] {
      auto write = [&](const char *key, const std::optional<LibraryVersion> &version) {
        if (version)
          json.member(key, toText(*version));
      };
      write("driver", program.needs->driver);
      write("cublaslt", program.needs->cublasLt);
      write("nccl", program.needs->nccl);
    });
  if (!program.replicated.empty())
    json.objects("replicated", program.replicated, [&](const ReplicatedValue &value) {
      json.member("op", value.op);
      json.member("bytes", value.bytes);
      json.member("loc", value.location);
    });
  if (program.values) {
    json.objects("values", program.values->entries, [&](const ValueEntry &entry) { writeValue(entry); });
    writeRepeats(json, program.values->repeats);
  }
}

std::string ManifestWriter::write() {
  writeHeader();
  writeArena(manifest);
  size_t number = 0;
  json.objects("programs", manifest.programs, [&](const ProgramEntry &program) {
    json.member("name", program.name);
    json.member("plan", program.plan);
    json.member("trace_hash", program.traceHash);
    json.optionalMember("hash", program.hash);
    if (number > 0) {
      writeArena(manifest.others[number - 1]);
      writeProgram(manifest.others[number - 1]);
    }
    ++number;
  });
  writeKernels();
  json.objects("units", manifest.units, [&](const Unit &unit) { writeUnit(unit); });
  json.objects("state", manifest.state, [&](const StateEntry &entry) { writeState(entry); });
  writeProgram(manifest);
  return json.finish();
}

std::string spmd::runtime::writeManifest(const Manifest &manifest) { return ManifestWriter(manifest).write(); }
