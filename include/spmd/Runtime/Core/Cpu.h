//===- Cpu.h - Levels of CPUs that kernels are made for ---------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_CPU_H
#define SPMD_RUNTIME_CORE_CPU_H

#include <string_view>

namespace spmd::runtime {

/// The level of the x86-64 psABI that `cpu` names, as 3 of "x86-64-v3", or 0 when this processor does not run code for
/// it.
int getCpuLevel(std::string_view cpu);

/// The highest level of those that kernels are made for which this processor runs, as "x86-64-v3"; empty when it runs
/// none of them.
std::string_view getNativeCpu();

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_CPU_H
