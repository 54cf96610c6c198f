//===- Nccl.cpp - A stand-in for libnccl.so.2 -----------------------------===//
//
// Ranks meet in shared memory, whether they are threads or processes, and read
// each other's buffers: those of another process by process_vm_readv. Everything
// is combined in rank order, with the runtime's own arithmetic. Ranks that call
// different collectives are reported, and then wait for ever, as NCCL's may.
//
//===----------------------------------------------------------------------===//

#include "StandIn.h"
#include "lib/Runtime/Cuda/NcclApi.h"
#include "spmd/Runtime/Core/Reduce.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

using namespace spmd::runtime;
using namespace spmd::runtime::nccl;

namespace {

constexpr int kMostRanks = 64;

enum class Op : int32_t { AllGather, ReduceScatter, AllReduce };
const char *nameOf(Op op) {
  return op == Op::AllGather ? "all_gather" : op == Op::ReduceScatter ? "reduce_scatter" : "all_reduce";
}

struct Slot {
  std::atomic<uint64_t> arrived, read;
  int32_t process;
  Op op;
  int32_t type, how;
  uint64_t count, send;
};

struct Shared {
  std::atomic<int32_t> joined;
  Slot slots[kMostRanks];
};

std::mutex mutex;

DType dtypeOf(int type) {
  switch (type) {
  case kFloat64:
    return DType::F64;
  case kFloat16:
    return DType::F16;
  case kBfloat16:
    return DType::BF16;
  case kInt64:
    return DType::I64;
  case kInt32:
    return DType::I32;
  case kInt8:
    return DType::I8;
  case kUint8:
    return DType::U8;
  default:
    return DType::F32;
  }
}
uint64_t bytesOf(int type) { return static_cast<uint64_t>(spmd::runtime::sizeOf(dtypeOf(type))); }

} // namespace

namespace spmd::runtime::nccl {
struct ncclComm {
  Shared *shared = nullptr;
  std::string name, text;
  int ranks = 0, rank = 0;
  uint64_t meetings = 0;
  void *active = nullptr; ///< the call that is under way
  std::atomic<int> error{kSuccess};
  std::atomic<bool> aborted{false};
  bool isJoining = false, blocks = true;
  std::atomic<bool> isCaptured{false}; ///< a graph has calls of it
  /// Where a registration that has begun is going to write; it does when it is asked for.
  std::atomic<Window *> registering{nullptr};
  std::atomic<bool> isFinalized{false};
  int asked = 0;              ///< since one of them
  std::atomic<int> inside{0}; ///< calls that are being made: one at a time
};
} // namespace spmd::runtime::nccl

namespace {

struct Call {
  Comm comm;
  Op op;
  uint64_t send, recv, count;
  int type, how;
  int phase = 0;
  uint64_t meeting = 0;
  std::vector<char> result;
};

/// Bytes of a rank's buffer.
bool readFrom(const Slot &slot, uint64_t offset, void *to, uint64_t bytes) {
  if (slot.process == ::getpid()) {
    std::memcpy(to, reinterpret_cast<const char *>(slot.send) + offset, bytes);
    return true;
  }
  iovec local{to, bytes}, remote{reinterpret_cast<char *>(slot.send) + offset, bytes};
  return ::process_vm_readv(slot.process, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

bool isAlive(const Slot &slot) { return slot.process == ::getpid() || ::kill(slot.process, 0) == 0; }

/// What this rank gets of the collective, all ranks having come.
bool compute(Call &call) {
  Comm comm = call.comm;
  Slot *slots = comm->shared->slots;
  uint64_t bytes = call.count * bytesOf(call.type);
  if (call.op == Op::AllGather) {
    call.result.resize(bytes * static_cast<uint64_t>(comm->ranks));
    for (int rank = 0; rank < comm->ranks; ++rank)
      if (!readFrom(slots[rank], 0, call.result.data() + static_cast<uint64_t>(rank) * bytes, bytes))
        return false;
    return true;
  }
  uint64_t offset = call.op == Op::ReduceScatter ? static_cast<uint64_t>(comm->rank) * bytes : 0;
  std::vector<std::vector<char>> inputs;
  std::vector<const void *> pointers;
  for (int rank = 0; rank < comm->ranks; ++rank) {
    inputs.emplace_back(bytes);
    if (!readFrom(slots[rank], offset, inputs.back().data(), bytes))
      return false;
    pointers.push_back(inputs.back().data());
  }
  call.result.resize(bytes);
  ReductionKind kind = call.how == kMax   ? ReductionKind::Max
                       : call.how == kMin ? ReductionKind::Min
                                          : ReductionKind::Sum;
  reduceInOrder(dtypeOf(call.type), kind, pointers.data(), comm->ranks, call.result.data(),
                static_cast<int64_t>(call.count));
  return true;
}

/// Whether a rank's device does not come to its collective number `meeting`, as in "stuck=RANK:NUMBER", or a later one.
bool isStuck(int rank, uint64_t meeting) {
  static const char *given = standInSetting("stuck");
  static const char *number = given ? std::strchr(given, ':') : nullptr;
  return number && rank == std::atoi(given) && meeting >= static_cast<uint64_t>(std::atoll(number + 1));
}

std::string describe(const Slot &slot) {
  return std::string(nameOf(slot.op)) + " of " + std::to_string(slot.count) + " elements of type " +
         std::to_string(slot.type);
}

int run(void *context, uint64_t) {
  auto &call = *static_cast<Call *>(context);
  std::lock_guard<std::mutex> lock(mutex);
  Comm comm = call.comm;
  if (comm->aborted)
    return 1;
  if (comm->error != kSuccess)
    return 0; // as a kernel that never ends
  Slot *slots = comm->shared->slots;
  Slot &own = slots[comm->rank];
  if (call.phase == 0) {
    if (comm->active || isStuck(comm->rank, comm->meetings + 1))
      return 0;
    comm->active = &call;
    call.meeting = ++comm->meetings;
    own.process = ::getpid();
    own.op = call.op;
    own.type = call.type;
    own.how = call.how;
    own.count = call.count;
    own.send = reinterpret_cast<uint64_t>(standInReach(call.send));
    own.arrived = call.meeting;
    call.phase = 1;
  }
  auto haveAll = [&](std::atomic<uint64_t> Slot::*counter) {
    for (int rank = 0; rank < comm->ranks; ++rank)
      if (slots[rank].*counter < call.meeting) {
        if (slots[rank].arrived && !isAlive(slots[rank])) {
          comm->text = "rank " + std::to_string(rank) + " has ended";
          comm->error = kRemoteError;
        }
        return false;
      }
    return true;
  };
  if (call.phase == 1) {
    if (!haveAll(&Slot::arrived))
      return 0;
    for (int rank = 1; rank < comm->ranks; ++rank) {
      const Slot &a = slots[0], &b = slots[rank];
      if (a.op == b.op && a.count == b.count && a.type == b.type && a.how == b.how)
        continue;
      standInReport(("nccl: rank 0 calls " + describe(a) + ", rank " + std::to_string(rank) + " " + describe(b)).c_str());
      comm->text = "ranks call different collectives";
      comm->error = kInvalidUsage;
      return 0;
    }
    if (!compute(call)) {
      comm->text = "cannot read the memory of another process";
      comm->error = kSystemError;
      return 0;
    }
    own.read = call.meeting;
    call.phase = 2;
  }
  if (!haveAll(&Slot::read))
    return 0;
  std::memcpy(standInReach(call.recv), call.result.data(), call.result.size());
  call.result.clear();
  comm->active = nullptr;
  call.phase = 0;
  return 1;
}

/// A call that no other one may be made beside.
struct OneAtATime {
  OneAtATime(Comm comm, const char *function) : comm(comm) {
    if (comm->inside++)
      standInReport((std::string("nccl: ") + function + " while another thread calls the communicator").c_str());
  }
  ~OneAtATime() { --comm->inside; }
  Comm comm;
};

Result enqueue(Op op, const void *send, void *recv, size_t count, size_t sent, size_t received, int type, int how,
               Comm comm, StreamHandle stream) {
  auto from = reinterpret_cast<uint64_t>(send), to = reinterpret_cast<uint64_t>(recv);
  uint64_t element = bytesOf(type);
  if (!standInReach(from) || !standInReach(to) || !standInReach(from + sent * element - 1) ||
      !standInReach(to + received * element - 1))
    return kInvalidArgument;
  if (comm->aborted)
    return kInvalidUsage;
  OneAtATime one(comm, nameOf(op));
  if (comm->registering) {
    standInReport((std::string("nccl: ") + nameOf(op) + " before memory is registered").c_str());
    return kInvalidArgument;
  }
  comm->isCaptured = comm->isCaptured || standInCaptures(stream);
  auto *call = new Call{comm, op, from, to, count, type, how, 0, 0, {}};
  StandInRange ranges[] = {{from, sent * element, 0}, {to, received * element, 1}};
  std::string name = std::string(nameOf(op)) + " of rank " + std::to_string(comm->rank);
  return standInEnqueue(stream, name.c_str(), run, call, ranges, 2) ? kUnhandledCudaError : kSuccess;
}

} // namespace

#define ENTER(function)                                                                                                \
  if (int failed = standInEnter(function))                                                                             \
  return failed == kLeftOut ? kSuccess : failed == 999 ? kInternalError : failed

STANDIN_API Result ncclGetVersion(int *version) {
  ENTER("ncclGetVersion");
  const char *given = standInSetting("nccl");
  *version = given ? std::atoi(given) : 22809;
  return kSuccess;
}

STANDIN_API const char *ncclGetErrorString(Result result) {
  switch (result) {
  case kSuccess:
    return "no error";
  case kSystemError:
    return "unhandled system error";
  case kInternalError:
    return "internal error";
  case kInvalidArgument:
    return "invalid argument";
  case kInvalidUsage:
    return "invalid usage";
  case kRemoteError:
    return "remote process exited or there was a network error";
  default:
    return "unknown result code";
  }
}

STANDIN_API const char *ncclGetLastError(Comm comm) { return comm ? comm->text.c_str() : ""; }

STANDIN_API Result ncclGetUniqueId(UniqueId *id) {
  ENTER("ncclGetUniqueId");
  static std::atomic<int> next{0};
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->bytes, sizeof id->bytes, "/standin-nccl-%d-%d", ::getpid(), next++);
  int file = ::shm_open(id->bytes, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Shared)))
    return kSystemError;
  ::close(file);
  return kSuccess;
}

STANDIN_API Result ncclCommInitRankConfig(Comm *out, int ranks, UniqueId id, int rank, Config *config) {
  ENTER("ncclCommInitRankConfig");
  if (ranks > kMostRanks || rank < 0 || rank >= ranks || !config || config->magic != 0xcafebeef)
    return kInvalidArgument;
  int file = ::shm_open(id.bytes, O_RDWR, 0600);
  if (file < 0)
    return kSystemError;
  auto *comm = new ncclComm;
  comm->shared =
      static_cast<Shared *>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ::close(file);
  comm->name = id.bytes;
  comm->ranks = ranks;
  comm->rank = rank;
  comm->isJoining = true;
  comm->blocks = config->blocking != 0;
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // the others read this process's memory
  *out = comm;
  if (standInSetting("made"))
    std::fprintf(stderr, "stand-in: a communicator with at most %d thread blocks%s\n", config->maxCTAs,
                 config->blocking == 0 ? "" : ", blocking");
  // The last one takes the name away.
  if (++comm->shared->joined == ranks)
    ::shm_unlink(comm->name.c_str());
  if (config->blocking != 0)
    while (comm->shared->joined < ranks)
      ::usleep(100);
  return config->blocking != 0 ? kSuccess : kInProgress;
}

STANDIN_API Result ncclCommGetAsyncError(Comm comm, Result *error) {
  ENTER("ncclCommGetAsyncError");
  OneAtATime one(comm, "ncclCommGetAsyncError");
  if (comm->registering || comm->isFinalized) {
    if (++comm->asked == 1) {
      *error = kInProgress;
      return kSuccess;
    }
    if (Window *window = comm->registering.exchange(nullptr))
      *window = reinterpret_cast<Window>(comm);
  }
  *error = comm->shared->joined < comm->ranks ? static_cast<int>(kInProgress) : comm->error.load();
  return kSuccess;
}

static void drop(Comm comm) {
  if (comm->shared->joined < comm->ranks)
    ::shm_unlink(comm->name.c_str());
}

STANDIN_API Result ncclCommAbort(Comm comm) {
  ENTER("ncclCommAbort");
  comm->aborted = true; // kept: commands that were issued still refer to it
  drop(comm);
  while (comm->isCaptured && standInGraphs()) // as NCCL's does: graphs refer to it
    ::usleep(100);
  return kSuccess;
}

STANDIN_API Result ncclCommFinalize(Comm comm) {
  ENTER("ncclCommFinalize");
  OneAtATime one(comm, "ncclCommFinalize");
  comm->asked = 0;
  comm->isFinalized = true;
  return comm->blocks ? kSuccess : kInProgress;
}

STANDIN_API Result ncclCommDestroy(Comm comm) {
  ENTER("ncclCommDestroy");
  if (!comm->blocks && (!comm->isFinalized || comm->asked < 2))
    standInReport("nccl: ncclCommDestroy before ncclCommFinalize is complete, of a communicator that does not block");
  comm->aborted = true;
  drop(comm);
  return kSuccess;
}

STANDIN_API Result ncclCommWindowRegister(Comm comm, void *buffer, size_t bytes, Window *window, int) {
  ENTER("ncclCommWindowRegister");
  if (!standInReach(reinterpret_cast<uint64_t>(buffer)) || bytes % (2 << 20))
    return kInvalidArgument;
  OneAtATime one(comm, "ncclCommWindowRegister");
  if (!comm->blocks) {
    comm->asked = 0;
    comm->registering = window;
    return kSuccess; // as NCCL says when it has only begun
  }
  *window = reinterpret_cast<Window>(comm);
  return kSuccess;
}

STANDIN_API Result ncclCommWindowDeregister(Comm comm, Window window) {
  ENTER("ncclCommWindowDeregister");
  if (window != reinterpret_cast<Window>(comm))
    standInReport("nccl: what is no window is given back");
  return kSuccess;
}

STANDIN_API Result ncclGroupStart() {
  ENTER("ncclGroupStart");
  return kSuccess;
}

STANDIN_API Result ncclGroupEnd() {
  ENTER("ncclGroupEnd");
  return kSuccess;
}

STANDIN_API Result ncclAllGather(const void *send, void *recv, size_t count, DataType type, Comm comm,
                                 StreamHandle stream) {
  ENTER("ncclAllGather");
  return enqueue(Op::AllGather, send, recv, count, count, count * static_cast<size_t>(comm->ranks), type, kSum, comm,
                 stream);
}

STANDIN_API Result ncclReduceScatter(const void *send, void *recv, size_t count, DataType type, Reduction how,
                                     Comm comm, StreamHandle stream) {
  ENTER("ncclReduceScatter");
  return enqueue(Op::ReduceScatter, send, recv, count, count * static_cast<size_t>(comm->ranks), count, type, how, comm,
                 stream);
}

STANDIN_API Result ncclAllReduce(const void *send, void *recv, size_t count, DataType type, Reduction how, Comm comm,
                                 StreamHandle stream) {
  ENTER("ncclAllReduce");
  return enqueue(Op::AllReduce, send, recv, count, count, count, type, how, comm, stream);
}
