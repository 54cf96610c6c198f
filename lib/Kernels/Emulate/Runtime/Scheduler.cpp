//===- Scheduler.cpp - turns of the threads of a block --------------------===//

#include "Matrices.h"
#include "Worker.h"
#include "spmd/Runtime/Emulation.h"

namespace spmd::emulation {

//===----------------------------------------------------------------------===//
// Who is next
//===----------------------------------------------------------------------===//

uint64_t Worker::random() { // xorshift64*
  randomState ^= randomState >> 12;
  randomState ^= randomState << 25;
  randomState ^= randomState >> 27;
  return randomState * 0x2545F4914F6CDD1D;
}

/// The ready thread that comes first in the round that starts with `from` (included), or -1.
int Worker::findReady(int from, int step) {
  int warps = static_cast<int>((numThreads + kLanes - 1) / kLanes);
  int warp = from / kLanes, lane = from % kLanes;
  uint32_t mask = step > 0 ? ~0u << lane : ~0u >> (kLanes - 1 - lane);
  // The first warp is looked at twice: from `from` on, and at last whole.
  for (int i = 0; i <= warps; ++i, mask = ~0u) {
    if (uint32_t found = ready[warp] & mask)
      return warp * kLanes + (step > 0 ? __builtin_ctz(found) : kLanes - 1 - __builtin_clz(found));
    warp = step > 0 ? (warp + 1 == warps ? 0 : warp + 1) : (warp == 0 ? warps - 1 : warp - 1);
  }
  return -1;
}

Thread *Worker::pick() {
  int last = static_cast<int>(numThreads) - 1, at = static_cast<int>(current), found = -1;
  switch (settings.schedule) {
  case SPMD_SCHEDULE_REVERSE:
    found = findReady(at <= 0 ? last : at - 1, -1);
    break;
  case SPMD_SCHEDULE_RANDOM:
    found = findReady(static_cast<int>(random() % static_cast<uint64_t>(numThreads)), 1);
    break;
  case SPMD_SCHEDULE_WARP_GREEDY:
    if (at >= 0 && ready[at / kLanes]) {
      uint32_t lanes = ready[at / kLanes], later = lanes & (~1u << (at % kLanes));
      found = at / kLanes * kLanes + __builtin_ctz(later ? later : lanes);
    } else {
      found = findReady(at < 0 ? 0 : at, 1);
    }
    break;
  default:
    found = findReady(at >= last ? 0 : at + 1, 1);
    break;
  }
  if (found < 0)
    return nullptr;
  ready[found / kLanes] &= ~(1u << (found % kLanes));
  current = found;
  return &threads[found];
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// The body of every fibre: threads that begin, one after the other, until the next turn is that of one that waits.
void Worker::runThreads() {
  for (Thread *thread = &threads[current];;) {
    char *stack = thread->stack;
    function(thread, args, coords, static_cast<char *>(sharedMemory.data), blockNumber, thread->number);
    thread->state = Thread::State::Done;
    ++numDone;
    Thread *following = pick();
    if (following && following->state == Thread::State::New) {
      following->stack = stack;
      thread = following;
      continue;
    }
    idleStacks[numIdleStacks++] = stack;
    void *gone;
    spmd_emulation_switch(&gone, following ? following->top : mainTop);
  }
}

void Worker::runFibre(void *worker) { static_cast<Worker *>(worker)->runThreads(); }

/// Begins or goes on with `thread`, on behalf of what saves its place at `save`.
static void enter(void **save, Thread *thread, void (*entry)(void *), void *worker) {
  if (thread->state == Thread::State::New)
    thread->top = prepareStack(thread->stack, entry, worker);
  spmd_emulation_switch(save, thread->top);
}

/// Until `thread` is ready, and it is its turn.
void Worker::wait(Thread &thread) {
  Thread *following = pick();
  if (following == &thread)
    return;
  if (!following)
    spmd_emulation_switch(&thread.top, mainTop);
  else {
    if (following->state == Thread::State::New)
      following->stack = idleStacks[--numIdleStacks];
    enter(&thread.top, following, runFibre, this);
  }
}

bool Worker::runBlock() {
  for (int64_t i = 0; i < numThreads; ++i) {
    threads[i].worker = this;
    threads[i].number = i;
    threads[i].state = Thread::State::New;
    numLocals[i] = 0;
  }
  int warps = static_cast<int>((numThreads + kLanes - 1) / kLanes);
  for (int warp = 0; warp < warps; ++warp) {
    int64_t lanes = numThreads - warp * kLanes;
    ready[warp] = lanes >= kLanes ? ~0u : (1u << lanes) - 1;
    meeting[warp] = 0;
  }
  numDone = numAtBarrier = 0;
  current = -1;
  epoch = 0;
  ++blockSerial;
  randomState = (settings.seed + 1) * 0x9E3779B97F4A7C15 ^ static_cast<uint64_t>(blockNumber + 1) * 0xD1B54A32D192ED03;
  if (!randomState)
    randomState = 1;
  numIdleStacks = numThreads;
  for (int64_t i = 0; i < numThreads; ++i)
    idleStacks[i] = static_cast<char *>(stacks.data) + (numThreads - 1 - i) * kStackBytes;

  Thread *first = pick();
  first->stack = idleStacks[--numIdleStacks];
  enter(&mainTop, first, runFibre, this);
  if (!hasFailed && numDone < numThreads)
    reportStuck();
  return !hasFailed;
}

//===----------------------------------------------------------------------===//
// Barriers, shuffles and matrices
//===----------------------------------------------------------------------===//

void Worker::barrier(Thread &thread, int32_t op) {
  thread.op = op;
  thread.state = Thread::State::AtBarrier;
  if (++numAtBarrier == numThreads) {
    for (int64_t i = 0; i < numThreads; ++i)
      if (threads[i].op != op) {
        beginMessage(threads[i]) << "divergent barrier: it waits at " << kernel->ops[threads[i].op].text << ", thread "
                                 << thread.number << " at another barrier";
        endMessage(threads[i].op);
        fail();
      }
    numAtBarrier = 0;
    ++epoch;
    for (int64_t i = 0; i < numThreads; ++i)
      setReady(threads[i]);
  }
  wait(thread);
}

static bool isShuffle(WarpOp what) { return what == WarpOp::Shuffle; }

/// Gives every lane what it asked for.
void Worker::shuffleWarp(Thread *lanes, int count) {
  for (int lane = 0; lane < count; ++lane) {
    Thread &thread = lanes[lane];
    thread.isValid = thread.source >= 0 && thread.source < kLanes;
    if (thread.isValid && thread.source >= count) {
      beginMessage(thread) << "reads lane " << thread.source << " of a warp of " << count << " threads";
      endMessage(thread.op);
      fail();
    }
    // Poison in the dialect; no number that goes unnoticed.
    thread.received = thread.isValid ? lanes[thread.source].value : ~uint64_t(0);
  }
}

/// What a warp does together, once all are there.
void Worker::exchange(int warp) {
  Thread *lanes = &threads[warp * kLanes];
  int count = meeting[warp];
  switch (WarpOp what = lanes->warpOp; what) {
  case WarpOp::Shuffle:
    shuffleWarp(lanes, count);
    break;
  case WarpOp::LoadMatrix:
  case WarpOp::LoadTransposed:
    loadMatrices(lanes, what == WarpOp::LoadTransposed);
    break;
  case WarpOp::MultiplyBF16:
  case WarpOp::MultiplyF16:
    multiplyMatrices(lanes, what == WarpOp::MultiplyF16);
    break;
  }
  meeting[warp] = 0;
  for (int lane = 0; lane < count; ++lane)
    setReady(lanes[lane]);
}

/// Waits for the other lanes of the warp, and for its turn after that.
void Worker::meetWarp(Thread &thread, WarpOp what, int32_t op) {
  int warp = static_cast<int>(thread.number) / kLanes;
  thread.op = op;
  thread.warpOp = what;
  thread.state = Thread::State::AtWarp;
  for (Thread *other = &threads[warp * kLanes], *end = other + kLanes; other != end && meeting[warp]; ++other)
    if (other->state == Thread::State::AtWarp) {
      if (other->op == op)
        break;
      beginMessage(thread) << "divergent " << (isShuffle(what) ? "shuffle" : "matrix") << ": thread " << other->number
                           << " of the same warp is at another one (" << kernel->ops[other->op].text << ")";
      endMessage(op);
      fail();
    }
  int64_t size = numThreads - warp * kLanes;
  if (++meeting[warp] == (size < kLanes ? size : kLanes))
    exchange(warp);
  wait(thread);
}

uint64_t Worker::shuffle(Thread &thread, uint64_t value, int32_t offset, int32_t width, int32_t mode, int32_t op) {
  auto refuse = [&](const char *what, int64_t number) {
    beginMessage(thread) << what << " " << number;
    endMessage(op);
    fail();
  };
  if (width != kLanes)
    refuse("shuffles over a width other than 32:", width);
  if (offset < 0 || offset >= kLanes)
    refuse(mode == 3 ? "shuffles from a lane out of [0, 32):" : "shuffles by an offset out of [0, 32):", offset);
  int lane = static_cast<int>(thread.number) % kLanes;
  const int sources[] = {lane ^ offset, lane + offset, lane - offset, offset}; // xor, down, up, idx
  thread.source = sources[mode];
  thread.value = value;
  meetWarp(thread, WarpOp::Shuffle, op);
  return thread.received;
}

void Worker::matrix(Thread &thread, WarpOp what, const void *row, uint32_t *words, int32_t op) {
  int64_t lanes = numThreads - thread.number / kLanes * kLanes;
  if (lanes < kLanes) {
    beginMessage(thread) << "has a matrix in a warp of " << lanes << " threads";
    endMessage(op);
    fail();
  }
  thread.row = row;
  thread.words = words;
  meetWarp(thread, what, op);
}

/// Nobody can go on, and not all have ended.
void Worker::reportStuck() {
  const Thread *waiting = nullptr, *other = nullptr;
  for (int64_t i = 0; i < numThreads; ++i) {
    const Thread &thread = threads[i];
    // A shuffle that its own warp leaves alone explains a barrier that others wait at, not the other way round.
    if (thread.state != Thread::State::Done &&
        (!waiting || (waiting->state == Thread::State::AtBarrier && thread.state == Thread::State::AtWarp)))
      waiting = &thread;
  }
  bool isOfWarp = waiting->state == Thread::State::AtWarp;
  for (int64_t i = 0; i < numThreads && !other; ++i)
    if ((threads[i].state != waiting->state || threads[i].op != waiting->op) &&
        (!isOfWarp || i / kLanes == waiting->number / kLanes))
      other = &threads[i];
  Text &text = beginMessage(*waiting) << "divergent "
                                      << (!isOfWarp                    ? "barrier"
                                          : isShuffle(waiting->warpOp) ? "shuffle"
                                                                       : "matrix")
                                      << ": it waits, and thread " << other->number;
  if (other->state == Thread::State::Done)
    text << " has ended";
  else
    text << " waits at " << kernel->ops[other->op].text << " (" << kernel->ops[other->op].source << ")";
  endMessage(waiting->op);
}

//===----------------------------------------------------------------------===//
// Failure
//===----------------------------------------------------------------------===//

Text &Worker::beginMessage(const Thread &thread) {
  message.clear();
  hasFailed = true;
  return message << "kernel " << kernel->name << ", block " << blockNumber << ", thread " << thread.number << ": ";
}

void Worker::endMessage(int32_t op) {
  message << "; at " << kernel->ops[op].text;
  if (*kernel->ops[op].source)
    message << " (" << kernel->ops[op].source << ")";
}

/// Leaves the block; its threads are never gone on with.
void Worker::fail() {
  void *gone;
  spmd_emulation_switch(&gone, mainTop);
  __builtin_unreachable();
}

} // namespace spmd::emulation
