//===- TrainerLoad.cpp - What a trainer is made of ------------------------===//

#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Train/Registry.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <unistd.h>

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
  return start(std::move(*artifact), options);
}

/// Starts the program that `artifact` begins with, and a first step of its own beside it.
Expected<std::unique_ptr<Trainer>> Trainer::start(Artifact artifact, const TrainerOptions &options) {
  const std::string folder = artifact.folder;
  const Manifest &loaded = artifact.manifest;
  std::shared_ptr<const Backend> backend = findBackend(loaded.target);
  if (!backend)
    return Status::badInput(
        "'" + folder + "' was compiled for target '" + loaded.target + "'; " +
        "this runtime runs " + listTargets());
  if (Status status = backend->checkPlan(artifact); !status.ok())
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

  trainer->content = std::make_unique<Content>(std::move(artifact));
  Content &content = *trainer->content;
  const Manifest &manifest = content.artifact.manifest;
  // A device that only this process does not have is an error of all, who are met first.
  Expected<std::unique_ptr<Device>> device = backend->open(content.artifact, options.device);
  if (device)
    content.device = std::move(*device);
  if (Status status = trainer->join(std::move(backend), device ? Status::success() : device.error(), options);
      !status.ok())
    return status;
  content.batch = std::make_unique<StepBatch>(manifest, content.ranks, options.batch);
  content.inputs = InputBlock::find(manifest, content.artifact.plan);
  if (options.profile)
    content.profile = std::make_unique<Profile>(content.artifact, content.ranks);
  executorOptions.profile = content.profile.get();
  if (options.checkFinite)
    content.finite = std::make_unique<FiniteWatch>(content.artifact.plan);
  executorOptions.finite = content.finite.get();
  trainer->numThreads = std::max<int64_t>(1, executorOptions.threads / content.ranks.count) * content.ranks.count;

  if (Status status = trainer->initializeState(options); !status.ok())
    return status;
  for (const HyperParameter &entry : manifest.hyper)
    trainer->hyper.push_back(entry.value);
  if (Status status = trainer->startRanks(); !status.ok())
    return status;
  if (Status status = trainer->startFirstStep(options); !status.ok())
    return status;
  return trainer;
}

/// Starts the program of the first step, if there is one and it is still to be run.
Status Trainer::startFirstStep(TrainerOptions options) {
  std::vector<Artifact> &programs = content->artifact.others;
  auto program = std::find_if(programs.begin(), programs.end(),
                              [](const Artifact &other) { return other.manifest.programs.front().name == kFirstStep; });
  if (options.shares || !startsCold || program == programs.end())
    return Status::success();
  options.shares = this;
  options.fault.clear();
  Expected<std::unique_ptr<Trainer>> started = start(std::move(*program), options);
  if (!started)
    return started.error();
  first = std::move(*started);
  return Status::success();
}

/// Finds the other processes of the job, or takes those of the trainer whose state is shared. `opened` is what has come
/// of this process's device: an error of one of them is everybody's.
Status Trainer::join(std::shared_ptr<const Backend> backend, const Status &opened, const TrainerOptions &options) {
  if (options.shares) {
    content->shared = options.shares->content->shared;
    if (content->shared->backend != backend)
      return Status::otherState("this one is for target '" + manifest().target +
                              "', not '" + options.shares->manifest().target + "'");
  } else {
    content->shared = std::make_shared<SharedState>();
    content->shared->backend = std::move(backend);
    if (options.communicators.empty() && !opened.ok())
      return opened; // nobody else was asked for
    std::string name = options.communicators.empty() ? content->device->communicators() : options.communicators;
    Expected<std::shared_ptr<CommunicatorFactory>> processes = makeCommunicators(
        name, std::chrono::duration_cast<std::chrono::steady_clock::duration>(executorOptions.timeout));
    if (!processes)
      return opened.ok() ? processes.error() : opened;
    content->shared->processes = std::move(*processes);
  }
  Expected<RanksHere> ranks = content->shared->processes->ranksHere(manifest().ranks);
  if (!ranks)
    return ranks.error();
  content->ranks = *ranks;
  Status prepared = opened;
  if (!options.shares) {
    SharedState &shared = *content->shared;
    shared.recorder.setFolder(options.flightRecord, *ranks);
    shared.abort.watch([&shared] { shared.recorder.note(); });
    if (prepared.ok() && !options.flightRecord.empty())
      prepared = prepareFlightRecords(options.flightRecord, *ranks);
  }
  Expected<std::shared_ptr<CommunicatorFactory>> communicators(prepared);
  if (prepared.ok())
    communicators = content->device->connect(content->shared->processes);
  if (!communicators)
    prepared = communicators.error();
  if (Status status = agreeOn(prepared); !status.ok())
    return status;
  content->communicators = std::move(*communicators);
  if (!content->ranks.areAll() && !options.shares) {
    Expected<std::vector<std::string>> claims = agreement().gather(content->device->claims());
    if (!claims)
      return claims.error();
    if (Status status = content->device->compareClaims(*claims); !status.ok())
      return status;
  }
  // A mistake is not to be found in the middle of a step.
  Status status = compareProcesses(content->artifact.traceHash,
                                   "program than " + content->ranks.describe(0) + ": the hash of its collectives is ");
  return status.ok() ? compareProcesses(content->artifact.hash,
                                        "artifact than " + content->ranks.describe(0) + ": the hash of its manifest is ")
                     : status;
}

/// An error when `hash` is not the same in all processes: `what` of one is not that of the first.
Status Trainer::compareProcesses(uint64_t hash, const std::string &what) {
  if (content->ranks.areAll())
    return Status::success();
  Expected<std::vector<std::string>> hashes = agreement().gather(formatHash(hash));
  if (!hashes)
    return hashes.error();
  for (size_t process = 1; process < hashes->size(); ++process)
    if ((*hashes)[process] != hashes->front())
      return Status::badInput(content->ranks.describe(static_cast<int64_t>(process)) + " loaded another " + what +
                              (*hashes)[process] + ", not " + hashes->front());
  return Status::success();
}

/// Makes the arenas and their state, or takes those of another trainer.
Status Trainer::initializeState(const TrainerOptions &options) {
  std::string own = content->artifact.pathOf("weights.safetensors");
  std::string path = options.weights;
  if (path.empty() && ::access(own.c_str(), R_OK) == 0)
    path = own;
  std::optional<SafetensorsFile> weights;
  Status opened;
  if (!path.empty()) {
    Expected<SafetensorsFile> file = SafetensorsFile::open(path);
    if (file)
      weights = std::move(*file);
    else
      opened = file.error();
  }
  if (Status status = agreeOn(opened); !status.ok())
    return status;
  if (Status status = compareProcesses(weights ? weights->fingerprint() : 0,
                                       "weights file than " + content->ranks.describe(0) + ": its content has the hash ");
      !status.ok())
    return status;
  if (options.shares)
    return shareState(*options.shares, weights ? &*weights : nullptr);
  Expected<std::unique_ptr<RankMemory>> memory =
      content->device->allocate(content->ranks, manifest().arenaBytes, *content->communicators);
  if (Status status = agreeOn(memory ? Status::success() : memory.error()); !status.ok())
    return status;
  content->shared->memory = std::move(*memory);
  if (!content->ranks.areAll() && !content->shared->processes->hasAllArenas()) {
    auto read = [memory = content->shared->memory.get()](int64_t rank, int64_t offset, void *to, int64_t bytes) {
      return memory->copyOut(rank, offset, to, bytes);
    };
    if (Status status = content->shared->processes->startReading(content->ranks, read); !status.ok())
      return status;
  }
  startsCold =
      std::none_of(content->state.tensors().begin(), content->state.tensors().end(), [&](const StateTensor &tensor) {
        return tensor.isOptimizerState() && weights && weights->find(tensor.fileKey(tensor.name));
      });
  if (weights && !options.weights.empty())
    noteGaps(*weights);
  StateMap::MayLack mayLack = options.isWrittenNext  ? StateMap::MayLack::Anything
                              : options.isLoadedNext ? StateMap::MayLack::Saved
                                                     : StateMap::MayLack::Nothing;
  return agreeOn(content->state.initialize(weights ? &*weights : nullptr, content->memory(), mayLack));
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
    return Status::otherState("this one has " + difference);
  for (const StateTensor &tensor : content->state.tensors()) {
    if (tensor.state != "constant")
      continue;
    const TensorView *stored = weights ? weights->find(tensor.fileKey(tensor.name)) : nullptr;
    std::vector<char> shared(static_cast<size_t>(tensor.bytes()));
    if (Status status = content->state.read(tensor, content->access(), shared.data()); !status.ok())
      return status;
    bool same = stored && stored->bytes == tensor.bytes() && stored->dtype == tensor.dtype &&
                std::memcmp(stored->data, shared.data(), shared.size()) == 0;
    if (!same)
      return Status::otherState("constant '" + tensor.name + "' " +
                              (stored ? "is another" : "is in no weights file"));
  }
  return content->memory().grow(manifest().arenaBytes, manifest().stateBytes);
}
