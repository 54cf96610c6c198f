//===- KernelLibrary.cpp --------------------------------------------------===//

#include "spmd/Runtime/Host/KernelLibrary.h"
#include "spmd/Runtime/Core/Cpu.h"
#include "spmd/Runtime/Core/Externals.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/KernelTable.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <set>

using namespace spmd::runtime;

/// Whether the file has the content that the artifact was made with; no hash is not compared.
static Status checkFile(const std::string &path, const std::string &hash) {
  if (hash.empty())
    return {};
  Expected<std::string> code = readFile(path);
  return code ? checkHash(path, *code, hash) : code.error();
}

/// Sets the pointers to functions of the user's that kernels of `opened` call.
static Status bindExternals(const Artifact &artifact, void *opened) {
  const auto *table = static_cast<const char *>(::dlsym(opened, kExternalTableSymbol));
  if (!table)
    return {};
  std::set<std::string> checked;
  for (const External &external : parseExternals(table)) {
    std::string path = artifact.pathOf(std::string(kLibraryFolder) + "/" + external.file);
    if (checked.insert(external.hash + external.file).second)
      if (Status status = checkFile(path, external.hash); !status.ok())
        return status;
    Expected<void *> function = loadFunction(path, external.symbol);
    if (!function)
      return function.error();
    void *pointer = ::dlsym(opened, external.pointer.c_str());
    if (!pointer)
      return Status::badInput("the kernels have no pointer '" + external.pointer + "', which their table names");
    *static_cast<void **>(pointer) = *function;
  }
  return {};
}

Expected<KernelLibrary> KernelLibrary::open(const Artifact &artifact, const std::string &cpu) {
  std::string available;
  const KernelFile *best = nullptr;
  for (const KernelFile &entry : artifact.manifest.kernels) {
    available += (available.empty() ? "" : ", ") + entry.cpu;
    if (getCpuLevel(entry.cpu) == 0 || (!cpu.empty() && entry.cpu != cpu))
      continue;
    if (!best || getCpuLevel(entry.cpu) > getCpuLevel(best->cpu))
      best = &entry;
  }
  if (best) {
    // dlopen searches system folders for a name without a slash.
    std::string path = artifact.pathOf(best->file);
    if (path.find('/') == std::string::npos)
      path = "./" + path;
    if (Status status = checkFile(path, best->hash); !status.ok())
      return status;
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
