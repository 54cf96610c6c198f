//===- Platform.cpp - what a freestanding emulator needs ------------------===//
//
// No C library: artifacts run wherever their processor does. System calls are those of Linux on x86-64.
//
//===----------------------------------------------------------------------===//

#include "Platform.h"

namespace {

long callSystem(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

constexpr long kMmap = 9, kMprotect = 10, kMunmap = 11;
constexpr long kReadWrite = 3, kPrivateAnonymousNoReserve = 0x4022;

} // namespace

// What compilers call for copies and fills.
extern "C" void *memset(void *to, int value, size_t bytes) {
  void *at = to;
  __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
  return to;
}

extern "C" void *memcpy(void *to, const void *from, size_t bytes) {
  void *at = to;
  __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes)::"memory");
  return to;
}

namespace spmd::emulation {

void *allocatePages(size_t bytes) {
  long result = callSystem(kMmap, 0, static_cast<long>(bytes), kReadWrite, kPrivateAnonymousNoReserve, -1, 0);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void *>(result);
}

void releasePages(void *pages, size_t bytes) {
  callSystem(kMunmap, reinterpret_cast<long>(pages), static_cast<long>(bytes), 0, 0, 0, 0);
}

void protectPages(void *pages, size_t bytes) {
  callSystem(kMprotect, reinterpret_cast<long>(pages), static_cast<long>(bytes), 0, 0, 0, 0);
}

bool Pages::reserve(size_t needed) {
  if (needed <= bytes)
    return true;
  if (data)
    releasePages(data, bytes);
  bytes = (needed + kPage - 1) / kPage * kPage;
  data = allocatePages(bytes);
  if (!data)
    bytes = 0;
  return data != nullptr;
}

__asm__(R"(
  .text
  .globl spmd_emulation_switch
  .hidden spmd_emulation_switch
  .type spmd_emulation_switch, @function
spmd_emulation_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
  .size spmd_emulation_switch, . - spmd_emulation_switch

  .globl spmd_emulation_start
  .hidden spmd_emulation_start
  .type spmd_emulation_start, @function
spmd_emulation_start:
  mov %r12, %rdi
  call *%rbx
  ud2
  .size spmd_emulation_start, . - spmd_emulation_start
)");

extern "C" void spmd_emulation_start();

void *prepareStack(char *stack, void (*entry)(void *), void *argument) {
  // Stacks are a power of two apart: their tops would all lie in the same few lines of the cache.
  size_t color = reinterpret_cast<size_t>(stack) / kStackBytes % 31 * 128;
  // Calls leave the stack aligned to 16 bytes: spmd_emulation_start is returned to, not called.
  void **top = reinterpret_cast<void **>(stack + kStackBytes - color);
  *--top = nullptr;
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(spmd_emulation_start);
  *--top = nullptr;                         // rbp
  *--top = reinterpret_cast<void *>(entry); // rbx
  *--top = argument;                        // r12
  *--top = nullptr;
  *--top = nullptr;
  *--top = nullptr;
  return top;
}

} // namespace spmd::emulation
