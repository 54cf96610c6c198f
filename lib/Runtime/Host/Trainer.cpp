//===- Trainer.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Host/Trainer.h"
#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Host/BatchCutter.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;

/// Products here add, in f32; whatever else a plan asks of them is another target's.
static Status checkEpilogues(const Plan &plan) {
  for (const Command &command : plan.commands) {
    const GemmShape &gemm = command.gemm;
    bool adds = gemm.bias >= 0 || gemm.residual >= 0;
    if (gemm.activation == Activation::None && (!adds || command.dtype == DType::F32))
      continue;
    Status status =
        Status::badInput("command " + std::to_string(&command - plan.commands.data()) + " (" + command.describe() +
                         "): on CPUs products of " + nameOf(command.dtype) +
                         (gemm.activation == Activation::None ? " add no bias or residual" : " apply no activation"));
    status.command = static_cast<int32_t>(&command - plan.commands.data());
    status.location = command.location;
    return status;
  }
  return Status::success();
}

Expected<std::unique_ptr<Trainer>> Trainer::load(const std::string &folder, const TrainerOptions &options) {
  Expected<Artifact> artifact = loadArtifact(folder);
  if (!artifact)
    return artifact.error();
  const Manifest &loaded = artifact->manifest;
  if (loaded.target != "host" && loaded.target != "emulate")
    return Status::badInput(
        "'" + folder + "' was compiled for target '" + loaded.target + "'; " +
        (loaded.target == "cuda" ? "this build has no CUDA runtime yet, and runs" : "this runtime runs") +
        " 'host' and 'emulate'");
  if (Status status = checkEpilogues(artifact->plan); !status.ok())
    return status;
  if (options.ranks != 0 && options.ranks != loaded.ranks)
    return Status::badInput("'" + folder + "' was compiled for " + std::to_string(loaded.ranks) + " ranks, not " +
                            std::to_string(options.ranks) +
                            "; compile the step again with --ranks=" + std::to_string(options.ranks));
  if (options.threads < 0)
    return Status::badInput("threads must be at least 1, not " + std::to_string(options.threads));
  if (!(options.timeoutSeconds > 0 && options.timeoutSeconds < 1e6))
    return Status::badInput("the time-out must be more than 0 and less than "
                            "1000000 seconds, not " +
                            std::to_string(options.timeoutSeconds));
  std::unique_ptr<Trainer> trainer(new Trainer);
  ExecutorOptions &executorOptions = trainer->executorOptions;
  executorOptions.threads =
      options.threads ? options.threads : std::max<int64_t>(1, std::thread::hardware_concurrency());
  executorOptions.timeout = std::chrono::duration<double>(options.timeoutSeconds);
  if (!options.fault.empty()) {
    Expected<Fault> fault = parseFault(options.fault);
    if (!fault)
      return fault.error();
    executorOptions.fault = *fault;
  }

  trainer->content = std::make_unique<Content>(std::move(*artifact));
  Content &content = *trainer->content;
  const Manifest &manifest = content.artifact.manifest;
  if (options.profile)
    content.profile = std::make_unique<Profile>(content.artifact);
  executorOptions.profile = content.profile.get();
  trainer->numThreads = std::max<int64_t>(1, executorOptions.threads / manifest.ranks) * manifest.ranks;

  Expected<KernelLibrary> kernels = KernelLibrary::open(content.artifact, options.cpu);
  if (!kernels)
    return kernels.error();
  content.kernels = std::move(*kernels);
  if (Emulation *emulation = content.kernels.emulation()) {
    if (Status status = emulation->configure(options.emulation); !status.ok())
      return status;
  } else if (!options.emulation.empty()) {
    return Status::badInput("'" + folder + "' was compiled for target '" + manifest.target +
                            "': emulation '" + options.emulation + "' is for target 'emulate'");
  }

  if (Status status = trainer->initializeState(options); !status.ok())
    return status;
  for (const HyperParameter &entry : manifest.hyper)
    trainer->hyper.push_back(entry.value);
  if (Status status = trainer->startRanks(); !status.ok())
    return status;
  if (Status status = trainer->loadFirstStep(folder + "/first_step", options); !status.ok())
    return status;
  return trainer;
}

/// Loads the artifact of the first step, if there is one and it is still to be run.
Status Trainer::loadFirstStep(const std::string &folder, TrainerOptions options) {
  if (options.shares || !startsCold || ::access((folder + "/manifest.json").c_str(), R_OK) != 0)
    return Status::success();
  std::string own = content->artifact.pathOf("weights.safetensors");
  if (options.weights.empty() && ::access(own.c_str(), R_OK) == 0)
    options.weights = own;
  options.shares = this;
  options.fault.clear();
  Expected<std::unique_ptr<Trainer>> loaded = load(folder, options);
  if (!loaded)
    return loaded.error();
  first = std::move(*loaded);
  return Status::success();
}

/// Makes the arenas and their state, or takes those of another trainer.
Status Trainer::initializeState(const TrainerOptions &options) {
  std::string own = content->artifact.pathOf("weights.safetensors");
  std::string path = options.weights;
  if (path.empty() && ::access(own.c_str(), R_OK) == 0)
    path = own;
  std::optional<SafetensorsFile> weights;
  if (!path.empty()) {
    Expected<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file)
      return file.error();
    weights = std::move(*file);
  }
  if (options.shares)
    return shareState(*options.shares, weights ? &*weights : nullptr);
  Expected<std::shared_ptr<RankMemory>> memory = RankMemory::allocate(manifest().ranks, manifest().arenaBytes);
  if (!memory)
    return memory.error();
  content->memory = *memory;
  startsCold =
      std::none_of(content->state.tensors().begin(), content->state.tensors().end(), [&](const StateTensor &tensor) {
        return tensor.isOptimizerState() && weights && weights->find(tensor.fileKey(tensor.name));
      });
  return content->state.initialize(weights ? &*weights : nullptr, content->bases());
}

Status Trainer::shareState(const Trainer &other, const SafetensorsFile *weights) {
  if (!other.content->memory->failure.ok())
    return other.content->memory->failure;
  std::string difference = content->state.findDifference(other.state());
  if (difference.empty() && manifest().stateBytes != other.manifest().stateBytes)
    difference = "a state of " + std::to_string(manifest().stateBytes) + " bytes";
  if (!difference.empty())
    return Status::badInput("the programs cannot share a state: this one has " + difference);
  content->memory = other.content->memory;
  for (const StateTensor &tensor : content->state.tensors()) {
    if (tensor.state != "constant")
      continue;
    const TensorView *stored = weights ? weights->find(tensor.fileKey(tensor.name)) : nullptr;
    std::vector<char> shared(static_cast<size_t>(tensor.bytes()));
    content->state.read(tensor, content->bases(), shared.data());
    bool same = stored && stored->bytes == tensor.bytes() && stored->dtype == tensor.dtype &&
                std::memcmp(stored->data, shared.data(), shared.size()) == 0;
    if (!same)
      return Status::badInput("the programs cannot share a state: constant '" + tensor.name + "' " +
                              (stored ? "is another" : "is in no weights file"));
  }
  return content->memory->grow(manifest().arenaBytes, manifest().stateBytes);
}

/// Starts the ranks on the arenas as they are.
Status Trainer::startRanks() {
  if (content->executor && !content->executor->shutdown())
    return Status::failed("a rank does not end");
  content->executor.reset();
  Expected<std::unique_ptr<Executor>> executor =
      Executor::create(content->artifact, content->kernels, content->bases(), executorOptions);
  if (!executor)
    return executor.error();
  content->executor = std::move(*executor);
  generation = content->memory->generation();
  return Status::success();
}

Trainer::~Trainer() {
  if (content && content->executor && !content->executor->shutdown())
    (void)content.release(); // a thread still runs in these arenas
}

Status Trainer::setHyper(const std::string &name, int64_t group, double value) {
  if (first)
    if (Status status = first->setHyper(name, group, value); !status.ok())
      return status;
  const std::vector<HyperParameter> &all = manifest().hyper;
  std::string known;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name && all[i].group == group) {
      hyper[i] = value;
      return Status::success();
    }
    known += (known.empty() ? "" : ", ") + all[i].name + " of group " + std::to_string(all[i].group);
  }
  return Status::badInput("no hyper-parameter '" + name + "' of group " + std::to_string(group) +
                          " is an input of the step; " + (known.empty() ? "it has none" : "it has: " + known));
}

Status Trainer::checkInput(const BatchInput &input, const HostTensor &tensor) const {
  bool sameShape = static_cast<size_t>(tensor.rank) == input.shape.size() &&
                   std::equal(input.shape.begin(), input.shape.end(), tensor.shape);
  if (tensor.dtype == input.dtype && sameShape)
    return tensor.data ? checkRowIds(input, tensor.data) : Status::badInput("input '" + input.name + "': no data");
  std::vector<int64_t> found(tensor.shape, tensor.shape + tensor.rank);
  return Status::badInput("input '" + input.name + "': expected " + nameOf(input.dtype) + formatShape(input.shape) +
                          ", found " + nameOf(tensor.dtype) + formatShape(found));
}

Status Trainer::step(const HostTensor *inputs, size_t count) {
  const std::vector<BatchInput> &batch = manifest().batch;
  if (count != batch.size())
    return Status::badInput("the step takes " + std::to_string(batch.size()) + " batch inputs, found " +
                            std::to_string(count));
  for (size_t i = 0; i < count; ++i)
    if (Status status = checkInput(batch[i], inputs[i]); !status.ok())
      return status;

  RankMemory &memory = *content->memory;
  if (!memory.failure.ok())
    return memory.failure;
  if (first && !ranFirst) {
    Status status = first->step(inputs, count);
    ranFirst = status.ok();
    return status;
  }
  first.reset();
  if (generation != memory.generation())
    if (Status status = startRanks(); !status.ok())
      return status;
  for (int64_t rank = 0; rank < manifest().ranks; ++rank) {
    char *arena = memory.bases()[static_cast<size_t>(rank)];
    for (size_t i = 0; i < count; ++i)
      cutRows(batch[i].split, batch[i].shape, batch[i].dtype, rank, inputs[i].data, arena + batch[i].offset);
    for (size_t i = 0; i < hyper.size(); ++i)
      storeFromDouble(arena + manifest().hyper[i].offset, manifest().hyper[i].dtype, 0, hyper[i]);
  }
  memory.failure = content->executor->step();
  return memory.failure;
}

static bool isFloatingPoint(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::F16 || dtype == DType::BF16;
}

static Status checkBytes(const std::string &what, int64_t needed, size_t found) {
  if (static_cast<size_t>(needed) == found)
    return Status::success();
  return Status::badInput(what + " has " + std::to_string(needed) + " bytes, the caller's buffer " +
                          std::to_string(found));
}

Status Trainer::readOutput(size_t index, void *destination, size_t bytes) const {
  if (first && ranFirst)
    return first->readOutput(index, destination, bytes);
  const std::vector<Output> &outputs = manifest().outputs;
  if (index >= outputs.size())
    return Status::badInput("output " + std::to_string(index) + ": the step has " + std::to_string(outputs.size()));
  const Output &output = outputs[index];
  if (Status status =
          checkBytes("output " + std::to_string(index), numElements(output.shape) * sizeOf(output.dtype), bytes);
      !status.ok())
    return status;
  if (output.isVarying && output.shape.empty() && isFloatingPoint(output.dtype)) {
    double sum = 0;
    for (const char *base : content->bases())
      sum += loadAsDouble(base + output.offset, output.dtype, 0);
    storeFromDouble(destination, output.dtype, 0, sum / static_cast<double>(manifest().ranks));
    return Status::success();
  }
  int64_t sources = output.split.dim ? manifest().ranks : 1;
  for (int64_t rank = 0; rank < sources; ++rank)
    joinRows(output.split, output.shape, output.dtype, rank,
             content->bases()[static_cast<size_t>(rank)] + output.offset, destination);
  return Status::success();
}

Status Trainer::locate(const std::string &state, const std::string &name, size_t bytes,
                       const StateTensor *&tensor) const {
  tensor = content->state.find(state, name);
  if (!tensor)
    return Status::badInput("no " + state + " is named '" + name + "'");
  return checkBytes(state + " '" + name + "'", tensor->bytes(), bytes);
}

Status Trainer::readTensor(const std::string &state, const std::string &name, void *destination, size_t bytes) const {
  const StateTensor *tensor;
  Status status = locate(state, name, bytes, tensor);
  if (status.ok())
    content->state.read(*tensor, content->bases(), destination);
  return status;
}

Status Trainer::writeTensor(const std::string &state, const std::string &name, const void *source, size_t bytes) {
  const StateTensor *tensor;
  Status status = locate(state, name, bytes, tensor);
  if (status.ok())
    content->state.write(*tensor, content->bases(), source);
  return status;
}

Status Trainer::save(const std::string &path, bool withOptimizer) const {
  std::vector<std::vector<char>> storage;
  std::vector<NamedTensor> tensors;
  for (const StateTensor &tensor : content->state.tensors()) {
    bool wanted = tensor.isOptimizerState() || tensor.isRng() ? withOptimizer
                                                              : tensor.state != "constant" && tensor.entry->persistent;
    if (!wanted)
      continue;
    storage.emplace_back(static_cast<size_t>(tensor.bytes()));
    content->state.read(tensor, content->bases(), storage.back().data());
    TensorView view{tensor.dtype, tensor.shape, storage.back().data(), tensor.bytes()};
    tensors.push_back({tensor.fileKey(tensor.name), view});
    for (const std::string &alias : tensor.aliases)
      tensors.push_back({tensor.fileKey(alias), view});
  }
  return writeSafetensors(path, tensors, {{"format", "pt"}});
}
