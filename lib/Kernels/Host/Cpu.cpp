//===- Cpu.cpp - CPUs that kernels are generated for ----------------------===//

#include "Cpu.h"
#include "spmd/Kernels/SharedObject.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace spmd::kernel {

// 16 registers of 8 lanes and, since Haswell, 256 KiB; 32 registers of 16 lanes and, since Skylake-SP and on Zen 4 and
// 5, 1 MiB.
static constexpr Cpu kCpus[] = {
    {"x86-64-v3", /*accumulators=*/6, /*cacheBytes=*/256 << 10},
    {"x86-64-v4", /*accumulators=*/16, /*cacheBytes=*/1 << 20},
};

ArrayRef<StringRef> getKernelCpus() {
  static constexpr StringRef kNames[] = {kCpus[0].name, kCpus[1].name};
  return kNames;
}

const Cpu &getCpu(StringRef name) {
  return *find_if(kCpus, [&](const Cpu &cpu) { return cpu.name == name; });
}

} // namespace spmd::kernel
