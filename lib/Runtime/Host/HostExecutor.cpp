//===- HostExecutor.cpp ---------------------------------------------------===//

#include "spmd/Runtime/Host/HostExecutor.h"
#include "spmd/Runtime/Host/Gemm.h"
#include "spmd/Runtime/Train/CheckIndex.h"
#include "spmd/Runtime/Train/FiniteWatch.h"
#include "spmd/Runtime/Train/Profile.h"

#include <algorithm>
#include <cstring>

using namespace spmd::runtime;

namespace {

/// A command with this rank's pointers.
struct ResolvedCommand {
  const Command *command = nullptr;
  int32_t id = -1;
  KernelFunction kernel = nullptr;
  void *const *pointers = nullptr; ///< in the order of the references
  const Collective *call = nullptr;
  Communicator *communicator = nullptr; ///< this rank's end
  size_t waitStream = 0;                ///< Wait: the stream of the awaited command
  uint64_t waitCount = 0;               ///< and how many of its commands that takes
};

/// One stream of one rank.
struct Stream {
  std::vector<ResolvedCommand> commands;
  Progress done; ///< commands completed since the executor was made
  std::thread thread;
};

struct Rank {
  int64_t number = 0;
  std::vector<int64_t> coordinates;
  std::vector<void *> pointers; ///< storage of all ResolvedCommand::pointers
  std::vector<std::unique_ptr<Stream>> streams;
  std::unique_ptr<WorkerPool> pool;       ///< of the first stream
  std::unique_ptr<WorkerPool> inlinePool; ///< one thread: for other streams
};

class HostExecutor final : public Executor {
public:
  HostExecutor(const Artifact &artifact, const RanksHere &here, AbortState &abort, const ExecutorOptions &options);
  ~HostExecutor() override { shutdown(); }

  Status connect(CommunicatorFactory &factory);
  Status resolve(const KernelLibrary &kernels, const RankMemory &memory);
  void start();

  Status step() override;
  // A step is done when step() returns. Takes no lock, for processes that were forked.
  Status wait() override { return abort.isRaised() ? abort.status() : Status::success(); }
  std::vector<RankPosition> positions() const override;
  bool shutdown() override;

private:
  void streamLoop(Rank &rank, size_t stream);
  Status runStream(Rank &rank, size_t stream, uint64_t step);
  Status runCommand(Rank &rank, size_t stream, const ResolvedCommand &item, uint64_t step);
  Status runKernel(Rank &rank, const ResolvedCommand &item, const KernelCommand &kernel, WorkerPool &pool);
  Status injectFault(const Rank &rank, const ResolvedCommand &item);
  Status noProgress() const;
  uint64_t totalProgress() const;

  const Artifact &artifact;
  RanksHere here;
  ExecutorOptions options;
  Clock::duration timeout;
  int64_t numThreads; ///< of all ranks here, all streams
  int spins, callerSpins;
  AbortState &abort;
  std::vector<Collective> calls; ///< by command
  std::vector<std::unique_ptr<CommunicatorGroup>> communicators;
  std::vector<Rank> ranks;              ///< those here
  const Emulation *emulation = nullptr; ///< of kernels for GPUs
  Progress threadsReady;
  Progress stepsStarted;
  Progress streamsFinished; ///< streams that have ended a step, all ranks
  AbortState closing;
  std::atomic<uint64_t> steps{0};
  uint64_t activeStreams = 0;
  std::atomic<uint64_t> threadsAlive{0};
};

} // namespace

/// Gives the calling thread what the GEMMs of a stream need.
static void prepareForGemms(const Plan &plan, size_t stream) {
  for (DType dtype : kDTypes)
    if (std::any_of(plan.commands.begin(), plan.commands.end(), [&](const Command &command) {
          const auto *gemm = command.as<GemmCommand>();
          return gemm && gemm->dtype == dtype && static_cast<size_t>(command.stream) == stream;
        }))
      prepareGemmThread(dtype);
}

HostExecutor::HostExecutor(const Artifact &artifact, const RanksHere &here, AbortState &abort,
                           const ExecutorOptions &options)
    : artifact(artifact), here(here), options(options),
      timeout(std::chrono::duration_cast<Clock::duration>(options.timeout)), abort(abort),
      ranks(static_cast<size_t>(here.count)) {
  int64_t perRank = std::max<int64_t>(1, options.threads / here.count);
  // Streams are threads too: those of the collectives must not spin the
  // computing ones off their cores.
  std::vector<bool> used(artifact.plan.streams.size());
  for (const Command &command : artifact.plan.commands)
    used[static_cast<size_t>(command.stream)] = true;
  int64_t streams = std::count(used.begin(), used.end(), true);
  numThreads = (perRank + streams - 1) * here.count;
  spins = spinsFor(numThreads);
  int poolSpins = spinsFor(perRank * here.count);
  callerSpins = spinsFor(numThreads + 1);
  for (size_t i = 0; i < ranks.size(); ++i) {
    Rank &rank = ranks[i];
    rank.number = here.first + static_cast<int64_t>(i);
    rank.coordinates = artifact.manifest.coordinatesOf(rank.number);
    rank.pool = std::make_unique<WorkerPool>(perRank, poolSpins, "rank" + std::to_string(rank.number) + " worker",
                                             [this] { prepareForGemms(this->artifact.plan, 0); });
    rank.inlinePool = std::make_unique<WorkerPool>(1, 0, "");
    for (size_t s = 0; s < artifact.plan.streams.size(); ++s)
      rank.streams.push_back(std::make_unique<Stream>());
  }
}

Status HostExecutor::connect(CommunicatorFactory &factory) {
  CommunicatorOptions wanted;
  wanted.timeout = timeout;
  wanted.threads = numThreads;
  const Plan &plan = artifact.plan;
  for (size_t i = 0; i < plan.communicators.size(); ++i) {
    RankGroups groups = artifact.manifest.groupsAlong(plan.axesOf(static_cast<int32_t>(i)));
    Expected<std::unique_ptr<CommunicatorGroup>> group =
        factory.make(plan.communicators[i], here, groups, abort, wanted);
    if (!group)
      return group.error();
    communicators.push_back(std::move(*group));
  }
  calls = collectivesOf(plan, artifact.traceHash);
  return Status::success();
}

Status HostExecutor::resolve(const KernelLibrary &kernels, const RankMemory &memory) {
  emulation = kernels.emulation();
  if (options.finite)
    options.finite->setKernels(kernels.table());
  const Plan &plan = artifact.plan;
  size_t numRefs = 0;
  for (const Command &command : plan.commands)
    numRefs += command.refs.size();
  for (Rank &rank : ranks) {
    rank.pointers.reserve(numRefs); // pointers into it are kept
    std::vector<uint64_t> position(plan.commands.size());
    for (size_t id = 0; id < plan.commands.size(); ++id) {
      const Command &command = plan.commands[id];
      Stream &stream = *rank.streams[static_cast<size_t>(command.stream)];
      ResolvedCommand item;
      item.command = &command;
      item.id = static_cast<int32_t>(id);
      item.pointers = rank.pointers.data() + rank.pointers.size();
      for (const Ref &ref : command.refs)
        rank.pointers.push_back(memory.addressOf(rank.number, plan.buffers[static_cast<size_t>(ref.buffer)].offset +
                                                                  ref.offsetAt(rank.coordinates)));
      if (const auto *kernel = command.as<KernelCommand>()) {
        item.kernel = kernels.find(kernel->symbol);
        if (!item.kernel)
          return Status::badInput("the kernels for " + kernels.cpu() + " have no symbol '" + kernel->symbol +
                                  "', which command " + std::to_string(id) + " launches");
      }
      if (const auto *collective = command.as<CollectiveCommand>()) {
        item.call = &calls[id];
        item.communicator = &communicators[static_cast<size_t>(collective->communicator)]->endpoint(rank.number);
      }
      if (const auto *wait = command.as<WaitCommand>()) {
        auto awaited = static_cast<size_t>(wait->awaited);
        item.waitStream = static_cast<size_t>(plan.commands[awaited].stream);
        item.waitCount = position[awaited] + 1;
      }
      position[id] = stream.commands.size();
      stream.commands.push_back(item);
    }
  }
  return Status::success();
}

void HostExecutor::start() {
  for (Rank &rank : ranks)
    for (size_t s = 0; s < rank.streams.size(); ++s) {
      Stream &stream = *rank.streams[s];
      if (stream.commands.empty())
        continue;
      ++activeStreams;
      ++threadsAlive;
      stream.thread = std::thread([this, &rank, s] {
        setThreadName("rank" + std::to_string(rank.number) + " " + artifact.plan.streams[s]);
        prepareForGemms(artifact.plan, s);
        threadsReady.advance();
        streamLoop(rank, s);
        --threadsAlive;
      });
    }
  // What threads allocate when they start is not part of a step.
  threadsReady.await(activeStreams, 0, closing);
}

void HostExecutor::streamLoop(Rank &rank, size_t stream) {
  for (uint64_t step = 0;; ++step) {
    stepsStarted.awaitAdvance(step + 1, spins);
    if (closing.isRaised())
      return;
    Status status = runStream(rank, stream, step);
    if (!status.ok())
      abort.fail(std::move(status));
    if (stream == 0)
      rank.pool->rest();
    streamsFinished.advance();
  }
}

Status HostExecutor::runStream(Rank &rank, size_t stream, uint64_t step) {
  Stream &self = *rank.streams[stream];
  for (const ResolvedCommand &item : self.commands) {
    if (abort.isRaised())
      return abort.status();
    int64_t begin = options.profile ? Profile::now() : 0;
    if (rank.number == options.fault.rank && item.id == options.fault.command &&
        options.fault.kind != Fault::Kind::None) {
      if (Status status = injectFault(rank, item); !status.ok())
        return status;
    } else if (Status status = runCommand(rank, stream, item, step); !status.ok()) {
      return status;
    }
    if (options.finite)
      options.finite->look(item.id, rank.number, item.pointers);
    if (options.profile)
      options.profile->record(rank.number, static_cast<int64_t>(stream), {item.id, begin, Profile::now()});
    self.done.advance();
  }
  return Status::success();
}

Status HostExecutor::injectFault(const Rank &rank, const ResolvedCommand &item) {
  if (options.fault.kind == Fault::Kind::Skip)
    return Status::success();
  while (options.fault.kind == Fault::Kind::Stall && !abort.isRaised())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (abort.isRaised())
    return abort.status();
  return exitedOnPurpose(rank.number, item.id, *item.command);
}

Status HostExecutor::runKernel(Rank &rank, const ResolvedCommand &item, const KernelCommand &kernel, WorkerPool &pool) {
  struct Launch {
    const ResolvedCommand &item;
    const int64_t *coordinates;
  } launch{item, rank.coordinates.data()};
  // Races between blocks are found among those of one call.
  bool isWhole = emulation && emulation->isChecked();
  pool.parallelFor(
      kernel.parallel, isWhole ? kernel.parallel : kernel.grain,
      [](void *context, int64_t begin, int64_t end) {
        const Launch &launch = *static_cast<Launch *>(context);
        launch.item.kernel(launch.item.pointers, launch.coordinates, begin, end);
      },
      &launch);
  const char *message = emulation ? emulation->error() : nullptr;
  if (!message)
    return Status::success();
  // The ranks share the emulator: the one whose launch it was reports it.
  while (emulation->failedArguments() != item.pointers && !abort.isRaised())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (abort.isRaised())
    return abort.status();
  return Status::failed("rank " + std::to_string(rank.number) + ", command " + std::to_string(item.id) + " (" +
                            item.command->describe() + "): " + message,
                        static_cast<int32_t>(rank.number), item.id, item.command->location);
}

static Epilogue epilogueOf(const GemmShape &gemm, void *const *pointers) {
  auto pointerTo = [&](int32_t ref) { return ref < 0 ? nullptr : static_cast<const float *>(pointers[ref]); };
  return {pointerTo(gemm.bias), pointerTo(gemm.residual), gemm.ldc, gemm.strideC};
}

static void runGemmCommand(const GemmCommand &gemm, void *const *pointers, WorkerPool &pool) {
  const GemmShape &g = gemm.shape;
  if (g.readsPreActivation())
    runGemmGeluBackward(gemm, pointers[0], pointers[1], pointers[g.preActivation], pointers[2], pool);
  else
    runGemm(gemm, pointers[0], pointers[1], pointers[2], epilogueOf(g, pointers), pool);
  if (g.biasGradient >= 0)
    runBiasGradient(gemm, pointers[0], pointers[1], pointers[2], pointers[g.biasGradient]);
}

Status HostExecutor::runCommand(Rank &rank, size_t stream, const ResolvedCommand &item, uint64_t step) {
  const Command &command = *item.command;
  WorkerPool &pool = stream == 0 ? *rank.pool : *rank.inlinePool;
  return command.visit([&](const KernelCommand &kernel) { return runKernel(rank, item, kernel, pool); },
                       [&](const GemmCommand &gemm) {
                         runGemmCommand(gemm, item.pointers, pool);
                         return Status::success();
                       },
                       [&](const CollectiveCommand &) {
                         return item.communicator->run(*item.call, item.pointers, nullptr);
                       },
                       [&](const WaitCommand &) {
                         Stream &other = *rank.streams[item.waitStream];
                         uint64_t target = step * other.commands.size() + item.waitCount;
                         return other.done.await(target, spins, abort) == WaitResult::Aborted ? abort.status()
                                                                                              : Status::success();
                       },
                       [&](const CopyCommand &copy) {
                         std::memcpy(item.pointers[1], item.pointers[0], static_cast<size_t>(copy.bytes));
                         return Status::success();
                       },
                       [&](const FillCommand &fill) {
                         std::memset(item.pointers[0], fill.value, static_cast<size_t>(fill.bytes));
                         return Status::success();
                       },
                       [&](const CheckIndexCommand &check) {
                         return runCheckIndex(check, item.id, command.location, rank.number, item.pointers[0]);
                       });
}

uint64_t HostExecutor::totalProgress() const {
  uint64_t total = 0;
  for (const Rank &rank : ranks)
    for (const std::unique_ptr<Stream> &stream : rank.streams)
      total += stream->done.value();
  return total;
}

std::vector<RankPosition> HostExecutor::positions() const {
  std::vector<RankPosition> all;
  for (const Rank &rank : ranks) {
    RankPosition &position = all.emplace_back();
    position.rank = rank.number;
    for (const std::unique_ptr<Stream> &stream : rank.streams) {
      auto size = static_cast<int64_t>(stream->commands.size());
      uint64_t before = steps ? (steps - 1) * stream->commands.size() : 0;
      auto finished = static_cast<int64_t>(stream->done.value() - before);
      position.streams.push_back({finished, std::min(size, steps ? finished + 1 : 0), /*isExact=*/true});
    }
  }
  return all;
}

/// Names a rank that hangs: one in a command that waits for nobody, if any.
Status HostExecutor::noProgress() const {
  const Rank *culprit = nullptr;
  const ResolvedCommand *at = nullptr;
  auto waitsForOthers = [](const ResolvedCommand &item) {
    return item.command->is<WaitCommand>() || item.command->is<CollectiveCommand>();
  };
  for (const Rank &rank : ranks)
    for (const std::unique_ptr<Stream> &stream : rank.streams) {
      uint64_t done = stream->done.value() - (steps - 1) * stream->commands.size();
      if (done >= stream->commands.size())
        continue;
      const ResolvedCommand &item = stream->commands[done];
      if (!at || (waitsForOthers(*at) && !waitsForOthers(item))) {
        culprit = &rank;
        at = &item;
      }
    }
  return madeNoProgress(here, options.timeout.count(), culprit ? culprit->number : -1, at ? at->id : -1,
                        at ? at->command : nullptr);
}

Status HostExecutor::step() {
  if (abort.isRaised())
    return abort.status();
  ++steps;
  stepsStarted.advance();
  uint64_t target = steps * activeStreams;
  // Collectives time out by themselves and name the culprit best, so the
  // watchdog for everything else waits a little longer.
  auto patience = timeout + timeout / 4 + std::chrono::milliseconds(200);
  AbortState never;
  uint64_t lastProgress = totalProgress();
  Clock::time_point lastChange = Clock::now();
  for (;;) {
    auto slice = std::chrono::milliseconds(100);
    if (streamsFinished.await(target, callerSpins, never, Clock::now() + slice) == WaitResult::Reached)
      return abort.isRaised() ? abort.status() : Status::success();
    uint64_t progress = totalProgress();
    if (progress != lastProgress) {
      lastProgress = progress;
      lastChange = Clock::now();
    }
    if (Clock::now() - lastChange > patience) {
      // The first time this ends all waits; the second time a rank is stuck
      // where nothing reaches it, and is left behind.
      if (abort.isRaised())
        return abort.status();
      abort.fail(noProgress());
      lastChange = Clock::now();
      patience = std::chrono::seconds(1);
    }
  }
}

bool HostExecutor::shutdown() {
  closing.fail(Status::failed("closed"));
  stepsStarted.advance();
  // Threads in a step that failed end on their own; one in a kernel that never
  // returns does not.
  for (int i = 0; i < 400 && threadsAlive > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (threadsAlive > 0)
    return false;
  for (Rank &rank : ranks)
    for (std::unique_ptr<Stream> &stream : rank.streams)
      if (stream->thread.joinable())
        stream->thread.join();
  return true;
}

Expected<std::unique_ptr<Executor>>
spmd::runtime::makeHostExecutor(const Artifact &artifact, const KernelLibrary &kernels, const RankMemory &memory,
                                CommunicatorFactory &communicators, AbortState &abort, const ExecutorOptions &options) {
  auto executor = std::make_unique<HostExecutor>(artifact, memory.ranks(), abort, options);
  if (Status status = executor->connect(communicators); !status.ok())
    return status;
  if (Status status = executor->resolve(kernels, memory); !status.ok())
    return status;
  executor->start();
  return std::unique_ptr<Executor>(std::move(executor));
}
