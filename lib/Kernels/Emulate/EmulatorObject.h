//===- EmulatorObject.h - the emulator as an object file --------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EMULATE_EMULATOROBJECT_H
#define SPMD_LIB_KERNELS_EMULATE_EMULATOROBJECT_H

#include "llvm/ADT/ArrayRef.h"

namespace spmd::kernel {

/// The object file made of Runtime/, which is part of the compiler's own data.
llvm::ArrayRef<char> getEmulatorObject();

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_EMULATE_EMULATOROBJECT_H
