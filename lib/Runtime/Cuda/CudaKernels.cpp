//===- CudaKernels.cpp ----------------------------------------------------===//

#include "CudaKernels.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/KernelTable.h"

#include <algorithm>
#include <cstdlib>

namespace spmd::runtime::cuda {

/// Dynamic shared memory that a kernel may have without being asked.
constexpr int64_t kSharedBytes = 48 << 10;

/// 90 of "sm_90".
static int numberOf(const std::string &chip) { return std::atoi(chip.c_str() + chip.find('_') + 1); }

Expected<KernelArchive> KernelArchive::open(const Artifact &artifact, int chip) {
  const KernelFile *best = nullptr;
  bool isPtx = false;
  std::string available;
  for (const KernelFile &file : artifact.manifest.kernels) {
    if (!file.cpu.empty())
      continue;
    int compiled = numberOf(file.chip);
    available += (available.empty() ? "" : ", ") + file.chip;
    bool runs = compiled / 10 == chip / 10 && compiled <= chip;
    bool compiles = !file.ptx.empty() && compiled <= chip;
    if (!runs && !compiles)
      continue;
    // Machine code before PTX, then the nearest.
    if (!best || runs > !isPtx || (runs == !isPtx && compiled > numberOf(best->chip))) {
      best = &file;
      isPtx = !runs;
    }
  }
  if (!best)
    return Status::badInput("'" + artifact.folder + "' has kernels for " + available + ", which an sm_" +
                            std::to_string(chip) + " does not run; compile with --target=cuda:sm_" +
                            std::to_string(chip) + " (chips are in docs/cuda.md)");
  KernelArchive archive;
  archive.name = best->chip;
  archive.isPtx = isPtx;
  archive.path = artifact.pathOf(isPtx ? best->ptx : best->file);
  Expected<MappedFile> file = MappedFile::open(archive.path);
  if (!file)
    return file.error();
  archive.code = std::move(*file);
  if (const std::string &hash = isPtx ? best->ptxHash : best->hash; !hash.empty())
    if (Status status = checkHash(archive.path, {archive.code.data(), archive.code.size()}, hash); !status.ok())
      return status;
  std::string_view bytes(archive.code.data(), archive.code.size());
  std::string &table = archive.table;
  table = isPtx ? findPtxTable(bytes) : findArchiveTable(bytes);
  if (table.empty())
    return Status::badInput("'" + archive.path + "' does not say what its kernels take; compile the step again");
  if (Status status = checkKernelTable(artifact.plan, table); !status.ok())
    return status;
  const std::vector<KernelLaunch> &launches = artifact.manifest.launches;
  if (Status status = checkLaunchTable(launches, archive.name, table); !status.ok())
    return status;
  auto isUsers = [&](const KernelLaunch &launch) { return launch.user && launch.chip == archive.name; };
  if (auto user = std::find_if(launches.begin(), launches.end(), isUsers); isPtx && user != launches.end())
    return Status::badInput("the kernel '" + user->user->function + "' of an operator of yours is in a cubin for " +
                            archive.name + ", which an sm_" + std::to_string(chip) +
                            " does not run; declare one for it, and "
                            "compile with --target=cuda:sm_" +
                            std::to_string(chip));
  return archive;
}

Expected<std::unique_ptr<CudaKernels>> CudaKernels::load(const Artifact &artifact, const KernelArchive &archive,
                                                         std::shared_ptr<const Gpu> gpu) {
  if (Status status = gpu->use(); !status.ok())
    return status;
  const Driver &d = gpu->driver();
  std::unique_ptr<CudaKernels> loaded(new CudaKernels(gpu));
  loaded->tableText = archive.table;
  auto loadModule = [&](const char *image, const std::string &what) -> Expected<Module> {
    Module module = nullptr;
    if (Result result = d.cuModuleLoadData(&module, image))
      return d.check(result, "cuModuleLoadData of " + what + " of '" + archive.path + "'");
    loaded->modules.push_back(module);
    return module;
  };
  Module whole = nullptr;
  std::string text;
  if (archive.isPtx) {
    text.assign(archive.code.data(), archive.code.size()); // ends with a zero
    Expected<Module> module = loadModule(text.c_str(), "the PTX");
    if (!module)
      return module.error();
    whole = *module;
  }
  std::map<int64_t, Module> byOffset; // a cubin of the user's may have several kernels
  for (const KernelLaunch &launch : artifact.manifest.launches) {
    if (launch.chip != archive.name)
      continue;
    auto known = byOffset.find(launch.offset);
    Module module = known != byOffset.end() ? known->second : whole;
    if (!module) {
      if (launch.bytes <= 0 || launch.offset < 0 ||
          launch.offset + launch.bytes > static_cast<int64_t>(archive.code.size()))
        return Status::badInput("'" + archive.path + "' does not hold kernel '" + launch.kernel + "'");
      Expected<Module> own = loadModule(archive.code.data() + launch.offset, "kernel '" + launch.kernel + "'");
      if (!own)
        return own.error();
      module = byOffset[launch.offset] = *own;
    }
    CudaKernel kernel{nullptr, &launch};
    SPMD_CUDA_TRY(d, cuModuleGetFunction, &kernel.function, module,
                  launch.user ? launch.user->function.c_str() : launch.kernel.c_str());
    if (launch.dynamicSharedBytes > kSharedBytes)
      SPMD_CUDA_TRY(d, cuFuncSetAttribute, kernel.function, kMaxDynamicSharedBytes,
                    static_cast<int>(launch.dynamicSharedBytes));
    // Not in the middle of a capture.
    SPMD_CUDA_TRY(d, cuFuncLoad, kernel.function);
    loaded->kernels[launch.kernel] = kernel;
  }
  return loaded;
}

CudaKernels::~CudaKernels() {
  if (!gpu->use().ok())
    return;
  for (Module module : modules)
    (void)gpu->driver().cuModuleUnload(module);
}

const CudaKernel *CudaKernels::find(const std::string &kernel) const {
  auto it = kernels.find(kernel);
  return it == kernels.end() ? nullptr : &it->second;
}

} // namespace spmd::runtime::cuda
