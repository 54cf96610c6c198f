//===- CApi.cpp - spmd.h over Trainer -------------------------------------===//

#include "Handles.h"
#include "spmd/Runtime/Core/Cpu.h"
#include "spmd/Runtime/Cuda/CudaBackend.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Process/Join.h"
#include "spmd/Runtime/Train/Registry.h"

#include <algorithm>
#include <exception>

using namespace spmd::runtime;

struct spmd_processes {
  std::shared_ptr<CommunicatorFactory> factory;
  AbortState abort;
};

static spmd_options getDefaults() {
  spmd_options options = {};
  options.timeout_seconds = TrainerOptions().timeoutSeconds;
  return options;
}

void spmd_options_init_sized(spmd_options *options, size_t size) { initSized(options, size, getDefaults()); }

/// Registers all that this build has.
static Expected<Launch> registerAll(const spmd_launch *launch, TrainerOptions &options) {
  registerHost();
  registerCuda();
  LaunchOptions chosen;
  if (launch) {
    std::optional<spmd_launch> known = readSized(launch, spmd_launch{});
    if (!known)
      return Status::badInput(
          "a launch is a spmd_launch whose size is set (spmd_launch launch = {.size = sizeof launch}), "
          "without members that this version does not know");
    chosen.launcher = textOrEmpty(known->launcher);
    chosen.address = textOrEmpty(known->address);
    if (known->world_size) {
      chosen.rank = known->rank;
      chosen.world = known->world_size;
    }
  }
  return joinJob(chosen, options);
}

static std::chrono::steady_clock::duration toDuration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

int32_t spmd_join(const spmd_launch *launch, double timeout_seconds, spmd_processes **processes, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    if (!processes)
      return Status::badInput("spmd_join: processes must be given");
    *processes = nullptr;
    TrainerOptions options;
    Expected<Launch> joined = registerAll(launch, options);
    if (!joined)
      return joined.error();
    Expected<std::shared_ptr<CommunicatorFactory>> factory =
        makeCommunicators(joined->isAlone() ? "threads" : options.communicators, toDuration(timeout_seconds));
    if (!factory)
      return factory.error();
    *processes = new spmd_processes{std::move(*factory), {}};
    return Status::success();
  });
}

void spmd_leave(spmd_processes *processes) { delete processes; }

int64_t spmd_process(const spmd_processes *processes) { return processes->factory->process(); }

int64_t spmd_num_processes(const spmd_processes *processes) { return processes->factory->numProcesses(); }

int32_t spmd_gather(spmd_processes *processes, const void *mine, size_t bytes, void *all, double patience_seconds,
                    spmd_status *status) {
  return guarded(status, [&] {
    auto patience = patience_seconds > 0 ? toDuration(patience_seconds) : std::chrono::steady_clock::duration::max();
    return processes->factory->gather(mine, static_cast<int64_t>(bytes), all, processes->abort, patience);
  });
}

int32_t spmd_share(spmd_processes *processes, int64_t from, void *data, size_t bytes, spmd_status *status) {
  return guarded(status, [&] {
    if (from < 0 || from >= processes->factory->numProcesses())
      return missing("process", static_cast<size_t>(from), static_cast<size_t>(processes->factory->numProcesses()));
    return processes->factory->share(from, data, static_cast<int64_t>(bytes), processes->abort);
  });
}

int32_t spmd_load(const char *artifact, const spmd_options *options, spmd_trainer **trainer, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    if (!trainer || !artifact)
      return Status::badInput("spmd_load: artifact and trainer must be given");
    *trainer = nullptr;
    TrainerOptions chosen;
    const spmd_launch *launch = nullptr;
    if (options) {
      std::optional<spmd_options> known = readSized(options, getDefaults());
      if (!known)
        return Status::badInput("spmd_load: options were not made by spmd_options_init, or have members that this "
                                "version does not know");
      chosen.ranks = known->ranks;
      chosen.threads = known->threads;
      chosen.timeoutSeconds = known->timeout_seconds;
      chosen.weights = textOrEmpty(known->weights);
      chosen.device.cpu = textOrEmpty(known->cpu);
      chosen.fault = textOrEmpty(known->fault);
      chosen.profile = known->profile != 0;
      chosen.isWrittenNext = known->written_next != 0;
      chosen.flightRecord = textOrEmpty(known->flight_record);
      chosen.shares = known->shares ? known->shares->trainer.get() : nullptr;
      if (known->batch != SPMD_BATCH_OF_JOB && known->batch != SPMD_BATCH_OF_PROCESS)
        return Status::badInput("spmd_load: batch is " + std::to_string(known->batch) +
                                ", expected SPMD_BATCH_OF_PROCESS or SPMD_BATCH_OF_JOB");
      chosen.batch = known->batch == SPMD_BATCH_OF_PROCESS ? BatchOf::Process : BatchOf::Job;
      launch = known->launch;
    }
    if (Expected<Launch> joined = registerAll(launch, chosen); !joined)
      return joined.error();
    Expected<std::unique_ptr<Trainer>> loaded = Trainer::load(artifact, chosen);
    if (!loaded)
      return loaded.error();
    auto handle = std::make_unique<spmd_trainer>();
    handle->trainer = std::move(*loaded);
    const Trainer &made = *handle->trainer;
    handle->inputs.resize(made.manifest().batch.size());
    handle->places.resize(made.manifest().batch.size());
    const std::vector<Command> &commands = made.artifact().plan.commands;
    for (size_t i = 0; i < commands.size(); ++i)
      if (commands[i].is<CollectiveCommand>())
        handle->collectives.push_back(i);
    *trainer = handle.release();
    return Status::success();
  });
}

void spmd_close(spmd_trainer *trainer) { delete trainer; }

int64_t spmd_ranks(const spmd_trainer *trainer) { return trainer->trainer->manifest().ranks; }

int64_t spmd_threads(const spmd_trainer *trainer) { return trainer->trainer->threads(); }

int64_t spmd_arena_bytes(const spmd_trainer *trainer) { return trainer->trainer->manifest().arenaBytes; }

// The names are literals.
const char *spmd_native_cpu() { return getNativeCpu().empty() ? "" : getNativeCpu().data(); }

const char *spmd_cpu(const spmd_trainer *trainer) { return trainer->trainer->device().kernels().c_str(); }

size_t spmd_num_warnings(const spmd_trainer *trainer) { return trainer->trainer->warnings().size(); }

const char *spmd_warning(const spmd_trainer *trainer, size_t index) {
  const std::vector<std::string> &all = trainer->trainer->warnings();
  return index < all.size() ? all[index].c_str() : nullptr;
}

const char *spmd_describe_flight(const spmd_trainer *trainer) {
  trainer->flight = trainer->trainer->describeFlight();
  return trainer->flight.c_str();
}

const char *spmd_result_tree(const spmd_trainer *trainer) { return trainer->trainer->manifest().resultTree.c_str(); }

size_t spmd_num_inputs(const spmd_trainer *trainer) { return trainer->trainer->manifest().batch.size(); }

int32_t spmd_input(const spmd_trainer *trainer, size_t index, spmd_tensor_info *info, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    const auto &all = trainer->trainer->manifest().batch;
    if (index >= all.size())
      return missing("input", index, all.size());
    return describe(all[index].name, "batch", all[index].dtype, all[index].shape, 0, info);
  });
}

size_t spmd_num_outputs(const spmd_trainer *trainer) { return trainer->trainer->manifest().outputs.size(); }

int32_t spmd_output(const spmd_trainer *trainer, size_t index, spmd_tensor_info *info, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    const auto &all = trainer->trainer->manifest().outputs;
    if (index >= all.size())
      return missing("output", index, all.size());
    return describe(all[index].path, nameOf(all[index].kind), all[index].dtype, all[index].shape, 0, info);
  });
}

size_t spmd_num_hypers(const spmd_trainer *trainer) { return trainer->trainer->manifest().hyper.size(); }

int32_t spmd_hyper(const spmd_trainer *trainer, size_t index, spmd_hyper_info *info, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    const auto &all = trainer->trainer->manifest().hyper;
    if (index >= all.size())
      return missing("hyper-parameter", index, all.size());
    spmd_hyper_info filled = {};
    filled.name = all[index].name.c_str();
    filled.group = all[index].group;
    filled.value = trainer->trainer->hyperValue(index);
    return fillInfo(info, filled, "spmd_hyper_info");
  });
}

size_t spmd_num_tensors(const spmd_trainer *trainer) { return trainer->trainer->state().tensors().size(); }

int32_t spmd_tensor_at(const spmd_trainer *trainer, size_t index, spmd_tensor_info *info, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    const auto &all = trainer->trainer->state().tensors();
    if (index >= all.size())
      return missing("tensor", index, all.size());
    return describe(all[index].name, all[index].state.c_str(), all[index].dtype, all[index].shape,
                    all[index].aliases.size(), info);
  });
}

const char *spmd_tensor_alias(const spmd_trainer *trainer, size_t index, size_t alias) {
  const auto &all = trainer->trainer->state().tensors();
  if (index >= all.size() || alias >= all[index].aliases.size())
    return nullptr;
  return all[index].aliases[alias].c_str();
}

int32_t spmd_tensor_is_saved(const spmd_trainer *trainer, size_t index) {
  const auto &all = trainer->trainer->state().tensors();
  return index < all.size() && all[index].isSaved();
}

size_t spmd_num_collectives(const spmd_trainer *trainer) { return trainer->collectives.size(); }

int32_t spmd_collective(const spmd_trainer *trainer, size_t index, spmd_collective_info *info, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    if (index >= trainer->collectives.size())
      return missing("collective", index, trainer->collectives.size());
    const Plan &plan = trainer->trainer->artifact().plan;
    const Command &command = plan.commands[trainer->collectives[index]];
    const auto *collective = command.as<CollectiveCommand>();
    spmd_collective_info filled = {};
    filled.op = nameOf(command);
    filled.communicator = plan.communicators[static_cast<size_t>(collective->communicator)].c_str();
    filled.unit = collective->unit.c_str();
    filled.location = command.location.c_str();
    filled.command = static_cast<int32_t>(trainer->collectives[index]);
    filled.bytes = command.sentBytes();
    return fillInfo(info, filled, "spmd_collective_info");
  });
}

size_t spmd_num_commands(const spmd_trainer *trainer) { return trainer->trainer->artifact().plan.commands.size(); }

int32_t spmd_command(const spmd_trainer *trainer, int64_t rank, size_t index, spmd_command_info *info,
                     spmd_status *status) {
  return guarded(status, [&]() -> Status {
    const Artifact &artifact = trainer->trainer->artifact();
    if (index >= artifact.plan.commands.size())
      return missing("command", index, artifact.plan.commands.size());
    if (rank < 0 || rank >= artifact.manifest.ranks)
      return missing("rank", static_cast<size_t>(rank), static_cast<size_t>(artifact.manifest.ranks));
    const Command &command = artifact.plan.commands[index];
    const Profile *profile = trainer->trainer->profile();
    Profile::Span span;
    if (profile)
      span = profile->latest(rank, static_cast<int32_t>(index));
    const auto *kernel = command.as<KernelCommand>();
    spmd_command_info filled = {};
    filled.op = nameOf(command);
    filled.kernel = kernel ? kernel->symbol.c_str() : "";
    filled.location = command.location.c_str();
    filled.stream = command.stream;
    filled.bytes = bytesOf(artifact, command);
    filled.flops = flopsOf(command);
    filled.begin_nanoseconds = span.begin;
    filled.end_nanoseconds = span.end;
    return fillInfo(info, filled, "spmd_command_info");
  });
}

int32_t spmd_set_hyper(spmd_trainer *trainer, const char *name, int64_t group, double value, spmd_status *status) {
  return guarded(status, [&] { return trainer->trainer->setHyper(textOrEmpty(name), group, value); });
}

int32_t spmd_read_output(const spmd_trainer *trainer, size_t index, void *data, size_t bytes, spmd_status *status) {
  return guarded(status, [&] { return trainer->trainer->readOutput(index, data, bytes); });
}

int32_t spmd_read_tensor(const spmd_trainer *trainer, const char *state, const char *name, void *data, size_t bytes,
                         spmd_status *status) {
  return guarded(status,
                 [&] { return trainer->trainer->readTensor(textOrEmpty(state), textOrEmpty(name), data, bytes); });
}

int32_t spmd_write_tensor(spmd_trainer *trainer, const char *state, const char *name, const void *data, size_t bytes,
                          spmd_status *status) {
  return guarded(status,
                 [&] { return trainer->trainer->writeTensor(textOrEmpty(state), textOrEmpty(name), data, bytes); });
}

int32_t spmd_save(const spmd_trainer *trainer, const char *path, int32_t with_optimizer, spmd_status *status) {
  return guarded(status, [&] { return trainer->trainer->saveAlone(textOrEmpty(path), with_optimizer != 0); });
}

int32_t spmd_reads_alone(const spmd_trainer *trainer) { return trainer->trainer->readsAlone(); }

/// What a rank has of tensors; of a sum no rank has a part.
static std::vector<StatePiece> shardsOf(const Trainer &trainer, int64_t rank) {
  std::vector<StatePiece> pieces = trainer.piecesToSave(rank);
  pieces.erase(
      std::remove_if(pieces.begin(), pieces.end(), [](const StatePiece &piece) { return piece.tensor->entry->isSum; }),
      pieces.end());
  return pieces;
}

/// Calls body(piece) for a piece of a rank here.
template <typename Body>
static Status withShard(const Trainer &trainer, int64_t rank, size_t index, const Body &body) {
  const RanksHere &ranks = trainer.ranks();
  if (!ranks.has(rank))
    return Status::badInput("rank " + std::to_string(rank) + " is not in this process, which has ranks " +
                            std::to_string(ranks.first) + " to " + std::to_string(ranks.end() - 1));
  std::vector<StatePiece> pieces = shardsOf(trainer, rank);
  return index < pieces.size() ? body(pieces[index]) : missing("shard", index, pieces.size());
}

int32_t spmd_num_shards(const spmd_trainer *trainer, int64_t rank, size_t *count, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    if (!trainer->trainer->ranks().has(rank))
      return withShard(*trainer->trainer, rank, 0, [](const StatePiece &) { return Status::success(); });
    std::vector<StatePiece> pieces = shardsOf(*trainer->trainer, rank);
    *count = pieces.size();
    for (const StatePiece &piece : pieces)
      if (!piece.isOneRun())
        return Status::badInput("what rank " + std::to_string(rank) + " has of '" + piece.tensor->name +
                                "' along the tensor axis is no run of its elements; take whole tensors (kind full)");
    return Status::success();
  });
}

int32_t spmd_shard(const spmd_trainer *trainer, int64_t rank, size_t index, spmd_shard_info *info,
                   spmd_status *status) {
  return guarded(status, [&] {
    return withShard(*trainer->trainer, rank, index, [&](const StatePiece &piece) {
      spmd_shard_info filled = {};
      filled.name = piece.tensor->name.c_str();
      filled.state = piece.tensor->state.c_str();
      filled.dtype = static_cast<int32_t>(piece.tensor->dtype);
      filled.first = piece.runs.front().first;
      filled.count = piece.count();
      return fillInfo(info, filled, "spmd_shard_info");
    });
  });
}

int32_t spmd_read_shard(const spmd_trainer *trainer, int64_t rank, size_t index, void *data, size_t bytes,
                        spmd_status *status) {
  return guarded(status, [&] {
    return withShard(*trainer->trainer, rank, index, [&](const StatePiece &piece) {
      int64_t needed = piece.count() * sizeOf(piece.tensor->dtype);
      if (static_cast<size_t>(needed) != bytes)
        return Status::badInput("the shard has " + std::to_string(needed) + " bytes, the caller's buffer " +
                                std::to_string(bytes));
      return trainer->trainer->readPiece(rank, piece, data);
    });
  });
}
