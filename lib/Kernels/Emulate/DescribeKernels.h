//===- DescribeKernels.h - what the emulator reads of a kernel --*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EMULATE_DESCRIBEKERNELS_H
#define SPMD_LIB_KERNELS_EMULATE_DESCRIBEKERNELS_H

#include "ThreadFunction.h"

namespace llvm {
class Module;
} // namespace llvm

namespace spmd::kernel {

/// Names of the two functions of one thread of a kernel.
std::string getThreadFunctionName(llvm::StringRef kernel, bool isChecked);

/// Adds the descriptor of a kernel (Runtime/Descriptors.h) to `module`, and the function that launches it.
void describeKernel(llvm::Module &module, const EmulatedKernel &kernel);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_EMULATE_DESCRIBEKERNELS_H
