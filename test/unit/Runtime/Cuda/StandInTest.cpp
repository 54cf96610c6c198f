//===- StandInTest.cpp - What the stand-ins of CUDA find ------------------===//
//
// Missing waits are reported though the result is right, and results are wrong in
// the schedules that a missing wait allows; the rules of captures are the driver's.
// The stand-in says at its end what it has found, so each case is a child.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/Driver.h"
#include "test/StandIn/StandIn.h"
#include "test/unit/Sanitized.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spmd::runtime;
using namespace spmd::runtime::cuda;

namespace {

constexpr size_t kCount = 1024, kBytes = kCount * 4;

/// One process with two streams and some memory.
class Box {
public:
  Box() {
    ::setenv("SPMD_CUDA_LIBRARIES", SPMD_STANDIN_DIR, 1);
    Expected<std::shared_ptr<const Driver>> loaded = Driver::load();
    if (!loaded)
      ADD_FAILURE() << loaded.error().message;
    driver = *loaded;
    void *library = ::dlopen(SPMD_STANDIN_DIR "/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    enqueue = reinterpret_cast<decltype(enqueue)>(::dlsym(library, "standInEnqueue"));
    reach = reinterpret_cast<decltype(reach)>(::dlsym(library, "standInReach"));
    const Driver &d = *driver;
    Context context;
    EXPECT_EQ(d.cuDevicePrimaryCtxRetain(&context, 0), kSuccess);
    EXPECT_EQ(d.cuCtxSetCurrent(context), kSuccess);
    AllocationProperties properties = {};
    properties.type = kAllocationPinned;
    properties.location = {kLocationDevice, 0};
    Allocation allocation;
    EXPECT_EQ(d.cuMemCreate(&allocation, 2 << 20, &properties, 0), kSuccess);
    EXPECT_EQ(d.cuMemAddressReserve(&a, 2 << 20, 0, 0, 0), kSuccess);
    EXPECT_EQ(d.cuMemMap(a, 2 << 20, 0, allocation, 0), kSuccess);
    b = a + kBytes;
    c = b + kBytes;
    EXPECT_EQ(d.cuMemHostAlloc(reinterpret_cast<void **>(&in), kBytes, 0), kSuccess);
    EXPECT_EQ(d.cuMemHostAlloc(reinterpret_cast<void **>(&out), kBytes, 0), kSuccess);
    EXPECT_EQ(d.cuStreamCreateWithPriority(&s, kStreamNonBlocking, 0), kSuccess);
    EXPECT_EQ(d.cuStreamCreateWithPriority(&t, kStreamNonBlocking, -1), kSuccess);
    for (Event *event : {&e, &f})
      EXPECT_EQ(d.cuEventCreate(event, kEventDisableTiming), kSuccess);
  }

  /// to = from + 1, on a stream.
  void addOne(const char *name, StreamHandle on, Address from, Address to) {
    struct Add {
      const float *from;
      float *to;
    };
    StandInRange ranges[] = {{from, kBytes, 0}, {to, kBytes, 1}};
    auto *add = new Add{static_cast<float *>(reach(from)), static_cast<float *>(reach(to))};
    auto run = [](void *context, uint64_t) {
      auto *add = static_cast<Add *>(context);
      for (size_t i = 0; i < kCount; ++i)
        add->to[i] = add->from[i] + 1;
      return 1;
    };
    EXPECT_EQ(enqueue(on, name, run, add, ranges, 2), kSuccess);
  }

  /// b = a + 1 on s, c = b + 1 on t; the result is in out.
  void issuePair(bool waits) {
    const Driver &d = *driver;
    EXPECT_EQ(d.cuMemcpyHtoDAsync(a, in, kBytes, s), kSuccess);
    addOne("first", s, a, b);
    EXPECT_EQ(d.cuEventRecord(e, s), kSuccess);
    if (waits)
      EXPECT_EQ(d.cuStreamWaitEvent(t, e, 0), kSuccess);
    addOne("second", t, b, c);
    EXPECT_EQ(d.cuMemcpyDtoHAsync(out, c, kBytes, t), kSuccess);
  }
  float runPair(bool waits) {
    std::fill(in, in + kCount, 1.0f);
    issuePair(waits);
    EXPECT_EQ(driver->cuStreamSynchronize(t), kSuccess);
    float result = out[kCount - 1];
    EXPECT_EQ(driver->cuStreamSynchronize(s), kSuccess);
    return result;
  }

  /// Fork, a pair, and joined or not.
  Result capture(bool waits, bool joins, Graph *graph) {
    const Driver &d = *driver;
    EXPECT_EQ(d.cuStreamBeginCapture(s, kCaptureThreadLocal), kSuccess);
    EXPECT_EQ(d.cuEventRecord(f, s), kSuccess);
    EXPECT_EQ(d.cuStreamWaitEvent(t, f, 0), kSuccess);
    issuePair(waits);
    EXPECT_EQ(d.cuEventRecord(f, t), kSuccess);
    if (joins)
      EXPECT_EQ(d.cuStreamWaitEvent(s, f, 0), kSuccess);
    return d.cuStreamEndCapture(s, graph);
  }

  std::shared_ptr<const Driver> driver;
  decltype(&standInEnqueue) enqueue = nullptr;
  decltype(&standInReach) reach = nullptr;
  Address a = 0, b = 0, c = 0;
  float *in = nullptr, *out = nullptr;
  StreamHandle s = nullptr, t = nullptr;
  Event e = nullptr, f = nullptr;
};

struct Found {
  int code;
  std::string text;
};

/// What a child with these settings ends with and says.
Found inChild(const std::string &settings, const std::function<void(Box &)> &body) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 2);
    ::dup2(ends[1], 1);
    ::close(ends[0]);
    ::setenv("STANDIN", settings.c_str(), 1);
    Box box;
    body(box);
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ::close(ends[1]);
  Found found{0, ""};
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    found.text.append(buffer, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  found.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return found;
}

void expectNothing(const Found &found) { EXPECT_EQ(found.code, 0) << found.text; }
void expectReport(const Found &found, const std::string &text) {
  EXPECT_EQ(found.code, 97) << found.text;
  EXPECT_NE(found.text.find(text), std::string::npos) << found.text;
}

TEST(StandIn, AMissingWaitIsARaceThoughTheResultIsRight) {
  expectNothing(inChild("", [](Box &box) { EXPECT_EQ(box.runPair(true), 3); }));
  expectReport(inChild("", [](Box &box) { EXPECT_EQ(box.runPair(false), 3); }),
               "second reads [0x100000001000, +4096), which first writes: nothing orders the two");
}

TEST(StandIn, OtherSchedulesShowIt) {
  expectNothing(inChild("schedule=lifo", [](Box &box) { EXPECT_EQ(box.runPair(true), 3); }));
  expectReport(inChild("schedule=avoid:0", [](Box &box) { EXPECT_NE(box.runPair(false), 3); }), "second reads");
}

TEST(StandIn, WritesAfterReadsAreOrderedToo) {
  expectReport(inChild("",
                       [](Box &box) {
                         box.addOne("reader", box.s, box.b, box.c);
                         box.addOne("writer", box.t, box.a, box.b);
                         EXPECT_EQ(box.driver->cuStreamSynchronize(box.s), kSuccess);
                         EXPECT_EQ(box.driver->cuStreamSynchronize(box.t), kSuccess);
                       }),
               "writer writes [0x100000001000, +4096), which reader reads");
}

TEST(StandIn, TheHostWaitsBeforeItTouchesPinnedMemory) {
  expectReport(inChild("",
                       [](Box &box) {
                         EXPECT_EQ(box.driver->cuMemcpyDtoHAsync(box.out, box.a, kBytes, box.s), kSuccess);
                         volatile float early = box.out[0];
                         (void)early;
                         EXPECT_EQ(box.driver->cuStreamSynchronize(box.s), kSuccess);
                       }),
               "the host touches pinned bytes that a copy to the host writes");
  auto reuse = [](bool waits) {
    return [waits](Box &box) {
      EXPECT_EQ(box.driver->cuMemcpyHtoDAsync(box.a, box.in, kBytes, box.s), kSuccess);
      volatile float read = box.in[0]; // reading is fine
      (void)read;
      if (waits)
        EXPECT_EQ(box.driver->cuStreamSynchronize(box.s), kSuccess);
      box.in[0] = 7;
      EXPECT_EQ(box.driver->cuStreamSynchronize(box.s), kSuccess);
    };
  };
  expectReport(inChild("", reuse(false)), "the host touches pinned bytes that a copy to the device reads");
  expectNothing(inChild("", reuse(true)));
}

TEST(StandIn, TheHostDoesNotTouchDeviceMemory) {
  if (isSanitized)
    GTEST_SKIP() << "the fault is the sanitizer's";
  Found found = inChild("", [](Box &box) {
    volatile float read = *reinterpret_cast<float *>(box.a);
    (void)read;
  });
  EXPECT_EQ(found.code, 97);
  EXPECT_NE(found.text.find("the host touches device address"), std::string::npos) << found.text;
}

TEST(StandIn, GraphsAreForkedJoinedAndReplayed) {
  expectNothing(inChild("", [](Box &box) {
    Graph graph;
    EXPECT_EQ(box.capture(true, false, &graph), kCaptureUnjoined);
    ASSERT_EQ(box.capture(true, true, &graph), kSuccess);
    GraphExec exec;
    EXPECT_EQ(box.driver->cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
    for (int step = 0; step < 3; ++step) {
      std::fill(box.in, box.in + kCount, static_cast<float>(step));
      EXPECT_EQ(box.driver->cuGraphLaunch(exec, box.s), kSuccess);
      EXPECT_EQ(box.driver->cuStreamSynchronize(box.s), kSuccess);
      EXPECT_EQ(box.out[3], static_cast<float>(step) + 2);
    }
  }));
  expectReport(inChild("",
                       [](Box &box) {
                         Graph graph;
                         ASSERT_EQ(box.capture(false, true, &graph), kSuccess);
                         GraphExec exec;
                         EXPECT_EQ(box.driver->cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
                         EXPECT_EQ(box.driver->cuGraphLaunch(exec, box.s), kSuccess);
                         EXPECT_EQ(box.driver->cuStreamSynchronize(box.s), kSuccess);
                       }),
               "second reads");
}

TEST(StandIn, CapturesRefuseWhatWaitsOrAllocates) {
  expectNothing(inChild("", [](Box &box) {
    const Driver &d = *box.driver;
    Graph graph;
    EXPECT_EQ(d.cuStreamBeginCapture(box.s, kCaptureThreadLocal), kSuccess);
    EXPECT_EQ(d.cuStreamSynchronize(box.t), kCaptureUnsupported);
    EXPECT_EQ(d.cuStreamEndCapture(box.s, &graph), kCaptureInvalidated);
    EXPECT_EQ(d.cuStreamBeginCapture(box.s, kCaptureThreadLocal), kSuccess);
    void *pinned;
    EXPECT_EQ(d.cuMemHostAlloc(&pinned, 4096, 0), kCaptureUnsupported);
    EXPECT_EQ(d.cuStreamEndCapture(box.s, &graph), kCaptureInvalidated);
    // An event from before the capture says nothing inside.
    EXPECT_EQ(d.cuEventRecord(box.e, box.t), kSuccess);
    EXPECT_EQ(d.cuStreamBeginCapture(box.s, kCaptureThreadLocal), kSuccess);
    EXPECT_EQ(d.cuStreamWaitEvent(box.s, box.e, 0), kCaptureIsolation);
    EXPECT_EQ(d.cuStreamEndCapture(box.s, &graph), kSuccess);
  }));
}

TEST(StandIn, PageableMemoryAndTheLegacyStreamAreRefused) {
  expectNothing(inChild("", [](Box &box) {
    float pageable[4] = {};
    EXPECT_EQ(box.driver->cuMemcpyHtoDAsync(box.a, pageable, sizeof pageable, box.s), kInvalidValue);
    EXPECT_EQ(box.driver->cuMemsetD8Async(box.a, 0, 4, nullptr), kInvalidHandle);
  }));
}

TEST(StandIn, AnEventThatWasNeverRecordedOrdersNothing) {
  expectReport(inChild("",
                       [](Box &box) {
                         box.addOne("first", box.s, box.a, box.b);
                         EXPECT_EQ(box.driver->cuStreamWaitEvent(box.t, box.e, 0), kSuccess);
                         box.addOne("second", box.t, box.b, box.c);
                         EXPECT_EQ(box.driver->cuStreamSynchronize(box.t), kSuccess);
                       }),
               "second reads");
}

TEST(StandIn, CallsFailWhenToldTo) {
  expectNothing(inChild("fail=cuEventRecord:2:719", [](Box &box) {
    EXPECT_EQ(box.driver->cuEventRecord(box.e, box.s), kSuccess);
    EXPECT_EQ(box.driver->cuEventRecord(box.e, box.s), kLaunchFailed);
    EXPECT_EQ(box.driver->cuEventRecord(box.e, box.s), kSuccess);
  }));
}

TEST(StandIn, WhatIsNotGivenBackIsALeak) {
  Found found = inChild("leaks=1", [](Box &) {});
  EXPECT_EQ(found.code, 97);
  EXPECT_NE(found.text.find("leak: 2097152 bytes of device memory"), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("leak: 2 streams"), std::string::npos) << found.text;
}

} // namespace
