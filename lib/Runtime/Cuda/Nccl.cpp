//===- Nccl.cpp -----------------------------------------------------------===//
//
// [Note: communicators that do not block] A call of one may come back, and say
// that it succeeded (ncclCommWindowRegister does), while a thread of NCCL's still
// does it: until ncclCommGetAsyncError says that it is done no other call may be made, and what the call writes to has
// to stay. Asking is itself a call, of which two at a time are not allowed, and the watchdog asks as well as the thread
// that issues: each communicator has a lock.
//
// [Note: aborts] An abort tells what runs to end, at once, but comes back only
// when no graph refers to the communicator any more. A graph ends when all of its
// communicators have been told, and is destroyed by the executor, after that and
// before its groups: so each abort has a thread, which the group waits for.
//
//===----------------------------------------------------------------------===//

#include "Nccl.h"
#include "RankThreads.h"
#include "SharedLibrary.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>

namespace spmd::runtime::cuda {

/// "2.28.9" of 22809.
static std::string formatVersion(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

Expected<std::shared_ptr<const Nccl>> Nccl::open() {
  Expected<void *> library = openLibrary("NCCL", {"libnccl.so.2"});
  if (!library)
    return library.error();
  auto loaded = std::make_shared<Nccl>();
  auto look = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(findSymbol(*library, name));
    return function != nullptr;
  };
  if (!look(loaded->ncclGetVersion, "ncclGetVersion") || loaded->ncclGetVersion(&loaded->found) != nccl::kSuccess)
    return Status::badInput(std::string("NCCL does not say its version; ") + kHint);
  if (loaded->found < nccl::kOldest)
    return Status::badInput("NCCL is too old: it is " + formatVersion(loaded->found) + ", and " +
                            formatVersion(nccl::kOldest) + " is needed; " + kHint);
#define SPMD_LOOK(name, parameters)                                                                                    \
  if (!look(loaded->name, #name))                                                                                      \
    return Status::badInput("NCCL " + formatVersion(loaded->found) + " has no function " #name "; " +                  \
                            std::string(kHint));
  SPMD_NCCL_FUNCTIONS(SPMD_LOOK)
#undef SPMD_LOOK
  (void)look(loaded->ncclGetErrorString, nccl::kErrorString);
  (void)look(loaded->ncclGetLastError, nccl::kLastError);
  return std::shared_ptr<const Nccl>(std::move(loaded));
}

Expected<std::shared_ptr<const Nccl>> Nccl::load() {
  static std::mutex mutex;
  static std::shared_ptr<const Nccl> kept;
  std::lock_guard<std::mutex> lock(mutex);
  if (kept)
    return kept;
  Expected<std::shared_ptr<const Nccl>> library = open();
  if (library)
    kept = *library;
  return library;
}

Status Nccl::check(nccl::Result result, const std::string &what, nccl::Comm comm) const {
  if (result == nccl::kSuccess || result == nccl::kInProgress)
    return Status::success();
  std::string text = "NCCL: " + what + ": " + (ncclGetErrorString ? ncclGetErrorString(result) : "an error");
  const char *more = comm && ncclGetLastError ? ncclGetLastError(comm) : nullptr;
  if (more && *more)
    text += std::string(": ") + more;
  return Status::failed(text);
}

namespace {

/// How NCCL moves a type; sizes in its elements.
struct Moved {
  nccl::DataType type;
  int64_t perElement = 1;
};

Moved movedAs(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return {nccl::kFloat32};
  case DType::F64:
    return {nccl::kFloat64};
  case DType::F16:
    return {nccl::kFloat16};
  case DType::BF16:
    return {nccl::kBfloat16};
  case DType::I64:
    return {nccl::kInt64};
  case DType::I32:
    return {nccl::kInt32};
  case DType::I16: // not one of NCCL's
    return {nccl::kInt8, 2};
  case DType::I8:
    return {nccl::kInt8};
  case DType::U8:
  case DType::I1:
    return {nccl::kUint8};
  }
  return {nccl::kUint8};
}

nccl::Reduction reductionOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Max:
    return nccl::kMax;
  case ReductionKind::Min:
    return nccl::kMin;
  case ReductionKind::Sum:
  case ReductionKind::Norm2: // CudaBackend::checkPlan refuses it
    return nccl::kSum;
  }
  return nccl::kSum;
}

} // namespace

/// What one rank calls: its end of the communicator.
struct NcclGroup::End final : public Communicator {
  End(NcclGroup &group, int64_t rank, std::shared_ptr<const Gpu> gpu) : group(group), rank(rank), gpu(std::move(gpu)) {}

  Status run(const Collective &call, void *const *buffers, Stream *stream) override {
    CollectiveKind kind = call.key.kind;
    if (kind == CollectiveKind::AllGather)
      return allGather(call, buffers[0], buffers[1], stream);
    if (kind == CollectiveKind::ReduceScatter)
      return reduceScatter(call, buffers[0], buffers[1], stream);
    if (kind == CollectiveKind::AllReduce)
      return allReduce(call, buffers, stream);
    return collectiveMissing(group.name, call);
  }

  Status allGather(const Collective &call, const void *send, void *recv, Stream *stream) {
    Moved moved = movedAs(call.key.dtype);
    return checked(call, finish([&] {
                     return library().ncclAllGather(send, recv, elements(call.key.counts[0] * moved.perElement),
                                                    moved.type, comm, streamOf(stream));
                   }));
  }
  Status reduceScatter(const Collective &call, const void *send, void *recv, Stream *stream) {
    return checked(call, finish([&] {
                     return library().ncclReduceScatter(send, recv, elements(call.key.counts[0]),
                                                        movedAs(call.key.dtype).type, reductionOf(call.key.kinds[0]),
                                                        comm, streamOf(stream));
                   }));
  }
  Status allReduce(const Collective &call, void *const *buffers, Stream *stream) {
    return checked(call, finish([&] {
                     nccl::Result result = library().ncclGroupStart();
                     for (size_t i = 0; i < call.key.counts.size() && result == nccl::kSuccess; ++i)
                       result = library().ncclAllReduce(buffers[i], buffers[i], elements(call.key.counts[i]),
                                                        movedAs(call.key.dtype).type, reductionOf(call.key.kinds[i]),
                                                        comm, streamOf(stream));
                     nccl::Result ended = library().ncclGroupEnd();
                     return result != nccl::kSuccess ? result : ended;
                   }));
  }

  const Nccl &library() const { return *group.library; }
  static size_t elements(int64_t count) { return static_cast<size_t>(count); }
  static StreamHandle streamOf(Stream *stream) { return static_cast<CudaStream *>(stream)->get(); }

  /// A call of the communicator, unless that has been aborted, while nobody else makes one.
  template <typename Call>
  nccl::Result alone(const Call &call) {
    std::lock_guard<std::timed_mutex> lock(mutex);
    return group.isAborted ? nccl::kInvalidUsage : call();
  }
  /// What the last call has come to; an error of asking is its error.
  nccl::Result state() {
    return alone([&] {
      nccl::Result found = nccl::kSuccess, asked = library().ncclCommGetAsyncError(comm, &found);
      return asked != nccl::kSuccess ? asked : found;
    });
  }
  /// Makes a call, and comes back when it is done ([Note: communicators that do not block]).
  template <typename Call>
  nccl::Result finish(const Call &call) {
    nccl::Result result = alone(call);
    if (result != nccl::kSuccess && result != nccl::kInProgress)
      return result;
    while ((result = state()) == nccl::kInProgress)
      std::this_thread::yield();
    return result;
  }

  Status checked(const Collective &call, nccl::Result result) {
    Status status = library().check(result, call.describe() + " on communicator '" + group.name + "'", comm);
    if (!status.ok()) {
      status.rank = static_cast<int32_t>(rank);
      status.command = call.id;
      status.location = call.location;
    }
    return status;
  }

  Status connect(const nccl::UniqueId &id, int64_t maxBlocks);
  /// Waits for what all ranks do before there is a watchdog.
  Status await(nccl::Result state, const std::string &doing, const std::string &toDo);

  NcclGroup &group;
  int64_t rank;
  std::shared_ptr<const Gpu> gpu;
  nccl::Comm comm = nullptr;
  nccl::Window window = nullptr; ///< of the arena
  nccl::Result finalizing = nccl::kSuccess;
  std::timed_mutex mutex;
};

NcclGroup::NcclGroup() = default;

NcclGroup::~NcclGroup() {
  for (std::thread &abort : aborts)
    abort.join();
  auto forEnds = [&](auto visit) {
    for (std::unique_ptr<End> &end : ends)
      if (end->comm && !isAborted && end->gpu->use().ok())
        visit(*end);
  };
  // What all of a communicator do begins everywhere before it is waited for anywhere.
  forEnds([&](End &end) {
    if (end.window)
      (void)end.finish([&] { return library->ncclCommWindowDeregister(end.comm, end.window); });
    end.finalizing = end.alone([&] { return library->ncclCommFinalize(end.comm); });
  });
  forEnds([&](End &end) {
    auto deadline = std::chrono::steady_clock::now() + timeout;
    while (end.finalizing == nccl::kInProgress && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
      end.finalizing = end.state();
    }
    (void)(end.finalizing == nccl::kSuccess ? library->ncclCommDestroy(end.comm) : library->ncclCommAbort(end.comm));
  });
}

Communicator &NcclGroup::endpoint(int64_t rank) { return *ends[here.indexOf(rank)]; }

void NcclGroup::abortAll() {
  if (isAborted.exchange(true))
    return;
  for (std::unique_ptr<End> &each : ends)
    aborts.emplace_back([this, &end = *each] {
      // Calls come back soon; one that does not is what is to be ended.
      std::unique_lock<std::timed_mutex> lock(end.mutex, std::chrono::seconds(1));
      if (end.comm && end.gpu->use().ok())
        (void)library->ncclCommAbort(end.comm);
    });
}

Status NcclGroup::poll() const {
  for (const std::unique_ptr<End> &end : ends) {
    if (isAborted || !end->comm)
      return Status::success();
    nccl::Result state = end->state();
    if (isAborted)
      return Status::success();
    Status status = library->check(state, "communicator '" + name + "'", end->comm);
    if (!status.ok()) {
      status.rank = static_cast<int32_t>(end->rank);
      return status;
    }
  }
  return Status::success();
}

Status NcclGroup::addArenas(const CudaMemory &memory) {
  return forEachRank(here, [&](int64_t rank) {
    End &end = *ends[here.indexOf(rank)];
    if (Status status = end.gpu->use(); !status.ok())
      return status;
    const DeviceBlock &block = memory.blockOf(rank);
    auto registerIt = [&] {
      return library->ncclCommWindowRegister(end.comm, reinterpret_cast<void *>(block.address()),
                                             static_cast<size_t>(block.bytes()), &end.window, nccl::kWindowSymmetric);
    };
    // Symmetric windows need NVLink or the like; where there is none, everything works without them. One that fails
    // when it has begun is an error of the communicator, which is of no more use.
    nccl::Result begun = end.alone(registerIt);
    return begun == nccl::kSuccess || begun == nccl::kInProgress
               ? raise(end.await(nccl::kInProgress, "registering memory with", "register memory with"))
               : Status::success();
  });
}

Status NcclGroup::End::connect(const nccl::UniqueId &id, int64_t maxBlocks) {
  if (Status status = gpu->use(); !status.ok())
    return status;
  nccl::Config config;
  config.blocking = 0; // so that a rank that never comes is an error
  // Rule 11 of the certificate: those in flight together leave room on the device, which may have less than the plan
  // was made for.
  int64_t most = std::max(1, gpu->multiprocessors() / (kMostInFlight + 1));
  config.maxCTAs = static_cast<int>(maxBlocks ? std::min(maxBlocks, most) : most);
  nccl::Result begun = library().ncclCommInitRankConfig(&comm, static_cast<int>(group.groups.size()), id,
                                                        static_cast<int>(group.groups.positionOf(rank)), &config);
  return await(begun, "making", "make");
}

Status NcclGroup::End::await(nccl::Result state, const std::string &doing, const std::string &toDo) {
  auto deadline = std::chrono::steady_clock::now() + group.timeout;
  while (state == nccl::kInProgress) {
    if (group.abort->isRaised())
      return group.abort->status();
    if (std::chrono::steady_clock::now() > deadline)
      return Status::failed("time-out: not all ranks came to " + toDo + " communicator '" + group.name + "'",
                            static_cast<int32_t>(rank));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    state = this->state();
  }
  return library().check(state, doing + " communicator '" + group.name + "'", comm);
}

Status NcclGroup::raise(const Status &status) {
  if (!status.ok() && !abort->isRaised() && !failEverywhere(status))
    abort->fail(status); // the others wait for this one
  return status;
}

Expected<std::unique_ptr<CommunicatorGroup>> NcclFactory::make(const std::string &name, const RanksHere &ranks,
                                                               const RankGroups &groups, AbortState &abort,
                                                               const CommunicatorOptions &options) {
  std::unique_ptr<NcclGroup> group(new NcclGroup);
  group->library = library;
  group->name = name;
  group->here = ranks;
  group->groups = groups;
  group->abort = &abort;
  group->timeout = options.timeout;
  Expected<std::unique_ptr<CommunicatorGroup>> errors = processes->make(name, ranks, groups, abort, options);
  if (!errors)
    return errors.error();
  group->errors = std::move(*errors);
  // The process of a group's first rank makes the group's name. An error of it is one of all.
  struct Meeting {
    nccl::UniqueId id;
    int32_t result;
  };
  std::vector<Meeting> meetings(groups.count());
  for (size_t i = 0; i < meetings.size(); ++i) {
    int64_t first = groups.membersOf(i).front();
    if (ranks.has(first))
      meetings[i].result = library->ncclGetUniqueId(&meetings[i].id);
    if (Status status = processes->share(ranks.processOf(first), &meetings[i], sizeof(Meeting), abort); !status.ok())
      return status;
    if (Status status = library->check(meetings[i].result, "ncclGetUniqueId"); !status.ok())
      return status;
  }
  for (int64_t rank = ranks.first; rank < ranks.end(); ++rank)
    group->ends.push_back(std::make_unique<NcclGroup::End>(*group, rank, gpus[ranks.indexOf(rank)]));
  Status status = forEachRank(ranks, [&](int64_t rank) {
    return group->raise(
        group->ends[ranks.indexOf(rank)]->connect(meetings[groups.groupOf(rank)].id, options.maxBlocks));
  });
  if (!status.ok()) {
    group->abortAll();
    return abort.status();
  }
  return std::unique_ptr<CommunicatorGroup>(std::move(group));
}

} // namespace spmd::runtime::cuda
