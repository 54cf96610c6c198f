//===- RankProgram.cpp ----------------------------------------------------===//

#include "RankProgram.h"

#include "GemmParts.h"
#include "spmd/Runtime/Core/Operation.h"
#include "spmd/Runtime/Train/CheckIndex.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace spmd::runtime::cuda {

static Status makeEvent(OwnEvent &event, const std::shared_ptr<const Gpu> &gpu, unsigned flags = kEventDisableTiming) {
  Expected<OwnEvent> made = OwnEvent::make(gpu, flags);
  if (!made)
    return made.error();
  event = std::move(*made);
  return Status::success();
}

Expected<std::unique_ptr<RankProgram>> RankProgram::make(const CudaCode &code, CudaMemory &memory, int64_t rank,
                                                         const std::vector<Collective> &calls,
                                                         const std::vector<std::unique_ptr<CommunicatorGroup>> &groups,
                                                         bool isTimed) {
  std::unique_ptr<RankProgram> program(new RankProgram(code, memory, rank));
  if (Status status = program->device->use(); !status.ok())
    return status;
  if (Status status = program->resolve(calls, groups, isTimed); !status.ok())
    return status;
  return program;
}

Status RankProgram::resolve(const std::vector<Collective> &calls,
                            const std::vector<std::unique_ptr<CommunicatorGroup>> &groups, bool isTimed) {
  const Plan &plan = code.artifact.plan;
  std::vector<int64_t> coordinates = code.artifact.manifest.coordinatesOf(number);
  const CudaKernels &kernels = *code.kernels[memory.ranks().indexOf(number)];
  if (code.cublas) {
    Expected<std::unique_ptr<GemmContext>> made = GemmContext::make(code.cublas, device);
    if (!made)
      return made.error();
    context = std::move(*made);
  }
  if (Status status = makeStreams(); !status.ok())
    return status;
  std::vector<bool> isAwaited(plan.commands.size());
  for (const Command &command : plan.commands)
    if (const auto *wait = command.as<WaitCommand>())
      isAwaited[static_cast<size_t>(wait->awaited)] = true;
  items.resize(plan.commands.size());
  for (size_t id = 0; id < items.size(); ++id) {
    Item &item = items[id];
    const Command &command = plan.commands[id];
    item.command = &command;
    item.id = static_cast<int32_t>(id);
    for (const Ref &ref : command.refs) {
      void *address =
          memory.addressOf(number, plan.buffers[static_cast<size_t>(ref.buffer)].offset + ref.offsetAt(coordinates));
      item.addresses.push_back(reinterpret_cast<Address>(address));
      item.pointers.push_back(address);
    }
    Status status;
    if (const auto *kernel = command.as<KernelCommand>())
      status = resolveKernel(item, kernel->symbol, kernels, coordinates);
    if (const auto *gemm = command.as<GemmCommand>(); gemm && gemm->shape.m && gemm->shape.n && gemm->shape.batch)
      status = makeGemms(item);
    if (const auto *collective = command.as<CollectiveCommand>()) {
      item.call = &calls[id];
      numSets = kWatched;
      item.communicator = &groups[static_cast<size_t>(collective->communicator)]->endpoint(number);
      for (std::array<OwnEvent, kWatched> *events : {&item.begun, &item.done})
        for (OwnEvent &event : *events)
          if (status.ok())
            status = makeEvent(event, device);
    }
    if (command.is<CheckIndexCommand>() && command.refs[0].bytes && status.ok()) {
      Expected<OwnPinned> ids = OwnPinned::make(device, static_cast<size_t>(command.refs[0].bytes));
      if (ids)
        item.ids = std::move(*ids);
      else
        status = ids.error();
    }
    if (const auto *wait = command.as<WaitCommand>())
      item.awaited = items[static_cast<size_t>(wait->awaited)].event.get();
    if (status.ok() && isAwaited[id])
      status = makeEvent(item.event, device);
    if (status.ok() && isTimed)
      status = makeEvent(item.begin, device, kEventDefault);
    if (status.ok() && isTimed)
      status = makeEvent(item.end, device, kEventDefault);
    if (!status.ok()) {
      if (status.command < 0) {
        status.command = item.id;
        status.location = command.location;
        status.rank = static_cast<int32_t>(number);
      }
      return status;
    }
  }
  if (context)
    context->algorithms().save();
  Status status = makeEvent(forked, device);
  if (status.ok()) {
    OutputBlock block = OutputBlock::find(code.artifact.manifest, plan);
    status = ring.make(device, block, reinterpret_cast<Address>(memory.addressOf(number, block.offset)));
  }
  return status.ok() && isTimed ? makeEvent(base, device, kEventDefault) : status;
}

/// Which streams the main stream waits for by the plan's own waits: those whose last command one of these waits for.
static std::vector<bool> findJoined(const Plan &plan) {
  std::vector<int32_t> last(plan.streams.size(), -1);
  for (size_t id = 0; id < plan.commands.size(); ++id)
    last[static_cast<size_t>(plan.commands[id].stream)] = static_cast<int32_t>(id);
  std::vector<bool> isJoined(plan.streams.size());
  isJoined[0] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Command &command : plan.commands) {
      const auto *wait = command.as<WaitCommand>();
      if (!wait || !isJoined[static_cast<size_t>(command.stream)])
        continue;
      auto awaited = static_cast<size_t>(plan.commands[static_cast<size_t>(wait->awaited)].stream);
      if (!isJoined[awaited] && last[awaited] == wait->awaited)
        isJoined[awaited] = changed = true;
    }
  }
  return isJoined;
}

Status RankProgram::makeStreams() {
  const Plan &plan = code.artifact.plan;
  std::vector<bool> isJoined = findJoined(plan);
  streams.resize(plan.streams.size());
  int64_t greatest = 0;
  for (size_t i = 0; i < plan.streams.size(); ++i)
    greatest = std::max(greatest, plan.priorityOf(i));
  for (const Command &command : plan.commands) {
    auto at = static_cast<size_t>(command.stream);
    PlanStream &made = streams[at];
    if (made.stream)
      continue;
    // The first is the main stream, which computes, and which nothing comes after.
    int64_t priority = plan.priorityOf(at);
    Expected<StreamHandle> stream =
        at == 0 ? device->mainStream() : device->makeStream(priority ? greatest - priority : Gpu::kLastPlace);
    if (!stream)
      return stream.error();
    made.stream = std::make_unique<CudaStream>(device, *stream, /*owns=*/at != 0);
    // One that begins with a wait begins after whatever that waits for.
    made.isForked = at != 0 && !command.is<WaitCommand>();
    if (!isJoined[at])
      if (Status status = makeEvent(made.joined, device); !status.ok())
        return status;
  }
  return Status::success();
}

Status RankProgram::makeGemms(Item &item) {
  auto make = [&](const std::vector<GemmPart> &parts) {
    item.gemms.clear();
    for (const GemmPart &part : parts) {
      Expected<std::unique_ptr<CublasGemm>> made = CublasGemm::make(*context, part.command, part.addresses);
      if (!made)
        return made.error();
      item.gemms.push_back(std::move(*made));
    }
    return Status::success();
  };
  GemmPart whole{*item.command, item.addresses};
  std::vector<GemmPart> parts = splitGemm(whole);
  Status status = make(parts);
  return status.ok() || parts.size() == 1 ? status : make({whole}); // the library may have none for a narrow part
}

Status RankProgram::resolveKernel(Item &item, const std::string &symbol, const CudaKernels &kernels,
                                  const std::vector<int64_t> &coordinates) {
  const CudaKernel *kernel = kernels.find(symbol);
  if (!kernel)
    return Status::badInput("the kernels have no symbol '" + symbol + "', which command " + std::to_string(item.id) +
                            " launches");
  const KernelLaunch &launch = *kernel->launch;
  if (launch.pointers != static_cast<int64_t>(item.addresses.size()) ||
      launch.coordinates > static_cast<int64_t>(coordinates.size()))
    return Status::badInput("kernel '" + symbol + "' takes " + std::to_string(launch.pointers) + " addresses and " +
                            std::to_string(launch.coordinates) + " coordinates, and command " +
                            std::to_string(item.id) + " has " + std::to_string(item.addresses.size()) + " and " +
                            std::to_string(coordinates.size()));
  item.kernel = kernel->function;
  auto sizes = [](int64_t total, const std::array<int64_t, 3> *sizes) {
    return sizes ? *sizes : std::array<int64_t, 3>{total, 1, 1};
  };
  std::array<int64_t, 3> grid = sizes(launch.blocks, launch.user ? &launch.user->grid : nullptr);
  std::array<int64_t, 3> block = sizes(launch.threads, launch.user ? &launch.user->block : nullptr);
  auto at = [](const std::array<int64_t, 3> &of, size_t i) { return static_cast<unsigned>(of[i]); };
  item.config = {at(grid, 0),
                 at(grid, 1),
                 at(grid, 2),
                 at(block, 0),
                 at(block, 1),
                 at(block, 2),
                 static_cast<unsigned>(launch.dynamicSharedBytes),
                 streamOf(item),
                 nullptr,
                 0};
  if (launch.user) {
    for (const LaunchParameter &parameter : launch.user->parameters)
      item.values.push_back(parameter.reference >= 0 ? item.addresses[static_cast<size_t>(parameter.reference)]
                                                     : parameter.bits);
  } else {
    item.values.assign(item.addresses.begin(), item.addresses.end());
    for (int64_t i = 0; i < launch.coordinates; ++i)
      item.values.push_back(static_cast<uint64_t>(coordinates[static_cast<size_t>(i)]));
  }
  for (uint64_t &value : item.values)
    item.parameters.push_back(&value);
  return Status::success();
}

RankProgram::~RankProgram() {
  memory.setOutputs(number, OutputBlock(), nullptr, nullptr);
  for (GraphExec graph : graphs)
    if (graph && device->use().ok())
      (void)device->driver().cuGraphExecDestroy(graph);
}

Status RankProgram::fork() {
  const Driver &d = device->driver();
  bool isRecorded = false;
  for (PlanStream &stream : streams) {
    if (!stream.isForked)
      continue;
    if (!std::exchange(isRecorded, true))
      SPMD_CUDA_TRY(d, cuEventRecord, forked.get(), device->mainStream());
    SPMD_CUDA_TRY(d, cuStreamWaitEvent, stream.stream->get(), forked.get(), 0);
  }
  return Status::success();
}

Status RankProgram::joinStreams() {
  const Driver &d = device->driver();
  for (PlanStream &stream : streams) {
    if (!stream.joined)
      continue;
    SPMD_CUDA_TRY(d, cuEventRecord, stream.joined.get(), stream.stream->get());
    SPMD_CUDA_TRY(d, cuStreamWaitEvent, device->mainStream(), stream.joined.get(), 0);
  }
  return Status::success();
}

Status RankProgram::issueItem(Item &item, Recording recording) {
  const Driver &d = device->driver();
  const Command &command = *item.command;
  StreamHandle stream = streamOf(item);
  return command.visit(
      [&](const KernelCommand &) {
        SPMD_CUDA_TRY(d, cuLaunchKernelEx, &item.config, item.kernel, item.parameters.data(), nullptr);
        return Status::success();
      },
      [&](const GemmCommand &) {
        Status status;
        for (size_t i = 0; i < item.gemms.size() && status.ok(); ++i)
          status = item.gemms[i]->issue(stream);
        return status;
      },
      [&](const CollectiveCommand &) {
        CudaStream *on = streams[static_cast<size_t>(command.stream)].stream.get();
        unsigned whenever = recording.isCapturing ? kEventRecordExternal : 0;
        SPMD_CUDA_TRY(d, cuEventRecordWithFlags, item.begun[recording.set].get(), stream, whenever);
        if (Status status = item.communicator->run(*item.call, item.pointers.data(), on); !status.ok())
          return status;
        SPMD_CUDA_TRY(d, cuEventRecordWithFlags, item.done[recording.set].get(), stream, whenever);
        return Status::success();
      },
      [&](const WaitCommand &) {
        SPMD_CUDA_TRY(d, cuStreamWaitEvent, stream, item.awaited, 0);
        return Status::success();
      },
      [&](const CopyCommand &copy) {
        if (copy.bytes)
          SPMD_CUDA_TRY(d, cuMemcpyDtoDAsync, item.addresses[1], item.addresses[0], static_cast<size_t>(copy.bytes),
                        stream);
        return Status::success();
      },
      [&](const FillCommand &fill) {
        if (fill.bytes)
          SPMD_CUDA_TRY(d, cuMemsetD8Async, item.addresses[0], fill.value, static_cast<size_t>(fill.bytes), stream);
        return Status::success();
      },
      [&](const CheckIndexCommand &) { // the host looks when the step is over; kernels read inside whatever it finds
        if (item.ids.get())
          SPMD_CUDA_TRY(d, cuMemcpyDtoHAsync, item.ids.get(), item.addresses[0],
                        static_cast<size_t>(command.refs[0].bytes), stream);
        return Status::success();
      });
}

/// What a look at a command may need of it: access is said of the arguments of kernels only.
static bool isLookedAt(const Command &command, const Ref &ref) {
  if (&ref == workspaceOf(command))
    return false;
  return command.is<KernelCommand>() ? ref.writes() : command.is<GemmCommand>() || command.is<CollectiveCommand>();
}

Status RankProgram::watch(FiniteWatch &watch) {
  size_t most = 1;
  for (const Item &item : items) {
    size_t bytes = 0;
    for (const Ref &ref : item.command->refs)
      bytes += isLookedAt(*item.command, ref) ? static_cast<size_t>(ref.bytes) : 0;
    most = std::max(most, bytes);
  }
  Expected<OwnPinned> made = OwnPinned::make(device, most);
  if (!made)
    return made.error();
  seen = std::move(*made);
  finite = &watch;
  return Status::success();
}

Status RankProgram::lookAt(const Item &item) {
  const Driver &d = device->driver();
  StreamHandle stream = streamOf(item);
  std::vector<void *> pointers(item.pointers.size());
  char *to = static_cast<char *>(seen.get());
  for (size_t i = 0; i < pointers.size(); ++i) {
    const Ref &ref = item.command->refs[i];
    if (!isLookedAt(*item.command, ref))
      continue;
    pointers[i] = to;
    if (ref.bytes)
      SPMD_CUDA_TRY(d, cuMemcpyDtoHAsync, to, item.addresses[i], static_cast<size_t>(ref.bytes), stream);
    to += ref.bytes;
  }
  if (to == seen.get())
    return Status::success();
  SPMD_CUDA_TRY(d, cuStreamSynchronize, stream);
  finite->look(item.id, number, pointers.data());
  return Status::success();
}

Status RankProgram::inject(const Fault &fault, const Item &item, const AbortState *abort, bool &skips) {
  skips = false;
  if (fault.kind == Fault::Kind::None || fault.rank != number || fault.command != item.id)
    return Status::success();
  skips = true;
  if (fault.kind == Fault::Kind::Skip)
    return Status::success();
  while (fault.kind == Fault::Kind::Stall && !abort->isRaised())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return abort->isRaised() ? abort->status() : exitedOnPurpose(number, item.id, *item.command);
}

Status RankProgram::issueRecorded(Item &item, const Fault &fault, const AbortState *abort, Recording recording) {
  const Driver &d = device->driver();
  nvtx::String range = ranges.collectives[static_cast<size_t>(item.id)];
  ProfiledRange whole(range ? ranges.profiler : nullptr, range);
  bool skips = false;
  Status status = inject(fault, item, abort, skips);
  if (status.ok() && item.begin && !recording.isCapturing)
    status = d.check(d.cuEventRecord(item.begin.get(), streamOf(item)), "cuEventRecord");
  if (status.ok() && !skips)
    status = issueItem(item, recording);
  if (status.ok() && finite && !recording.isCapturing && !skips)
    status = lookAt(item);
  if (status.ok() && item.end && !recording.isCapturing)
    status = d.check(d.cuEventRecord(item.end.get(), streamOf(item)), "cuEventRecord");
  if (status.ok() && item.event)
    status = d.check(d.cuEventRecord(item.event.get(), streamOf(item)), "cuEventRecord");
  if (!status.ok() && status.command < 0) {
    status.message = "rank " + std::to_string(number) + ", command " + std::to_string(item.id) + " (" +
                     item.command->describe() + "): " + status.message;
    status.rank = static_cast<int32_t>(number);
    status.command = item.id;
    status.location = item.command->location;
  }
  return status;
}

Status RankProgram::issueAll(const Fault &fault, const AbortState *abort, Recording recording) {
  if (Status status = fork(); !status.ok())
    return status;
  std::optional<ProfiledRange> unit;
  nvtx::String inUnit = nullptr;
  for (Item &item : items) {
    current = item.id;
    // Computation goes from unit to unit; other streams have what they have within that of the moment.
    if (nvtx::String next = ranges.units[static_cast<size_t>(item.id)]; next && next != inUnit) {
      unit.reset();
      unit.emplace(ranges.profiler, inUnit = next);
    }
    if (Status status = issueRecorded(item, fault, abort, recording); !status.ok())
      return status;
  }
  unit.reset();
  return joinStreams();
}

Status RankProgram::issue(uint64_t step, const Fault &fault, const AbortState &abort) {
  if (Status status = device->use(); !status.ok())
    return status;
  current = items.empty() ? -1 : items.front().id; // before what the events of this step say is looked at
  latest = static_cast<int64_t>(step);
  if (base)
    SPMD_CUDA_TRY(device->driver(), cuEventRecord, base.get(), device->mainStream());
  ProfiledRange range(ranges.profiler, ranges.step);
  Status status = issueAll(fault, &abort, {step % kWatched, /*isCapturing=*/false});
  if (status.ok()) // else where it stays is recorded
    current = -1;
  return status;
}

Status RankProgram::capture() {
  if (Status status = device->use(); !status.ok())
    return status;
  for (size_t set = 0; set < numSets; ++set)
    if (Status status = captureOne(set); !status.ok())
      return status;
  return Status::success();
}

Status RankProgram::captureOne(size_t set) {
  GraphExec &graph = graphs[set];
  const Driver &d = device->driver();
  SPMD_CUDA_TRY(d, cuStreamBeginCapture, device->mainStream(), kCaptureThreadLocal);
  Status status = issueAll(Fault(), nullptr, {set, /*isCapturing=*/true});
  current = -1;
  Graph captured = nullptr;
  Result ended = d.cuStreamEndCapture(device->mainStream(), &captured);
  if (status.ok())
    status = d.check(ended, "cuStreamEndCapture");
  if (status.ok())
    status = d.check(d.cuGraphInstantiateWithFlags(&graph, captured, kGraphUseNodePriority), "cuGraphInstantiate");
  if (captured)
    (void)d.cuGraphDestroy(captured);
  if (status.ok())
    status = d.check(d.cuGraphUpload(graph, device->mainStream()), "cuGraphUpload");
  if (!status.ok())
    status.message = "the step cannot be made one CUDA graph: " + status.message + "; run it without (--graph=off)";
  return status;
}

Status RankProgram::launch(uint64_t step) {
  if (Status status = device->use(); !status.ok())
    return status;
  ProfiledRange range(ranges.profiler, ranges.step);
  latest = static_cast<int64_t>(step);
  SPMD_CUDA_TRY(device->driver(), cuGraphLaunch, graphs[step % numSets], device->mainStream());
  return Status::success();
}

Status RankProgram::end(uint64_t step) {
  Status status = ring.end(step);
  if (status.ok())
    memory.setOutputs(number, ring.block(), ring.outputs(step), ring.ended(step));
  return status;
}

Status RankProgram::readBack(uint64_t step, int64_t offset, void *destination, int64_t bytes) const {
  if (!ring.block().holds(offset, bytes))
    return Status::badInput("an output that is part of the state is read before the next step is issued");
  std::memcpy(destination, ring.outputs(step) + (offset - ring.block().offset), static_cast<size_t>(bytes));
  return Status::success();
}

std::vector<RankProgram::CollectiveState> RankProgram::collectives(uint64_t step) const {
  std::vector<CollectiveState> states;
  if (!device->use().ok())
    return states;
  // What the host has not issued yet has events of an earlier step.
  auto number = static_cast<int64_t>(step);
  int64_t last = latest;
  int32_t before = number == last ? current.load() : -1;
  auto isPast = [&](const std::array<OwnEvent, kWatched> &events) {
    return device->driver().cuEventQuery(events[step % kWatched].get()) == kSuccess;
  };
  for (const Item &item : items)
    if (item.call) {
      bool isIssued = number <= last && (before < 0 || item.id < before);
      states.push_back({item.id, !isIssued            ? Reached::Nothing
                                 : isPast(item.done)  ? Reached::End
                                 : isPast(item.begun) ? Reached::Begin
                                                      : Reached::Nothing});
    }
  return states;
}

RankPosition RankProgram::position(uint64_t step, bool isOver) const {
  RankPosition position;
  position.rank = number;
  position.step = static_cast<int64_t>(step);
  position.streams.resize(streams.size());
  auto asked = static_cast<int64_t>(step);
  int64_t begun = latest;
  int32_t last = asked == begun ? current.load() : -1;
  for (const Item &item : items)
    position.streams[static_cast<size_t>(item.command->stream)].issued +=
        asked <= begun && (last < 0 || item.id <= last);
  if (isOver || asked > begun) {
    for (StreamPosition &stream : position.streams)
      stream.finished = stream.issued;
    return position;
  }
  for (StreamPosition &stream : position.streams)
    stream.isExact = stream.issued == 0;
  // A device says how far collectives are; what was before one that has begun is done.
  for (const CollectiveState &state : collectives(step)) {
    if (state.reached == Reached::Nothing)
      continue;
    for (size_t i = 0; i < streams.size(); ++i)
      position.streams[i].finished = std::max<int64_t>(position.streams[i].finished, order.clock(state.id)[i]);
    StreamPosition &own = position.streams[static_cast<size_t>(items[static_cast<size_t>(state.id)].command->stream)];
    int64_t place = order.position(state.id);
    own.isExact = state.reached == Reached::Begin;
    own.finished = std::max(own.finished, place + (state.reached == Reached::End));
  }
  for (StreamPosition &stream : position.streams)
    stream.isExact |= stream.finished == stream.issued;
  return position;
}

bool RankProgram::checksIndices() const {
  return std::any_of(items.begin(), items.end(), [](const Item &item) { return item.ids.get() != nullptr; });
}

Status RankProgram::checkIndices(Status status) const {
  for (const Item &item : items)
    if (const auto *check = item.command->as<CheckIndexCommand>(); check && item.ids.get())
      if (Status bad = runCheckIndex(*check, item.id, item.command->location, number, item.ids.get()); !bad.ok()) {
        bad.message += "; GPUs go on with the nearest row, and nothing of this step is in the state";
        return bad;
      }
  return status;
}

Status RankProgram::record(Profile &profile, int64_t begin) const {
  const Driver &d = device->driver();
  if (Status status = device->use(); !status.ok())
    return status;
  for (const Item &item : items) {
    float from = 0, to = 0; // milliseconds
    SPMD_CUDA_TRY(d, cuEventElapsedTime, &from, base.get(), item.begin.get());
    SPMD_CUDA_TRY(d, cuEventElapsedTime, &to, base.get(), item.end.get());
    auto at = [&](float milliseconds) { return begin + static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6); };
    profile.record(number, item.command->stream, {item.id, at(from), at(to)});
  }
  return Status::success();
}

} // namespace spmd::runtime::cuda
