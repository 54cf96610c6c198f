//===- KernelLibrary.cpp --------------------------------------------------===//

#include "spmd/Runtime/Host/KernelLibrary.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>

using namespace spmd::runtime;

/// Whether this processor runs code for a level of the x86-64 psABI.
static bool supports(const std::string &cpu) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (cpu == "x86-64")
    return true;
  if (cpu == "x86-64-v3")
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (cpu == "x86-64-v4")
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
  return false;
}

Expected<KernelLibrary> KernelLibrary::open(const Artifact &artifact,
                                            const std::string &cpu) {
  std::string available;
  for (const KernelFile &entry : artifact.manifest.kernels) {
    available += (available.empty() ? "" : ", ") + entry.cpu;
    if (!supports(entry.cpu) || (!cpu.empty() && entry.cpu != cpu))
      continue;
    // dlopen searches system folders for a name without a slash.
    std::string path = artifact.pathOf(entry.file);
    if (path.find('/') == std::string::npos)
      path = "./" + path;
    void *opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened)
      return Status::badInput("cannot load kernels: " +
                              std::string(::dlerror()));
    KernelLibrary library;
    library.handle = std::shared_ptr<void>(opened, ::dlclose);
    library.level = entry.cpu;
    return library;
  }
  if (!cpu.empty())
    return Status::badInput("the artifact has no kernels for cpu '" + cpu +
                            "' that this processor runs; it has: " + available);
  return Status::badInput("this processor runs none of the artifact's kernels: "
                          + available);
}

KernelFunction KernelLibrary::find(const std::string &symbol) const {
  return reinterpret_cast<KernelFunction>(
      ::dlsym(handle.get(), symbol.c_str()));
}
