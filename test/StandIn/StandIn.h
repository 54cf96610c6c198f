//===- StandIn.h - What the stand-ins of NVIDIA's libraries share -*- C++ -*-===//
//
// libcuda.so.1 here runs commands on the host, in an order that a GPU may choose,
// and looks for accesses that nothing orders; README.md says what it checks. The
// stand-ins of cuBLASLt and NCCL put their commands on its streams.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_TEST_STANDIN_STANDIN_H
#define SPMD_TEST_STANDIN_STANDIN_H

#include "lib/Runtime/Cuda/DriverApi.h"

#include <string>

#define STANDIN_API extern "C" __attribute__((visibility("default")))

/// What standInEnter says of a call that is to do nothing, and to say that all is well.
constexpr int kLeftOut = -1;

extern "C" {

/// Bytes that a command reads or writes; device or pinned host addresses.
struct StandInRange {
  uint64_t begin, bytes;
  int32_t writes;
};

/// Issues a command that runs on the host in the order of the stream. `run` is called once all that it waits for is
/// done, with the number of the instance (0, 1, ... when a graph replays it), until it returns 1; 0: it waits for
/// others. The context is kept.
spmd::runtime::cuda::Result standInEnqueue(spmd::runtime::cuda::StreamHandle stream, const char *name,
                                           int (*run)(void *context, uint64_t instance), void *context,
                                           const StandInRange *ranges, size_t numRanges);

/// Whether what is issued to the stream is captured, and how many graphs there are that may have captured something.
int standInCaptures(spmd::runtime::cuda::StreamHandle stream);
int standInGraphs();

/// Where the host reaches the byte at a device or pinned address; null: there is none.
void *standInReach(uint64_t address);

/// Called first by every function of a library: logs it, and says whether it is the one that is to fail, or to do nothing.
int standInEnter(const char *function);

/// A problem that the run ends with.
void standInReport(const char *text);

/// A setting of the environment variable STANDIN ("schedule=random:7 log=FILE"); null: not given.
const char *standInSetting(const char *name);
}

#endif // SPMD_TEST_STANDIN_STANDIN_H
