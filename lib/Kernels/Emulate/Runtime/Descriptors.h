//===- Descriptors.h - what the compiler tells of a kernel ------*- C++ -*-===//
//
// Constant data beside the code of each emulated kernel: written by ../EmulatedObject.cpp, read by the emulator. Every
// member is a pointer or 64 bits wide, in both places in this order.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_EMULATE_RUNTIME_DESCRIPTORS_H
#define SPMD_LIB_KERNELS_EMULATE_RUNTIME_DESCRIPTORS_H

#include <stdint.h>

namespace spmd::emulation {

struct Thread;

/// One thread of a block from its start to its end.
using ThreadFunction = void (*)(Thread *thread, void *const *args, const int64_t *coords, char *shared, int64_t block,
                                int64_t number);

/// A load, store, barrier, shuffle or matrix op; its number is its place among those of the kernel.
struct Op {
  const char *text;   ///< "llvm.load of vector<4xf32>"
  const char *source; ///< "h.0.ln_1, train.py:12"; empty where unknown
  int64_t bytes, alignment; ///< of a load or store
};

/// Memory that the kernel is given.
struct Memory {
  int64_t bytes;
  const void *table; ///< a constant of the kernel's own; null for an argument
};

struct Kernel {
  const char *name;
  ThreadFunction plain, checked; ///< `plain` may be null
  int64_t blockSize, gridSize, sharedBytes;
  int64_t numOperands, numArguments, numMemories; ///< operands, then results, then tables
  int64_t granule; ///< the largest power of two that divides bytes and alignment of all its accesses
  const Memory *memories;
  const Op *ops;
  // Counted while running.
  int64_t launches, blocks;
};

/// In checked code a pointer is no address: it says which memory it belongs to, whatever was added to it since, so that
/// a wrong index is found even where it lies in somebody else's memory. Its upper 16 bits are the memory's number plus
/// one: first those of Kernel::memories, then shared memory, then the arrays of the thread itself.
constexpr int kTagShift = 48;
/// Offsets of either sign leave the upper bits alone.
constexpr uint64_t kTagBias = uint64_t(1) << 47;

constexpr uint64_t getTaggedPointer(int64_t memory) { return (uint64_t(memory + 1) << kTagShift) + kTagBias; }

/// Lanes of a warp, and the most threads of a block.
constexpr int kLanes = 32;
constexpr int kMaxThreads = 1024;
/// The most arrays that a thread has of its own.
constexpr int kMaxLocals = 64;

} // namespace spmd::emulation

#endif // SPMD_LIB_KERNELS_EMULATE_RUNTIME_DESCRIPTORS_H
