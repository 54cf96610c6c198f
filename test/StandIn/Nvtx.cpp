//===- Nvtx.cpp - A profiler's library ------------------------------------===//
//
// Writes the ranges that it is told of to the file NVTX_LOG, one a line, indented
// by how deep they are; what is left open when the process ends, too.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Cuda/NvtxApi.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

using namespace spmd::runtime;

namespace {

std::mutex mutex;
std::set<std::string> texts; ///< addresses in it are handles
std::FILE *log = nullptr;
int open = 0;
thread_local int depth = 0;

void write(const std::string &line) {
  std::fprintf(log, "%*s%s\n", 2 * depth, "", line.c_str());
  std::fflush(log);
}

const char *keep(const char *text) {
  std::lock_guard<std::mutex> lock(mutex);
  return texts.emplace(text).first->c_str();
}

nvtx::Domain createDomain(const char *name) { return reinterpret_cast<nvtx::Domain>(const_cast<char *>(keep(name))); }

nvtx::String registerString(nvtx::Domain, const char *text) {
  return reinterpret_cast<nvtx::String>(const_cast<char *>(keep(text)));
}

int rangePush(nvtx::Domain domain, const nvtx::EventAttributes *attributes) {
  std::lock_guard<std::mutex> lock(mutex);
  bool isWell = attributes->version == nvtx::kVersion && attributes->size == sizeof *attributes &&
                attributes->textType == nvtx::kRegisteredText;
  write(isWell ? std::string(reinterpret_cast<const char *>(domain)) + ": " +
                     reinterpret_cast<const char *>(attributes->text.registered)
               : "bad attributes");
  ++open;
  return depth++;
}

int rangePop(nvtx::Domain) {
  std::lock_guard<std::mutex> lock(mutex);
  --open;
  if (depth == 0)
    write("a pop without a push");
  return depth ? --depth : -1;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx::ExportTable getTable) {
  const char *path = std::getenv("NVTX_LOG");
  log = path ? std::fopen(path, "a") : nullptr;
  const auto *version = static_cast<const nvtx::VersionTable *>(getTable(nvtx::kVersionTable));
  const auto *callbacks = static_cast<const nvtx::CallbacksTable *>(getTable(nvtx::kCallbacksTable));
  nvtx::FunctionTable table = nullptr;
  unsigned count = 0;
  if (!log || !version || version->version != nvtx::kVersion || !callbacks || callbacks->size < sizeof *callbacks ||
      !callbacks->getModuleFunctionTable(nvtx::kCore2, &table, &count) || count <= nvtx::kCreateDomain)
    return 0;
  version->setInjectionVersion(nvtx::kVersion);
  *table[nvtx::kCreateDomain] = reinterpret_cast<nvtx::Function>(createDomain);
  *table[nvtx::kRegisterString] = reinterpret_cast<nvtx::Function>(registerString);
  *table[nvtx::kRangePush] = reinterpret_cast<nvtx::Function>(rangePush);
  *table[nvtx::kRangePop] = reinterpret_cast<nvtx::Function>(rangePop);
  std::atexit([] {
    if (open)
      write("ranges left open: " + std::to_string(open));
  });
  return 1;
}
