//===- ToyExecutor.cpp - Steps that run behind the caller -----------------===//

#include "ToyBackend.h"
#include "ToyMemory.h"
#include "ToyStream.h"
#include "spmd/Runtime/Host/Gemm.h"
#include "spmd/Runtime/Host/Progress.h"
#include "spmd/Runtime/Train/CheckIndex.h"
#include "spmd/Runtime/Train/Profile.h"

#include <cstring>

using namespace toy;
using namespace spmd::runtime;

namespace {

/// A command of the rank here.
struct Resolved {
  const Command *command;
  int32_t id;
  std::vector<void *> addresses; ///< the device's
  std::vector<void *> pointers;  ///< what is behind them
  KernelFunction kernel = nullptr;
  Collective call;
  size_t awaitedStream = 0;
  uint64_t awaitedCount = 0; ///< commands of a step
};

class ToyExecutor final : public Executor {
public:
  ToyExecutor(const Artifact &artifact, ToyMemory &memory, AbortState &abort, const ExecutorOptions &options)
      : artifact(artifact), memory(memory), abort(abort), options(options), rank(memory.ranks().first),
        coordinates(artifact.manifest.coordinatesOf(rank)), commandsOf(artifact.plan.streams.size()), pool(1, 0, "") {
    memory.addUser(this);
  }
  ~ToyExecutor() override {
    shutdown();
    memory.removeUser(this);
    streams.clear();
  }

  Status prepare(const KernelLibrary &kernels, CommunicatorFactory &factory);
  Status step() override;
  Status wait() override;
  bool shutdown() override {
    (void)wait(); // a failure ends what waits
    return true;
  }

private:
  void issue(const Resolved &item);
  void issueCollective(const Resolved &item, const CollectiveCommand &collective, ToyStream &stream);
  Status run(const Resolved &item, uint64_t step);
  void runBlocked(const Resolved &item, const GemmCommand &gemm);
  Status injectFault(const Resolved &item);
  Status noticed(Status status);
  Status noProgress() const;

  const Artifact &artifact;
  ToyMemory &memory;
  AbortState &abort;
  ExecutorOptions options;
  int64_t rank;
  std::vector<int64_t> coordinates;
  std::vector<std::unique_ptr<CommunicatorGroup>> communicators;
  std::vector<Resolved> commands;
  std::vector<std::vector<size_t>> commandsOf;     ///< of each stream
  std::vector<std::unique_ptr<Progress>> finished; ///< commands of each stream, of all steps
  std::vector<int64_t> begin;                      ///< of the command that a stream is at
  std::vector<std::unique_ptr<ToyStream>> streams;
  uint64_t steps = 0;
  WorkerPool pool; ///< the calling thread alone
};

} // namespace

Status ToyExecutor::prepare(const KernelLibrary &kernels, CommunicatorFactory &factory) {
  const Plan &plan = artifact.plan;
  CommunicatorOptions wanted;
  wanted.timeout = std::chrono::duration_cast<Clock::duration>(options.timeout);
  for (size_t i = 0; i < plan.communicators.size(); ++i) {
    RankGroups groups = artifact.manifest.groupsAlong(plan.axesOf(static_cast<int32_t>(i)));
    Expected<std::unique_ptr<CommunicatorGroup>> group =
        factory.make(plan.communicators[i], memory.ranks(), groups, abort, wanted);
    if (!group)
      return group.error();
    communicators.push_back(std::move(*group));
  }
  std::vector<Collective> calls = collectivesOf(plan, artifact.traceHash);
  std::vector<uint64_t> position(plan.commands.size());
  for (size_t id = 0; id < plan.commands.size(); ++id) {
    const Command &command = plan.commands[id];
    Resolved item;
    item.command = &command;
    item.id = static_cast<int32_t>(id);
    for (const Ref &ref : command.refs) {
      int64_t offset = plan.buffers[static_cast<size_t>(ref.buffer)].offset + ref.offsetAt(coordinates);
      item.addresses.push_back(memory.addressOf(rank, offset));
      item.pointers.push_back(ToyMemory::resolve(item.addresses.back()));
    }
    if (const auto *kernel = command.as<KernelCommand>(); kernel && !(item.kernel = kernels.find(kernel->symbol)))
      return Status::badInput("no kernel '" + kernel->symbol + "'");
    item.call = calls[id];
    if (const auto *wait = command.as<WaitCommand>()) {
      auto awaited = static_cast<size_t>(wait->awaited);
      item.awaitedStream = static_cast<size_t>(plan.commands[awaited].stream);
      item.awaitedCount = position[awaited] + 1;
    }
    std::vector<size_t> &own = commandsOf[static_cast<size_t>(command.stream)];
    position[id] = own.size();
    own.push_back(id);
    commands.push_back(std::move(item));
  }
  begin.resize(plan.streams.size());
  for (size_t i = 0; i < plan.streams.size(); ++i) {
    finished.push_back(std::make_unique<Progress>());
    streams.push_back(std::make_unique<ToyStream>());
  }
  return Status::success();
}

Status ToyExecutor::step() {
  if (abort.isRaised())
    return abort.status();
  for (const Resolved &item : commands)
    issue(item);
  ++steps;
  return Status::success();
}

/// Puts a command on its stream, and behind it that it is done.
void ToyExecutor::issue(const Resolved &item) {
  auto number = static_cast<size_t>(item.command->stream);
  ToyStream &stream = *streams[number];
  if (options.profile)
    stream.issue([this, number] {
      begin[number] = Profile::now();
      return Status::success();
    });
  const Fault &fault = options.fault;
  if (fault.kind != Fault::Kind::None && fault.rank == rank && fault.command == item.id)
    stream.issue([this, &item] { return noticed(injectFault(item)); });
  else if (const auto *collective = item.command->as<CollectiveCommand>())
    issueCollective(item, *collective, stream);
  else
    stream.issue([this, &item, step = steps] { return noticed(abort.isRaised() ? abort.status() : run(item, step)); });
  stream.issue([this, &item, number] {
    if (options.profile)
      options.profile->record(rank, static_cast<int64_t>(number), {item.id, begin[number], Profile::now()});
    finished[number]->advance();
    return Status::success();
  });
}

/// Failures of collectives are found in `abort`.
void ToyExecutor::issueCollective(const Resolved &item, const CollectiveCommand &collective, ToyStream &stream) {
  Communicator &communicator = communicators[static_cast<size_t>(collective.communicator)]->endpoint(rank);
  (void)communicator.run(item.call, item.addresses.data(), &stream);
}

Status ToyExecutor::noticed(Status status) {
  if (!status.ok())
    abort.fail(status);
  return status;
}

Status ToyExecutor::injectFault(const Resolved &item) {
  if (options.fault.kind == Fault::Kind::Skip)
    return Status::success();
  while (options.fault.kind == Fault::Kind::Stall && !abort.isRaised())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return abort.isRaised() ? abort.status() : exitedOnPurpose(rank, item.id, *item.command);
}

void ToyExecutor::runBlocked(const Resolved &item, const GemmCommand &gemm) {
  auto pointerTo = [&](int32_t ref) {
    return ref < 0 ? nullptr : static_cast<const float *>(item.pointers[static_cast<size_t>(ref)]);
  };
  const GemmShape &shape = gemm.shape;
  runGemm(gemm, item.pointers[0], item.pointers[1], item.pointers[2],
          {pointerTo(shape.bias), pointerTo(shape.residual), shape.ldc, shape.strideC}, pool);
}

Status ToyExecutor::run(const Resolved &item, uint64_t step) {
  const Command &command = *item.command;
  Status status = Status::success();
  command.visit(
      [&](const KernelCommand &kernel) { item.kernel(item.pointers.data(), coordinates.data(), 0, kernel.parallel); },
      [&](const GemmCommand &gemm) { runBlocked(item, gemm); },
      [&](const WaitCommand &) {
        finished[item.awaitedStream]->await(step * commandsOf[item.awaitedStream].size() + item.awaitedCount, 0, abort);
        status = abort.status();
      },
      [&](const CopyCommand &copy) {
        std::memcpy(item.pointers[1], item.pointers[0], static_cast<size_t>(copy.bytes));
      },
      [&](const FillCommand &fill) { std::memset(item.pointers[0], fill.value, static_cast<size_t>(fill.bytes)); },
      [&](const CheckIndexCommand &check) {
        status = runCheckIndex(check, item.id, command.location, rank, item.pointers[0]);
      },
      [](const CollectiveCommand &) {}); // their communicator issues them
  return status;
}

Status ToyExecutor::wait() {
  Clock::time_point lastChange = Clock::now();
  auto patience = options.timeout * 1.25 + std::chrono::milliseconds(200);
  for (uint64_t last = 0;;) {
    uint64_t done = 0, issued = 0;
    for (const std::unique_ptr<ToyStream> &stream : streams) {
      issued += stream->issued();
      done += stream->done();
    }
    if (done == issued)
      return abort.status();
    if (done != last)
      lastChange = Clock::now();
    last = done;
    if (Clock::now() - lastChange > patience && !abort.isRaised())
      abort.fail(noProgress());
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Status ToyExecutor::noProgress() const {
  const Resolved *at = nullptr;
  for (size_t i = 0; i < streams.size(); ++i) {
    uint64_t done = finished[i]->value() - (steps - 1) * commandsOf[i].size();
    if (done >= commandsOf[i].size())
      continue;
    const Resolved &item = commands[commandsOf[i][done]];
    if (!at || at->command->is<WaitCommand>() || at->command->is<CollectiveCommand>())
      at = &item;
  }
  return madeNoProgress(memory.ranks(), options.timeout.count(), rank, at ? at->id : -1, at ? at->command : nullptr);
}

Expected<std::unique_ptr<Executor>> toy::makeToyExecutor(const Artifact &artifact, const KernelLibrary &kernels,
                                                         ToyMemory &memory, CommunicatorFactory &communicators,
                                                         AbortState &abort, const ExecutorOptions &options) {
  if (memory.ranks().count != 1)
    return Status::badInput("a toy has one rank");
  auto executor = std::make_unique<ToyExecutor>(artifact, memory, abort, options);
  if (Status status = executor->prepare(kernels, communicators); !status.ok())
    return status;
  return std::unique_ptr<Executor>(std::move(executor));
}
