//===- Platform.h - what a freestanding emulator needs ----------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EMULATE_RUNTIME_PLATFORM_H
#define SPMD_LIB_KERNELS_EMULATE_RUNTIME_PLATFORM_H

#include <initializer_list>
#include <stddef.h>
#include <stdint.h>

namespace spmd::emulation {

/// Bytes of a page, and of the stack of a fibre with the guard page below it.
constexpr size_t kPage = 4096;
constexpr size_t kStackBytes = 64 * 1024;

/// Zeroed memory from the system, or null.
void *allocatePages(size_t bytes);
void releasePages(void *pages, size_t bytes);
/// An access to these pages is a fault from now on.
void protectPages(void *pages, size_t bytes);

/// Held for a few instructions only.
class SpinLock {
public:
  void lock() {
    while (__atomic_exchange_n(&held, true, __ATOMIC_ACQUIRE))
      __builtin_ia32_pause();
  }
  void unlock() { __atomic_store_n(&held, false, __ATOMIC_RELEASE); }

private:
  bool held = false;
};

/// Memory that grows and keeps nothing when it does.
struct Pages {
  void *data = nullptr;
  size_t bytes = 0;

  /// False when the system has no more.
  bool reserve(size_t needed);
};

/// Saves the registers that a function must keep on the current stack, its top at `*save`, and goes on with the stack
/// whose top is `to`.
extern "C" void spmd_emulation_switch(void **save, void *to);

/// The top of a new stack on which `entry(argument)` starts; it must never return.
void *prepareStack(char *stack, void (*entry)(void *), void *argument);

} // namespace spmd::emulation

#endif // SPMD_LIB_KERNELS_EMULATE_RUNTIME_PLATFORM_H
