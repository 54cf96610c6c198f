//===- Cpu.cpp - Levels of CPUs that kernels are made for -----------------===//

#include "spmd/Runtime/Core/Cpu.h"

using namespace spmd::runtime;

int spmd::runtime::getCpuLevel(std::string_view cpu) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (cpu == "x86-64")
    return 1;
  if (cpu == "x86-64-v3" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
    return 3;
  if (cpu == "x86-64-v4" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return 4;
#endif
  return 0;
}

std::string_view spmd::runtime::getNativeCpu() {
  for (std::string_view cpu : {"x86-64-v4", "x86-64-v3"})
    if (getCpuLevel(cpu) != 0)
      return cpu;
  return {};
}
