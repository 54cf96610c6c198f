//===- KernelLibrary.cpp --------------------------------------------------===//

#include "spmd/Runtime/Host/KernelLibrary.h"
#include "spmd/Runtime/Core/Externals.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/KernelTable.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>

using namespace spmd::runtime;

/// The level of the x86-64 psABI that `cpu` names, or 0 when this processor does
/// not run code for it.
static int levelOf(const std::string &cpu) {
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

/// Sets the pointers to functions of the user's that kernels of `opened` call. Libraries stay loaded: threads of theirs
/// may.
static Status bindExternals(const Artifact &artifact, void *opened) {
  const auto *table = static_cast<const char *>(::dlsym(opened, kExternalTableSymbol));
  if (!table)
    return {};
  for (const External &external : parseExternals(table)) {
    std::string path = artifact.pathOf(std::string(kLibraryFolder) + "/" + external.file);
    Expected<std::string> code = readFile(path);
    if (!code)
      return code.error();
    if (Status status = checkHash(path, *code, external.hash); !status.ok())
      return status;
    if (path.front() != '/')
      path = "./" + path;
    void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
      return Status::badInput("cannot load the library of an operator of yours: " + std::string(::dlerror()));
    void *function = ::dlsym(library, external.symbol.c_str());
    void *pointer = ::dlsym(opened, external.pointer.c_str());
    ::dlclose(library);
    if (!function || !pointer)
      return Status::badInput("'" + path + "' has no function '" + external.symbol + "'");
    *static_cast<void **>(pointer) = function;
  }
  return {};
}

Expected<KernelLibrary> KernelLibrary::open(const Artifact &artifact, const std::string &cpu) {
  std::string available;
  const KernelFile *best = nullptr;
  for (const KernelFile &entry : artifact.manifest.kernels) {
    available += (available.empty() ? "" : ", ") + entry.cpu;
    if (levelOf(entry.cpu) == 0 || (!cpu.empty() && entry.cpu != cpu))
      continue;
    if (!best || levelOf(entry.cpu) > levelOf(best->cpu))
      best = &entry;
  }
  if (best) {
    // dlopen searches system folders for a name without a slash.
    std::string path = artifact.pathOf(best->file);
    if (path.find('/') == std::string::npos)
      path = "./" + path;
    if (!best->hash.empty()) {
      Expected<std::string> code = readFile(path);
      if (!code)
        return code.error();
      if (Status status = checkHash(path, *code, best->hash); !status.ok())
        return status;
    }
    void *opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened)
      return Status::badInput("cannot load kernels: " + std::string(::dlerror()));
    const auto *table = static_cast<const char *>(::dlsym(opened, kKernelTableSymbol));
    Status status = table ? checkKernelTable(artifact.plan, table)
                          : Status::badInput("does not say what its kernels take; compile the step again");
    KernelLibrary library;
    library.handle = std::shared_ptr<void>(opened, ::dlclose);
    if (!status.ok()) {
      status.message = "'" + path + "': " + status.message;
      return status;
    }
    if (Status bound = bindExternals(artifact, opened); !bound.ok())
      return bound;
    library.kernelTable = table;
    library.level = best->cpu;
    library.emulator = Emulation::find(opened);
    return library;
  }
  if (!cpu.empty())
    return Status::badInput("the artifact has no kernels for cpu '" + cpu +
                            "' that this processor runs; it has: " + available);
  return Status::badInput("this processor runs none of the artifact's kernels: " + available);
}

KernelFunction KernelLibrary::find(const std::string &symbol) const {
  return reinterpret_cast<KernelFunction>(::dlsym(handle.get(), symbol.c_str()));
}
