//===- EmulatorObject.cpp - the emulator as an object file ----------------===//

#include "EmulatorObject.h"

// Not .incbin, which hides the file from the compiler.
#pragma clang diagnostic ignored "-Wc23-extensions"
alignas(16) static const unsigned char kObject[] = {
#embed SPMD_EMULATOR_OBJECT
};

llvm::ArrayRef<char> spmd::kernel::getEmulatorObject() {
  return {reinterpret_cast<const char *>(kObject), sizeof kObject};
}
