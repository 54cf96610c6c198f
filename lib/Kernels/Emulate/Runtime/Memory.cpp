//===- Memory.cpp - checks of memory accesses -----------------------------===//

#include "Worker.h"

namespace spmd::emulation {

//===----------------------------------------------------------------------===//
// Who touched a byte
//===----------------------------------------------------------------------===//

// [Note: touches]
// A touch is 64 bits: serial number of the block (32), barriers that it had passed (20), whether several threads read
// (1), number of the thread (11). Serial numbers are never used twice, so touches of former blocks in shared memory and
// of former launches in global memory are older than any that counts, and nothing has to be cleared.
// One touch stands for the bytes of a granule, of which every access of the kernel touches all or none.

static constexpr int kThreadBits = 11, kEpochBits = 20;
static constexpr uint64_t kSeveral = uint64_t(1) << kThreadBits;
static uint64_t getSerial(uint64_t touch) { return touch >> (kThreadBits + 1 + kEpochBits); }
static int64_t getThread(uint64_t touch) { return static_cast<int64_t>(touch & (kSeveral - 1)); }
/// Block and barriers: two touches with the same are unordered.
static uint64_t getInterval(uint64_t touch) { return touch >> (kThreadBits + 1); }

uint64_t Worker::getTouch(const Thread &thread) const {
  return (blockSerial << kEpochBits | (epoch & ((uint64_t(1) << kEpochBits) - 1))) << (kThreadBits + 1) |
         static_cast<uint64_t>(thread.number);
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// Everything a launch needs, so that nothing is asked of the system while it runs.
bool Worker::prepareMemory() {
  auto fail = [&](const char *what) {
    message.clear();
    message << "kernel " << kernel->name << ": no memory for " << what;
    hasFailed = true;
    return false;
  };
  auto threadBytes = static_cast<size_t>(numThreads) * kStackBytes;
  if (stacks.bytes < threadBytes) {
    if (!stacks.reserve(threadBytes))
      return fail("stacks");
    for (int64_t i = 0; i < numThreads; ++i)
      protectPages(static_cast<char *>(stacks.data) + i * static_cast<int64_t>(kStackBytes), kPage);
  }
  auto sharedBytes = static_cast<size_t>(kernel->sharedBytes);
  if (!sharedMemory.reserve(sharedBytes))
    return fail("shared memory");
  if (!settings.isChecked)
    return true;
  granule = kernel->granule;
  for (int64_t i = 0; i < kernel->numArguments; ++i)
    if (reinterpret_cast<uint64_t>(args[i]) % static_cast<uint64_t>(granule))
      granule = 1;
  if (!sharedTouches.reserve((sharedBytes / static_cast<size_t>(granule) + 1) * sizeof(Touch)))
    return fail("checks of shared memory");
  if (!ranges.reserve(static_cast<size_t>(kernel->numMemories + 1) * sizeof(Range)) ||
      !localRanges.reserve(static_cast<size_t>(kMaxThreads) * kMaxLocals * sizeof(Range)))
    return fail("checks");
  memories = static_cast<Range *>(ranges.data);
  for (int64_t i = 0; i < kernel->numMemories; ++i) {
    const Memory &memory = kernel->memories[i];
    bool isResult = i >= kernel->numOperands && i < kernel->numArguments;
    void *base = memory.table ? const_cast<void *>(memory.table) : args[i];
    memories[i] = {static_cast<char *>(base), memory.bytes, nullptr, isResult, !isResult};
  }
  memories[kernel->numMemories] = {static_cast<char *>(sharedMemory.data), kernel->sharedBytes,
                                   static_cast<Touch *>(sharedTouches.data), true, false};
  return prepareTouches() || fail("checks of global memory");
}

/// Arguments that share bytes with a result share its touches.
bool Worker::prepareTouches() {
  auto overlap = [&](const Range &a, const Range &b) { return a.base < b.base + b.bytes && b.base < a.base + a.bytes; };
  // A group is a maximal chain of overlapping arguments with a result in it; `low` and `high` are its bytes.
  struct Bounds {
    char *low, *high;
  };
  auto grow = [&](Bounds bounds) {
    for (bool grew = true; grew;) {
      grew = false;
      for (int64_t i = 0; i < kernel->numArguments; ++i) {
        const Range &range = memories[i];
        if (!range.bytes || range.base >= bounds.high || range.base + range.bytes <= bounds.low)
          continue;
        if (range.base < bounds.low)
          bounds.low = range.base, grew = true;
        if (range.base + range.bytes > bounds.high)
          bounds.high = range.base + range.bytes, grew = true;
      }
    }
    return bounds;
  };
  for (bool isPlaced : {false, true}) {
    size_t numTouches = 0;
    for (int64_t i = kernel->numOperands; i < kernel->numArguments; ++i) {
      Range &result = memories[i];
      if (result.touches || !result.bytes)
        continue;
      Bounds bounds = grow({result.base, result.base + result.bytes});
      bool isFirst = true;
      for (int64_t j = kernel->numOperands; j < i; ++j)
        isFirst &= !overlap(memories[j], {bounds.low, bounds.high - bounds.low, nullptr, false, false});
      if (!isFirst)
        continue;
      if (isPlaced)
        for (int64_t j = 0; j < kernel->numArguments; ++j)
          if (memories[j].base >= bounds.low && memories[j].base < bounds.high)
            memories[j].touches =
                static_cast<Touch *>(globalTouches.data) + numTouches + (memories[j].base - bounds.low) / granule;
      numTouches += static_cast<size_t>((bounds.high - bounds.low) / granule + 1);
    }
    if (!isPlaced && !globalTouches.reserve(numTouches * sizeof(Touch)))
      return false;
  }
  // What an operand holds was there before.
  for (int64_t i = kernel->numOperands; i < kernel->numArguments; ++i)
    for (int64_t j = 0; j < kernel->numOperands; ++j)
      if (memories[j].base <= memories[i].base &&
          memories[i].base + memories[i].bytes <= memories[j].base + memories[j].bytes)
        memories[i].hasContents = true;
  return true;
}

uint64_t Worker::addLocal(Thread &thread, void *array, int64_t bytes) {
  int32_t &count = numLocals[thread.number];
  if (count == kMaxLocals) {
    beginMessage(thread) << "has more than " << kMaxLocals << " arrays of its own";
    fail();
  }
  static_cast<Range *>(localRanges.data)[thread.number * kMaxLocals + count] = {static_cast<char *>(array), bytes,
                                                                                nullptr, true, true};
  return getTaggedPointer(kernel->numMemories + 1 + count++);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void Worker::nameMemory(int64_t memory) {
  if (memory < kernel->numOperands)
    message << "operand " << memory;
  else if (memory < kernel->numArguments)
    message << "result " << memory - kernel->numOperands;
  else if (memory < kernel->numMemories)
    message << "table " << memory - kernel->numArguments;
  else if (memory == kernel->numMemories)
    message << "shared memory";
  else
    message << "array " << memory - kernel->numMemories - 1 << " of the thread";
}

void Worker::nameToucher(uint64_t touch, const Thread &thread) {
  if (getSerial(touch) == blockSerial && getThread(touch) == thread.number)
    message << "other threads"; // of those that read, only the first is known
  else if (getSerial(touch) == blockSerial)
    message << "thread " << getThread(touch);
  else
    message << "block " << blockNumber - static_cast<int64_t>(blockSerial - getSerial(touch)) << ", thread "
            << getThread(touch);
}

void *Worker::access(Thread &thread, uint64_t pointer, int32_t op, bool isStore) {
  const Op &what = kernel->ops[op];
  int64_t memory = static_cast<int64_t>(pointer >> kTagShift) - 1, numShared = kernel->numMemories;
  bool isLocal = memory > numShared && memory <= numShared + numLocals[thread.number];
  if (memory < 0 || (memory > numShared && !isLocal)) {
    beginMessage(thread) << "the pointer belongs to no memory of the kernel";
    endMessage(op);
    fail();
  }
  const Range &range =
      isLocal ? static_cast<Range *>(localRanges.data)[thread.number * kMaxLocals + memory - numShared - 1]
              : memories[memory];
  int64_t offset = static_cast<int64_t>(pointer & ((uint64_t(1) << kTagShift) - 1)) - static_cast<int64_t>(kTagBias);
  auto refuse = [&](const char *how) {
    beginMessage(thread) << how << ": " << (isStore ? "writes" : "reads") << " bytes " << offset << " to "
                         << offset + what.bytes - 1 << " of ";
    nameMemory(memory);
    message << ", which has " << range.bytes << " bytes";
  };
  if (offset < 0 || offset + what.bytes > range.bytes) {
    refuse("out of bounds");
    endMessage(op);
    fail();
  }
  char *address = range.base + offset;
  if (reinterpret_cast<uint64_t>(address) % static_cast<uint64_t>(what.alignment)) {
    refuse("misaligned");
    message << " and starts at an address that is " << reinterpret_cast<uint64_t>(range.base) % 16
            << " modulo 16; it must be aligned to " << what.alignment << " bytes";
    endMessage(op);
    fail();
  }
  if (isStore && !range.isWritable) {
    refuse("writes what it may only read");
    endMessage(op);
    fail();
  }
  if (range.touches)
    check(thread, range, memory, offset, op, isStore);
  return address;
}

/// Reads of what nobody wrote, and accesses of several threads that nothing orders.
void Worker::check(Thread &thread, const Range &range, int64_t memory, int64_t offset, int32_t op, bool isStore) {
  bool isShared = memory == kernel->numMemories;
  uint64_t now = getTouch(thread), oldest = isShared ? blockSerial : firstSerial;
  auto isOther = [&](uint64_t touch) { // nothing orders `touch` and this access
    if (getSerial(touch) < oldest)
      return false;
    bool isUnordered = getSerial(touch) != blockSerial || getInterval(touch) == getInterval(now);
    return isUnordered &&
           (getSerial(touch) != blockSerial || getThread(touch) != thread.number || (touch & kSeveral));
  };
  auto refuse = [&](int64_t at, const char *does, uint64_t other, const char *did) {
    beginMessage(thread) << "data race: " << does << " byte " << at << " of ";
    nameMemory(memory);
    message << ", which ";
    nameToucher(other, thread);
    message << did;
    endMessage(op);
    fail();
  };
  Touch *touches = range.touches + offset / granule;
  for (int64_t i = offset, end = offset + kernel->ops[op].bytes; i < end; i += granule) {
    Touch &touch = *touches++;
    if (isOther(touch.writer))
      refuse(i, isStore ? "writes" : "reads", touch.writer, " wrote with no barrier between");
    if (isStore) {
      if (isOther(touch.reader))
        refuse(i, "writes", touch.reader, " read with no barrier between");
      touch.writer = now;
      continue;
    }
    if (!range.hasContents && getSerial(touch.writer) < oldest) {
      beginMessage(thread) << "reads byte " << i << " of ";
      nameMemory(memory);
      message << ", which nobody wrote";
      endMessage(op);
      fail();
    }
    // The first reader since the last barrier is kept, and whether there were more. One in another block stays for
    // good: nothing orders it and what this block writes.
    bool isCurrent = getSerial(touch.reader) >= oldest &&
                     (getSerial(touch.reader) != blockSerial || getInterval(touch.reader) == getInterval(now));
    if (!isCurrent)
      touch.reader = now;
    else if (getSerial(touch.reader) != blockSerial || getThread(touch.reader) != thread.number)
      touch.reader |= kSeveral;
  }
}

} // namespace spmd::emulation
