//===- NcclTest.cpp - Communicators by NCCL, in processes -----------------===//
//
// On a machine with a GPU with NVIDIA's libraries, else with the stand-ins of
// them. Where there are fewer GPUs than ranks, ranks share the first: NCCL lets
// them, since each process says that it is a host of its own (NCCL_HOSTID), and
// they reach each other over sockets. That is slow and else as it is with a GPU
// for each: communicators, captures and aborts are NCCL's.
//
// Needs nothing of the build folder: benchmark/gpu/pack takes the program along.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Nccl.h"
#include "spmd/Runtime/Core/HalfFloat.h"
#include "spmd/Runtime/Process/Join.h"
#include "spmd/Runtime/Train/Registry.h"
#include "test/unit/Sanitized.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;
using namespace spmd::runtime::cuda;

namespace {

constexpr int64_t kArena = 4 << 20, kCount = 96, kPlace = 1 << 18; ///< bytes, elements of a rank, bytes between buffers
constexpr unsigned kLimit = 40;                                    ///< seconds for a process

/// A rank that is alone in its process.
struct Rank {
  int64_t number, total;
  std::shared_ptr<const Nccl> nccl;
  std::shared_ptr<const Gpu> gpu;
  CommunicatorFactory &processes;
  CudaMemory &memory;
  AbortState &abort;
  NcclGroup *group;
  CudaStream &stream;

  const Driver &driver() const { return gpu->driver(); }

  /// Comes back when all ranks are here.
  void meet() {
    std::vector<char> all(static_cast<size_t>(total));
    Status met = processes.gather(all.data(), 1, all.data(), abort, std::chrono::seconds(kLimit));
    EXPECT_TRUE(met.ok()) << met.message;
  }
};

/// The job's communicators, made as an executor makes them.
Expected<std::unique_ptr<CommunicatorGroup>> makeGroup(Rank &rank, const std::string &name) {
  NcclFactory factory(rank.nccl, std::shared_ptr<CommunicatorFactory>(&rank.processes, [](auto *) {}), {rank.gpu});
  CommunicatorOptions options;
  options.timeout = std::chrono::seconds(kLimit);
  options.maxBlocks = 4;
  return factory.make(name, {rank.total, rank.number, 1}, RankGroups::all(rank.total), rank.abort, options);
}

/// Everything that a rank has, in the order in which an executor makes it; all ends before the process does.
void runRank(const Launch &launch, const std::function<void(Rank &)> &body) {
  registerProcesses(launch);
  Expected<std::shared_ptr<CommunicatorFactory>> processes = makeCommunicators("process", std::chrono::seconds(kLimit));
  ASSERT_TRUE(processes) << processes.error().message;
  Expected<std::shared_ptr<const Driver>> driver = Driver::load();
  ASSERT_TRUE(driver) << driver.error().message;
  int count = 0;
  ASSERT_EQ((*driver)->cuDeviceGetCount(&count), kSuccess);
  ASSERT_GT(count, 0);
  bool isShared = launch.world > count;
  if (isShared) {
    ::setenv("NCCL_HOSTID", ("rank-" + std::to_string(launch.rank)).c_str(), 1);
    ::setenv("NCCL_NET", "Socket", 1);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    ::setenv("NCCL_IB_DISABLE", "1", 1);
  }
  Expected<std::shared_ptr<const Nccl>> nccl = Nccl::load();
  ASSERT_TRUE(nccl) << nccl.error().message;
  Expected<std::shared_ptr<Gpu>> gpu = Gpu::open(*driver, isShared ? 0 : static_cast<int>(launch.rank));
  ASSERT_TRUE(gpu) << gpu.error().message;
  Expected<std::unique_ptr<CudaMemory>> memory = CudaMemory::allocate({launch.world, launch.rank, 1}, {*gpu}, kArena);
  ASSERT_TRUE(memory) << memory.error().message;
  ASSERT_EQ((*driver)->cuStreamSynchronize((*gpu)->mainStream()), kSuccess); // the arena is zero
  AbortState abort;
  Expected<StreamHandle> handle = (*gpu)->makeStream(0);
  ASSERT_TRUE(handle) << handle.error().message;
  CudaStream stream(*gpu, *handle, /*owns=*/true);
  Rank rank{launch.rank, launch.world, *nccl, *gpu, **processes, **memory, abort, nullptr, stream};
  Expected<std::unique_ptr<CommunicatorGroup>> group = makeGroup(rank, "gather");
  ASSERT_TRUE(group) << group.error().message;
  rank.group = static_cast<NcclGroup *>(group->get());
  body(rank);
  group->reset();
  rank.meet();
}

/// Where no GPU is, the stand-ins' folder is named. False: there is neither.
bool findLibraries() {
  if (std::getenv("SPMD_CUDA_LIBRARIES"))
    return true;
  void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto *start = library ? reinterpret_cast<Result (*)(unsigned)>(::dlsym(library, "cuInit")) : nullptr;
  if (start && start(0) == kSuccess)
    return true;
#ifdef SPMD_STANDIN_DIR
  ::setenv("SPMD_CUDA_LIBRARIES", SPMD_STANDIN_DIR, 1);
  ::setenv("STANDIN", "devices=1", 0);
  return ::access(SPMD_STANDIN_DIR "/libcuda.so.1", F_OK) == 0;
#endif
  return false;
}

/// By the number of ranks.
class NcclRanks : public ::testing::TestWithParam<int64_t> {
protected:
  void SetUp() override {
    if (isSanitized)
      GTEST_SKIP() << "processes that are forked look like leaks";
  }

  /// Runs `body` in a process for each rank. One that comes to no end is ended.
  void onRanks(const std::function<void(Rank &)> &body) {
    static int jobs = 0;
    Launch launch;
    launch.launcher = Launcher::OpenMpi;
    launch.world = GetParam();
    launch.job = "nccl-" + std::to_string(::getpid()) + "-" + std::to_string(jobs++);
    std::fflush(nullptr);
    std::vector<pid_t> children;
    for (launch.rank = 0; launch.rank < launch.world; ++launch.rank) {
      pid_t child = ::fork();
      if (child == 0) {
        ::alarm(kLimit);
        // In this process, so that others may load real ones.
        if (!findLibraries())
          std::exit(77);
        runRank(launch, body);
        std::exit(::testing::Test::HasFailure() ? 1 : 0);
      }
      children.push_back(child);
    }
    bool isSkipped = false;
    for (size_t i = 0; i < children.size(); ++i) {
      int status = 0;
      ASSERT_EQ(::waitpid(children[i], &status, 0), children[i]);
      isSkipped |= WIFEXITED(status) && WEXITSTATUS(status) == 77;
      if (!isSkipped)
        EXPECT_EQ(status, 0) << "rank " << i
                             << (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? " comes to no end" : " failed");
    }
    if (isSkipped)
      GTEST_SKIP() << "no CUDA driver, and no stand-in of it";
  }
};

/// Small whole numbers, which all types have and whose sums they have.
int64_t valueOf(int64_t rank, int64_t index, int64_t turn) { return (rank + 1) * (index % 7 + 1) + turn; }

template <typename T>
void put(Rank &rank, int64_t offset, int64_t count, int64_t turn) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<T>(static_cast<double>(valueOf(rank.number, i, turn))));
  Status copied = rank.memory.copyIn(rank.number, offset, values.data(), count * static_cast<int64_t>(sizeof(T)));
  EXPECT_TRUE(copied.ok()) << copied.message;
  EXPECT_TRUE(rank.memory.flush(rank.number).ok());
  EXPECT_EQ(rank.driver().cuStreamSynchronize(rank.gpu->mainStream()), kSuccess);
}

/// That all `count` elements are what `expected` says of their places.
template <typename T>
void check(Rank &rank, const char *what, int64_t offset, int64_t count,
           const std::function<int64_t(int64_t)> &expected) {
  std::vector<T> found(static_cast<size_t>(count));
  Status copied = rank.memory.copyOut(rank.number, offset, found.data(), count * static_cast<int64_t>(sizeof(T)));
  ASSERT_TRUE(copied.ok()) << copied.message;
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(static_cast<double>(found[static_cast<size_t>(i)]), static_cast<double>(expected(i)))
        << what << ", element " << i << " of rank " << rank.number;
}

/// A gather, a scattered and a whole sum of one type, and the buffers that they have.
template <typename T>
class Three {
public:
  Three(Rank &rank, DType dtype) : rank(rank) {
    auto make = [&](CollectiveKind kind, std::vector<int64_t> counts) {
      CollectiveKey key;
      key.kind = kind;
      key.dtype = dtype;
      key.counts = std::move(counts);
      key.kinds.assign(key.counts.size(), ReductionKind::Sum);
      return Collective(key, 3, 1, "train.py:7");
    };
    gather = make(CollectiveKind::AllGather, {kCount});
    scatter = make(CollectiveKind::ReduceScatter, {kCount});
    reduce = make(CollectiveKind::AllReduce, {kCount, kCount / 2});
  }

  void put(int64_t turn) {
    ::put<T>(rank, 0, kCount, turn);
    ::put<T>(rank, 2 * kPlace, kCount * rank.total, turn);
    ::put<T>(rank, 4 * kPlace, kCount, turn);
    ::put<T>(rank, 5 * kPlace, kCount / 2, turn);
  }
  void issue() {
    run(gather, {0, kPlace});
    run(scatter, {2 * kPlace, 3 * kPlace});
    run(reduce, {4 * kPlace, 5 * kPlace});
  }
  void check(int64_t turn) {
    auto sum = [&](int64_t index) {
      int64_t total = 0;
      for (int64_t other = 0; other < rank.total; ++other)
        total += valueOf(other, index, turn);
      return total;
    };
    ::check<T>(rank, "all_gather", kPlace, kCount * rank.total,
               [&](int64_t i) { return valueOf(i / kCount, i % kCount, turn); });
    ::check<T>(rank, "reduce_scatter", 3 * kPlace, kCount, [&](int64_t i) { return sum(rank.number * kCount + i); });
    ::check<T>(rank, "all_reduce", 4 * kPlace, kCount, sum);
    ::check<T>(rank, "all_reduce of another buffer", 5 * kPlace, kCount / 2, sum);
  }

private:
  void run(const Collective &call, const std::vector<int64_t> &offsets) {
    std::vector<void *> buffers;
    for (int64_t offset : offsets)
      buffers.push_back(rank.memory.addressOf(rank.number, offset));
    Status issued = rank.group->endpoint(rank.number).run(call, buffers.data(), &rank.stream);
    EXPECT_TRUE(issued.ok()) << issued.message;
  }
  Rank &rank;
  Collective gather, scatter, reduce;
};

template <typename T>
void runThree(Rank &rank, DType dtype) {
  Three<T> three(rank, dtype);
  three.put(2);
  three.issue();
  ASSERT_EQ(rank.driver().cuStreamSynchronize(rank.stream.get()), kSuccess);
  three.check(2);
}

void runAllTypes(Rank &rank) {
  runThree<float>(rank, DType::F32);
  runThree<BFloat16>(rank, DType::BF16);
  runThree<Float16>(rank, DType::F16);
  runThree<double>(rank, DType::F64);
  runThree<int64_t>(rank, DType::I64);
}

/// A graph whose collectives are on another stream, as an executor captures a step.
template <typename T>
GraphExec capture(Rank &rank, Three<T> &three) {
  const Driver &d = rank.driver();
  Event begun = nullptr, ended = nullptr;
  EXPECT_EQ(d.cuEventCreate(&begun, kEventDisableTiming), kSuccess);
  EXPECT_EQ(d.cuEventCreate(&ended, kEventDisableTiming), kSuccess);
  StreamHandle main = rank.gpu->mainStream();
  EXPECT_EQ(d.cuStreamBeginCapture(main, kCaptureThreadLocal), kSuccess);
  EXPECT_EQ(d.cuEventRecord(begun, main), kSuccess);
  EXPECT_EQ(d.cuStreamWaitEvent(rank.stream.get(), begun, 0), kSuccess);
  three.issue();
  EXPECT_EQ(d.cuEventRecord(ended, rank.stream.get()), kSuccess);
  EXPECT_EQ(d.cuStreamWaitEvent(main, ended, 0), kSuccess);
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  EXPECT_EQ(d.cuStreamEndCapture(main, &graph), kSuccess);
  EXPECT_EQ(d.cuGraphInstantiateWithFlags(&exec, graph, kGraphUseNodePriority), kSuccess);
  EXPECT_EQ(d.cuGraphDestroy(graph), kSuccess);
  EXPECT_EQ(d.cuEventDestroy(begun), kSuccess);
  EXPECT_EQ(d.cuEventDestroy(ended), kSuccess);
  return exec;
}

/// Without blocking, with as many thread blocks as were wanted.
TEST_P(NcclRanks, CommunicatorsAreMade) {
  onRanks([](Rank &rank) {
    std::printf("rank %lld: %s, NCCL %s\n", static_cast<long long>(rank.number), rank.gpu->name().c_str(),
                toText(rank.nccl->release()).c_str());
    EXPECT_TRUE(rank.group->poll().ok());
  });
}

TEST_P(NcclRanks, CollectivesOfEveryType) { onRanks(runAllTypes); }

/// Registering comes back at once, and goes on: what follows waits for it.
TEST_P(NcclRanks, CollectivesOfRegisteredArenas) {
  onRanks([](Rank &rank) {
    Status added = rank.group->addArenas(rank.memory);
    ASSERT_TRUE(added.ok()) << added.message;
    runAllTypes(rank);
    EXPECT_TRUE(rank.group->poll().ok());
  });
}

template <typename T>
void launchThrice(Rank &rank, DType dtype) {
  Three<T> three(rank, dtype);
  three.put(0);
  three.issue(); // connects
  ASSERT_EQ(rank.driver().cuStreamSynchronize(rank.stream.get()), kSuccess);
  GraphExec exec = capture(rank, three);
  ASSERT_NE(exec, nullptr);
  for (int64_t turn = 1; turn <= 3; ++turn) {
    three.put(turn);
    EXPECT_EQ(rank.driver().cuGraphLaunch(exec, rank.gpu->mainStream()), kSuccess);
    EXPECT_EQ(rank.driver().cuStreamSynchronize(rank.gpu->mainStream()), kSuccess);
    three.check(turn);
  }
  EXPECT_EQ(rank.driver().cuGraphExecDestroy(exec), kSuccess);
}

TEST_P(NcclRanks, CollectivesInOneGraph) {
  onRanks([](Rank &rank) {
    ASSERT_TRUE(rank.group->addArenas(rank.memory).ok());
    launchThrice<float>(rank, DType::F32);
    launchThrice<BFloat16>(rank, DType::BF16);
    launchThrice<Float16>(rank, DType::F16);
    launchThrice<double>(rank, DType::F64);
    launchThrice<int64_t>(rank, DType::I64);
  });
}

/// As the watchdog does.
TEST_P(NcclRanks, ErrorsAreAskedForWhileCollectivesAreIssued) {
  onRanks([](Rank &rank) {
    std::atomic<bool> isOver{false};
    std::atomic<int> bad{0};
    std::thread watchdog([&] {
      while (!isOver) {
        bad += !rank.group->poll().ok();
        std::this_thread::yield();
      }
    });
    Three<float> three(rank, DType::F32);
    three.put(1);
    for (int i = 0; i < 200; ++i) {
      three.put(1);
      three.issue();
      EXPECT_EQ(rank.driver().cuStreamSynchronize(rank.stream.get()), kSuccess);
    }
    three.check(1);
    isOver = true;
    watchdog.join();
    EXPECT_EQ(bad, 0);
  });
}

/// A rank that does not come: what waits for it ends.
TEST_P(NcclRanks, AbortEndsWhatWaits) {
  onRanks([](Rank &rank) {
    Three<float> three(rank, DType::F32);
    three.put(1);
    three.issue();
    EXPECT_EQ(rank.driver().cuStreamSynchronize(rank.stream.get()), kSuccess);
    rank.meet();
    bool comes = rank.number == 0;
    if (comes)
      three.issue();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (comes && rank.total > 1)
      EXPECT_EQ(rank.driver().cuStreamQuery(rank.stream.get()), kNotReady);
    rank.group->abortAll();
    EXPECT_EQ(rank.driver().cuStreamSynchronize(rank.stream.get()), kSuccess);
    rank.meet();
  });
}

/// The same in a graph, which refers to the communicator as long as it is there.
TEST_P(NcclRanks, AbortEndsAGraphThatWaits) {
  onRanks([](Rank &rank) {
    Three<float> three(rank, DType::F32);
    three.put(1);
    three.issue();
    EXPECT_EQ(rank.driver().cuStreamSynchronize(rank.stream.get()), kSuccess);
    GraphExec exec = capture(rank, three);
    rank.meet();
    if (rank.number == 0)
      EXPECT_EQ(rank.driver().cuGraphLaunch(exec, rank.gpu->mainStream()), kSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    rank.group->abortAll();
    EXPECT_EQ(rank.driver().cuStreamSynchronize(rank.gpu->mainStream()), kSuccess);
    EXPECT_EQ(rank.driver().cuGraphExecDestroy(exec), kSuccess);
    rank.meet();
  });
}

/// After a communicator another one is made.
TEST_P(NcclRanks, CommunicatorsComeAndGo) {
  onRanks([](Rank &rank) {
    for (int i = 0; i < 2; ++i) {
      Expected<std::unique_ptr<CommunicatorGroup>> other = makeGroup(rank, "other" + std::to_string(i));
      ASSERT_TRUE(other) << other.error().message;
      NcclGroup *first = std::exchange(rank.group, static_cast<NcclGroup *>(other->get()));
      ASSERT_TRUE(rank.group->addArenas(rank.memory).ok());
      runThree<float>(rank, DType::F32);
      rank.group = first;
      other->reset();
      runThree<float>(rank, DType::F32);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclRanks, ::testing::Values(1, 2),
                         [](const auto &info) { return "Of" + std::to_string(info.param); });

} // namespace
