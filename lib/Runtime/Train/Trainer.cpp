//===- Trainer.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Train/Trainer.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Train/BatchCutter.h"
#include "spmd/Runtime/Train/Registry.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace spmd::runtime;

/// "'host' and 'emulate'".
static std::string listTargets() {
  std::vector<std::string> targets = registeredTargets();
  std::string text;
  for (size_t i = 0; i < targets.size(); ++i)
    text += (i == 0 ? "'" : i + 1 < targets.size() ? ", '" : " and '") + targets[i] + "'";
  return targets.empty() ? "nothing" : text;
}

Expected<std::unique_ptr<Trainer>> Trainer::load(const std::string &folder, const TrainerOptions &options) {
  Expected<Artifact> artifact = loadArtifact(folder);
  if (!artifact)
    return artifact.error();
  const Manifest &loaded = artifact->manifest;
  std::shared_ptr<const Backend> backend = findBackend(loaded.target);
  if (!backend)
    return Status::badInput(
        "'" + folder + "' was compiled for target '" + loaded.target + "'; " +
        (loaded.target == "cuda" ? "this build has no CUDA runtime yet, and runs " : "this runtime runs ") +
        listTargets());
  if (Status status = backend->checkPlan(*artifact); !status.ok())
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
  Expected<std::unique_ptr<Device>> device = backend->open(content.artifact, options.device);
  if (!device)
    return device.error();
  content.device = std::move(*device);
  if (Status status = trainer->join(std::move(backend), options); !status.ok())
    return status;
  if (options.profile)
    content.profile = std::make_unique<Profile>(content.artifact, content.ranks);
  executorOptions.profile = content.profile.get();
  trainer->numThreads = std::max<int64_t>(1, executorOptions.threads / content.ranks.count) * content.ranks.count;

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

Status Trainer::SharedState::settle() {
  Executor *running = std::exchange(issued, nullptr);
  if (!failure.ok() || !running)
    return Status::success();
  failure = running->wait();
  return failure;
}

template <typename Body>
Status Trainer::SharedState::read(const Body &body) {
  if (Status status = settle(); !status.ok())
    return status;
  Status status = body();
  if (!status.ok() && failure.ok())
    failure = abort.status();
  return status;
}

/// Finds the other processes of the job, or takes those of the trainer whose state is shared.
Status Trainer::join(std::shared_ptr<const Backend> backend, const TrainerOptions &options) {
  if (options.shares) {
    content->shared = options.shares->content->shared;
    if (content->shared->backend != backend)
      return Status::badInput("the programs cannot share a state: this one is for target '" + manifest().target +
                              "', not '" + options.shares->manifest().target + "'");
  } else {
    content->shared = std::make_shared<SharedState>();
    content->shared->backend = std::move(backend);
    std::string name = options.communicators.empty() ? content->device->communicators() : options.communicators;
    Expected<std::shared_ptr<CommunicatorFactory>> processes = makeCommunicators(
        name, std::chrono::duration_cast<std::chrono::steady_clock::duration>(executorOptions.timeout));
    if (!processes)
      return processes.error();
    content->shared->processes = std::move(*processes);
  }
  Expected<RanksHere> ranks = content->shared->processes->ranksHere(manifest().ranks);
  if (!ranks)
    return ranks.error();
  content->ranks = *ranks;
  return compareProcesses();
}

/// Checks that all processes have loaded the same program, so that a mistake is not found in the middle of a step.
Status Trainer::compareProcesses() {
  std::vector<uint64_t> hashes(static_cast<size_t>(manifest().ranks), content->artifact.traceHash);
  for (int64_t rank = 0; rank < manifest().ranks && !content->ranks.areAll(); ++rank)
    if (Status status = content->shared->processes->share(rank, &hashes[static_cast<size_t>(rank)], sizeof(uint64_t),
                                                          content->shared->abort);
        !status.ok())
      return status;
  for (int64_t rank = 1; rank < manifest().ranks; ++rank)
    if (hashes[static_cast<size_t>(rank)] != hashes[0])
      return Status::badInput("rank " + std::to_string(rank) +
                              " loaded another program than rank 0: the hash of its "
                              "collectives is " +
                              formatHash(hashes[static_cast<size_t>(rank)]) + ", not " + formatHash(hashes[0]));
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
  Expected<std::unique_ptr<RankMemory>> memory = content->device->allocate(content->ranks, manifest().arenaBytes, *content->shared->processes);
  if (!memory)
    return memory.error();
  content->shared->memory = std::move(*memory);
  startsCold =
      std::none_of(content->state.tensors().begin(), content->state.tensors().end(), [&](const StateTensor &tensor) {
        return tensor.isOptimizerState() && weights && weights->find(tensor.fileKey(tensor.name));
      });
  if (weights && !options.weights.empty())
    noteGaps(*weights);
  return content->state.initialize(weights ? &*weights : nullptr, content->memory());
}

/// Of a file that somebody gave; nothing here makes it wrong.
void Trainer::noteGaps(const SafetensorsFile &weights) {
  constexpr size_t kNamed = 8;
  std::vector<std::string> unknown = content->state.findUnknown(weights);
  if (!unknown.empty()) {
    std::string names;
    for (size_t i = 0; i < std::min(unknown.size(), kNamed); ++i)
      names += (i ? ", '" : "'") + unknown[i] + "'";
    if (unknown.size() > kNamed)
      names += " and " + std::to_string(unknown.size() - kNamed) + " more";
    notices.push_back("'" + weights.path() + "': the artifact has no place for " + names);
  }
  // A step package's weights are those before the first step.
  auto format = weights.metadata().find("format");
  bool isInitial = format != weights.metadata().end() && format->second == "spmd-weights";
  const StateTensor *step = content->state.find("rng", "step");
  if (step && !isInitial && !weights.find(step->fileKey(step->name)))
    notices.push_back("'" + weights.path() + "' does not say how many steps have drawn random numbers ('" +
                      step->fileKey(step->name) + "'): dropout and the like begin again with those of the first step");
}

Status Trainer::shareState(const Trainer &other, const SafetensorsFile *weights) {
  if (!content->shared->failure.ok())
    return content->shared->failure;
  if (Status status = content->shared->settle(); !status.ok())
    return status;
  std::string difference = content->state.findDifference(other.state());
  if (difference.empty() && manifest().stateBytes != other.manifest().stateBytes)
    difference = "a state of " + std::to_string(manifest().stateBytes) + " bytes";
  if (!difference.empty())
    return Status::badInput("the programs cannot share a state: this one has " + difference);
  for (const StateTensor &tensor : content->state.tensors()) {
    if (tensor.state != "constant")
      continue;
    const TensorView *stored = weights ? weights->find(tensor.fileKey(tensor.name)) : nullptr;
    std::vector<char> shared(static_cast<size_t>(tensor.bytes()));
    if (Status status = content->state.read(tensor, content->reader(), shared.data()); !status.ok())
      return status;
    bool same = stored && stored->bytes == tensor.bytes() && stored->dtype == tensor.dtype &&
                std::memcmp(stored->data, shared.data(), shared.size()) == 0;
    if (!same)
      return Status::badInput("the programs cannot share a state: constant '" + tensor.name + "' " +
                              (stored ? "is another" : "is in no weights file"));
  }
  return content->memory().grow(manifest().arenaBytes, manifest().stateBytes);
}

/// Starts the ranks on the arenas as they are.
Status Trainer::startRanks() {
  const Fault &fault = executorOptions.fault;
  auto commands = static_cast<int64_t>(content->artifact.plan.commands.size());
  if (fault.kind != Fault::Kind::None && (fault.rank >= manifest().ranks || fault.command >= commands))
    return Status::badInput("fault at rank " + std::to_string(fault.rank) + ", command " +
                            std::to_string(fault.command) + ": there are " + std::to_string(manifest().ranks) +
                            " ranks and " + std::to_string(commands) + " commands");
  if (!stopRanks())
    return Status::failed("a rank does not end");
  content->executor.reset();
  Expected<std::unique_ptr<Executor>> executor = content->device->makeExecutor(
      content->memory(), *content->shared->processes, content->shared->abort, executorOptions);
  if (!executor)
    return executor.error();
  content->executor = std::move(*executor);
  generation = content->memory().generation();
  return Status::success();
}

/// False when one does not end.
bool Trainer::stopRanks() {
  if (!content->executor)
    return true;
  if (content->shared->issued == content->executor.get())
    (void)content->shared->settle(); // a failure is kept
  return content->executor->shutdown();
}

Trainer::~Trainer() {
  if (content && !stopRanks())
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

  SharedState &shared = *content->shared;
  if (!shared.failure.ok())
    return shared.failure;
  if (first && !ranFirst) {
    Status status = first->step(inputs, count);
    ranFirst = status.ok();
    return status;
  }
  first.reset();
  if (shared.issued != content->executor.get())
    if (Status status = shared.settle(); !status.ok())
      return status;
  RankMemory &memory = *shared.memory;
  if (generation != memory.generation())
    if (Status status = startRanks(); !status.ok())
      return status;
  if (Status status = passInputs(inputs); !status.ok())
    return status;
  shared.issued = content->executor.get();
  shared.failure = content->executor->step();
  return shared.failure;
}

/// Copies to each rank here its rows of the batch, and the hyper-parameters.
Status Trainer::passInputs(const HostTensor *inputs) {
  const std::vector<BatchInput> &batch = manifest().batch;
  RankMemory &memory = content->memory();
  for (int64_t rank = content->ranks.first; rank < content->ranks.end(); ++rank) {
    for (size_t i = 0; i < batch.size(); ++i)
      if (Status status =
              cutRows(batch[i].split, batch[i].shape, batch[i].dtype, rank, inputs[i].data, memory, batch[i].offset);
          !status.ok())
        return status;
    for (size_t i = 0; i < hyper.size(); ++i) {
      const HyperParameter &entry = manifest().hyper[i];
      char value[8];
      storeFromDouble(value, entry.dtype, 0, hyper[i]);
      if (Status status = memory.copyIn(rank, entry.offset, value, sizeOf(entry.dtype)); !status.ok())
        return status;
    }
  }
  return Status::success();
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
  return content->shared->read([&] { return gatherOutput(output, destination); });
}

Status Trainer::gatherOutput(const Output &output, void *destination) const {
  RankReader reader = content->reader();
  if (output.isVarying && output.shape.empty() && isFloatingPoint(output.dtype)) {
    double sum = 0;
    for (int64_t rank = 0; rank < manifest().ranks; ++rank) {
      char value[8];
      if (Status status = reader.read(rank, output.offset, value, sizeOf(output.dtype)); !status.ok())
        return status;
      sum += loadAsDouble(value, output.dtype, 0);
    }
    storeFromDouble(destination, output.dtype, 0, sum / static_cast<double>(manifest().ranks));
    return Status::success();
  }
  int64_t sources = output.split.dim ? manifest().ranks : 1;
  for (int64_t rank = 0; rank < sources; ++rank)
    if (Status status = joinRows(output.split, output.shape, output.dtype, rank, reader, output.offset, destination);
        !status.ok())
      return status;
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
  if (Status status = locate(state, name, bytes, tensor); !status.ok())
    return status;
  return content->shared->read([&] { return content->state.read(*tensor, content->reader(), destination); });
}

Status Trainer::writeTensor(const std::string &state, const std::string &name, const void *source, size_t bytes) {
  const StateTensor *tensor;
  Status status = locate(state, name, bytes, tensor);
  if (status.ok())
    status = content->shared->settle();
  return status.ok() ? content->state.write(*tensor, content->memory(), source) : status;
}

std::vector<std::string> Trainer::unsavedState() const {
  std::vector<std::string> kinds;
  for (const StateTensor &tensor : content->state.tensors())
    if ((tensor.isOptimizerState() || tensor.isRng()) &&
        std::find(kinds.begin(), kinds.end(), tensor.state) == kinds.end())
      kinds.push_back(tensor.state);
  return kinds;
}

Status Trainer::save(const std::string &path, bool withOptimizer) const {
  std::vector<std::vector<char>> storage;
  std::vector<NamedTensor> tensors;
  auto gather = [&](const StateTensor &tensor) {
    storage.emplace_back(static_cast<size_t>(tensor.bytes()));
    TensorView view{tensor.dtype, tensor.shape, storage.back().data(), tensor.bytes()};
    tensors.push_back({tensor.fileKey(tensor.name), view});
    for (const std::string &alias : tensor.aliases)
      tensors.push_back({tensor.fileKey(alias), view});
    return content->shared->read([&] { return content->state.read(tensor, content->reader(), storage.back().data()); });
  };
  for (const StateTensor &tensor : content->state.tensors()) {
    bool wanted = tensor.isOptimizerState() || tensor.isRng() ? withOptimizer
                                                              : tensor.state != "constant" && tensor.entry->persistent;
    if (Status status = wanted ? gather(tensor) : Status::success(); !status.ok())
      return status;
  }
  if (content->ranks.areAll())
    return writeSafetensors(path, tensors, {{"format", "pt"}});
  // One process writes, and all of them say whether it could.
  Status written = content->ranks.has(0) ? writeSafetensors(path, tensors, {{"format", "pt"}}) : Status::success();
  StatusCode code = written.code;
  if (Status status = content->shared->processes->share(0, &code, sizeof code, content->shared->abort); !status.ok())
    return status;
  if (code != StatusCode::Ok && !content->ranks.has(0))
    return Status{code, "the process of rank 0 cannot write '" + path + "'", 0, -1, ""};
  return written;
}
