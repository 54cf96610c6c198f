//===- EmulatorObject.cpp - the emulator as an object file ----------------===//

#include "EmulatorObject.h"

__asm__(R"(
  .section .rodata
  .balign 16
  .globl spmd_emulator_object
  .hidden spmd_emulator_object
spmd_emulator_object:
  .incbin ")" SPMD_EMULATOR_OBJECT R"("
  .globl spmd_emulator_object_end
  .hidden spmd_emulator_object_end
spmd_emulator_object_end:
  .text
)");

extern "C" const char spmd_emulator_object[], spmd_emulator_object_end[];

llvm::ArrayRef<char> spmd::kernel::getEmulatorObject() { return {spmd_emulator_object, spmd_emulator_object_end}; }
