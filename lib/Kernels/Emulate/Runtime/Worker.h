//===- Worker.h - runs the blocks of a launch one by one --------*- C++ -*-===//
//
// [Note: threads as fibres]
// The threads of a block take turns on one thread of the host. A thread runs until it waits, at a barrier for its block
// or at a shuffle or a product of matrices for its warp, or ends; then the schedule picks the next that can go on. A
// thread that has not begun needs no stack: it begins on that of the one that just ended, or on a free one. So a kernel
// without barriers and shuffles runs on one stack without a switch.
//
// Time in a block is counted in barriers: memory accesses of different threads between two barriers are unordered (a
// shuffle orders none), whatever the schedule made of them. Memory.cpp checks with that clock.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_EMULATE_RUNTIME_WORKER_H
#define SPMD_LIB_KERNELS_EMULATE_RUNTIME_WORKER_H

#include "Descriptors.h"
#include "Platform.h"
#include "Text.h"

namespace spmd::emulation {

class Worker;

constexpr int kWarps = kMaxThreads / kLanes;

/// Who touched some bytes last.
struct Touch {
  uint64_t writer, reader;
};

/// What the lanes of a warp do together.
enum class WarpOp : uint8_t { Shuffle, LoadMatrix, LoadTransposed, MultiplyBF16, MultiplyF16 };

struct Thread {
  enum class State : uint8_t { New, Ready, AtBarrier, AtWarp, Done };

  Worker *worker;
  int64_t number;
  void *top;   ///< of its stack, while it waits
  char *stack; ///< that it runs on
  State state;
  int32_t op; ///< that it waits at
  WarpOp warpOp; ///< what it does with its warp there
  // Of a shuffle.
  uint64_t value, received;
  int32_t source;
  bool isValid;
  // Of a matrix.
  const void *row; ///< eight elements of 16 bits
  uint32_t *words; ///< its fragments
};

/// A memory as one launch sees it.
struct Range {
  char *base;
  int64_t bytes;
  Touch *touches; ///< one per granule; null where nothing is written
  bool isWritable, hasContents;
};

/// Settings of all workers.
struct Settings {
  bool isChecked;
  int32_t schedule;
  uint64_t seed;
};

/// What one thread of the host needs to run blocks.
class Worker {
public:
  /// Runs blocks [begin, end). False when a check failed; `message` says which.
  bool run(Kernel &kernel, const Settings &settings, void *const *args, const int64_t *coords, int64_t begin,
           int64_t end);
  void release();

  // Called by the code of kernels.
  void barrier(Thread &thread, int32_t op);
  uint64_t shuffle(Thread &thread, uint64_t value, int32_t offset, int32_t width, int32_t mode, int32_t op);
  void matrix(Thread &thread, WarpOp what, const void *row, uint32_t *words, int32_t op);
  void *access(Thread &thread, uint64_t pointer, int32_t op, bool isStore);
  uint64_t addLocal(Thread &thread, void *array, int64_t bytes);

  Worker *next = nullptr; ///< in the list of idle workers
  Text message;

private:
  // Scheduler.cpp
  bool runBlock();
  static void runFibre(void *worker);
  void runThreads();
  Thread *pick();
  int findReady(int from, int step);
  void wait(Thread &thread);
  void setReady(Thread &thread) {
    thread.state = Thread::State::Ready;
    ready[thread.number / kLanes] |= 1u << (thread.number % kLanes);
  }
  void meetWarp(Thread &thread, WarpOp what, int32_t op);
  void exchange(int warp);
  void shuffleWarp(Thread *lanes, int count);
  void reportStuck();
  [[noreturn]] void fail();
  Text &beginMessage(const Thread &thread);
  void endMessage(int32_t op);
  uint64_t random();

  // Memory.cpp
  bool prepareMemory();
  bool prepareTouches();
  void check(Thread &thread, const Range &range, int64_t memory, int64_t offset, int32_t op, bool isStore);
  void nameMemory(int64_t memory);
  void nameToucher(uint64_t touch, const Thread &thread);
  uint64_t getTouch(const Thread &thread) const;

  Kernel *kernel = nullptr;
  ThreadFunction function = nullptr;
  Settings settings{};
  void *const *args = nullptr;
  const int64_t *coords = nullptr;
  int64_t blockNumber = 0, numThreads = 0;
  bool hasFailed = false;

  // Scheduling.
  void *mainTop = nullptr; ///< of the host's own stack
  Thread threads[kMaxThreads];
  uint32_t ready[kWarps];
  int32_t meeting[kWarps]; ///< threads of the warp at what it does together
  int64_t current = 0, numDone = 0, numAtBarrier = 0;
  char *idleStacks[kMaxThreads];
  int64_t numIdleStacks = 0, numStacks = 0;
  uint64_t randomState = 0;

  // Memory. A touch is the block's serial number, its barriers so far, and the thread.
  uint64_t blockSerial = 0, firstSerial = 0, epoch = 0;
  Pages stacks, sharedMemory, sharedTouches, globalTouches, ranges, localRanges;
  Range *memories = nullptr;
  int64_t granule = 1; ///< bytes that are always touched together
  int32_t numLocals[kMaxThreads];
};

} // namespace spmd::emulation

#endif // SPMD_LIB_KERNELS_EMULATE_RUNTIME_WORKER_H
