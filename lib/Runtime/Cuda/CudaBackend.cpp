//===- CudaBackend.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Cuda/CudaBackend.h"
#include "CudaExecutor.h"
#include "spmd/Runtime/Train/Registry.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

namespace spmd::runtime::cuda {

namespace {

bool hasGemms(const Plan &plan) {
  return std::any_of(plan.commands.begin(), plan.commands.end(),
                     [](const Command &command) { return command.is<GemmCommand>(); });
}

bool hasCollectives(const Plan &plan) {
  return std::any_of(plan.commands.begin(), plan.commands.end(),
                     [](const Command &command) { return command.is<CollectiveCommand>(); });
}

/// That a library is as new as the artifact needs it to be; `hint` is how to get such a one.
Status checkVersion(const Artifact &artifact, const std::string &library, LibraryVersion found,
                    const std::optional<LibraryVersion> &needed, const std::string &hint) {
  if (!needed || !(found < *needed))
    return Status::success();
  return Status::badInput(library + " " + toText(found) + " is too old: '" + artifact.folder + "' needs " +
                          toText(*needed) + "; " + hint);
}

class CudaDevice final : public Device {
public:
  CudaDevice(const Artifact &artifact, const DeviceOptions &options, std::shared_ptr<const Driver> driver)
      : artifact(artifact), options(options), driver(std::move(driver)) {}

  Status open();
  const std::string &kernels() const override { return archive->chip(); }
  std::string communicators() const override { return "threads"; }
  Expected<std::shared_ptr<CommunicatorFactory>> connect(std::shared_ptr<CommunicatorFactory> processes) override;
  std::string claims() const override;
  Status compareClaims(const std::vector<std::string> &ofProcesses) const override;
  Expected<std::unique_ptr<RankMemory>> allocate(const RanksHere &ranks, int64_t bytes,
                                                 CommunicatorFactory &communicators) override;
  Expected<std::unique_ptr<Stream>> makeStream(int64_t rank) override;
  Expected<std::unique_ptr<Executor>> makeExecutor(RankMemory &memory, CommunicatorFactory &communicators,
                                                   AbortState &abort, const ExecutorOptions &options) override;

private:
  Status openGpus(const RanksHere &ranks, const CommunicatorFactory &processes);

  const Artifact &artifact;
  DeviceOptions options;
  std::shared_ptr<const Driver> driver;
  std::shared_ptr<const CublasLt> cublas;
  std::shared_ptr<const Nccl> nccl;
  std::unique_ptr<KernelArchive> archive;
  RanksHere here;
  std::vector<std::shared_ptr<const Gpu>> gpus; ///< of the ranks here
  std::vector<std::shared_ptr<const CudaKernels>> loaded;
};

class CudaBackend final : public Backend {
public:
  std::vector<std::string> targets() const override { return {"cuda"}; }
  Status checkPlan(const Artifact &artifact) const override;
  Expected<std::unique_ptr<Device>> open(const Artifact &artifact, const DeviceOptions &options) const override;
};

} // namespace

/// Loads what needs no particular device, and chooses the code.
Status CudaDevice::open() {
  NeededLibraries needs = artifact.manifest.needs.value_or(NeededLibraries());
  if (Status status =
          checkVersion(artifact, "the CUDA driver, of CUDA", driver->cudaVersion(), needs.driver, Driver::kHint);
      !status.ok())
    return status;
  int count = 0;
  SPMD_CUDA_TRY(*driver, cuDeviceGetCount, &count);
  if (count == 0)
    return Status::badInput("there is no GPU that this process may use; is it hidden by CUDA_VISIBLE_DEVICES?");
  if (hasGemms(artifact.plan)) {
    Expected<std::shared_ptr<const CublasLt>> library = CublasLt::load();
    if (!library)
      return library.error();
    cublas = *library;
    if (Status status = checkVersion(artifact, "cuBLASLt", cublas->release(), needs.cublasLt, CublasLt::kHint);
        !status.ok())
      return status;
  }
  if (hasCollectives(artifact.plan)) {
    Expected<std::shared_ptr<const Nccl>> library = Nccl::load();
    if (!library)
      return library.error();
    nccl = *library;
    if (Status status = checkVersion(artifact, "NCCL", nccl->release(), needs.nccl, Nccl::kHint); !status.ok())
      return status;
  }
  DeviceHandle first = 0;
  int major = 0, minor = 0;
  SPMD_CUDA_TRY(*driver, cuDeviceGet, &first, 0);
  SPMD_CUDA_TRY(*driver, cuDeviceGetAttribute, &major, kComputeCapabilityMajor, first);
  SPMD_CUDA_TRY(*driver, cuDeviceGetAttribute, &minor, kComputeCapabilityMinor, first);
  Expected<KernelArchive> found = KernelArchive::open(artifact, 10 * major + minor);
  if (!found)
    return found.error();
  archive = std::make_unique<KernelArchive>(std::move(*found));
  return Status::success();
}

// [Note: which GPU] Rank i of this process has the i-th GPU after those of the processes before it on this host. Where
// each process sees only as many as it has ranks (Slurm, CUDA_VISIBLE_DEVICES set by the launcher), they are its own.
Status CudaDevice::openGpus(const RanksHere &ranks, const CommunicatorFactory &job) {
  int count = 0;
  SPMD_CUDA_TRY(*driver, cuDeviceGetCount, &count);
  int64_t processes = job.numLocalProcesses();
  int64_t first = count == ranks.count ? 0 : job.localProcess() * ranks.count;
  if (first + ranks.count > count)
    return Status::badInput(
        "this process sees " + std::to_string(count) + (count == 1 ? " GPU" : " GPUs") + ", and " +
        std::to_string(processes * ranks.count) + " ranks of this host need one each (" + std::to_string(processes) +
        (processes == 1 ? " process" : " processes") + " with " + std::to_string(ranks.count) +
        (ranks.count == 1 ? " rank" : " ranks") + "); start the job on more hosts, or compile for fewer ranks");
  here = ranks;
  for (int64_t i = 0; i < ranks.count; ++i) {
    Expected<std::shared_ptr<Gpu>> gpu = Gpu::open(driver, static_cast<int>(first + i));
    if (!gpu)
      return gpu.error();
    gpus.push_back(*gpu);
    Expected<KernelArchive> code = KernelArchive::open(artifact, (*gpu)->chip());
    if (!code)
      return code.error();
    Expected<std::unique_ptr<CudaKernels>> kernels = CudaKernels::load(artifact, *code, *gpu);
    if (!kernels)
      return kernels.error();
    loaded.push_back(std::move(*kernels));
  }
  return Status::success();
}

Expected<std::shared_ptr<CommunicatorFactory>>
CudaDevice::connect(std::shared_ptr<CommunicatorFactory> processes) {
  Expected<RanksHere> ranks = processes->ranksHere(artifact.manifest.ranks);
  if (!ranks)
    return ranks.error();
  if (Status status = openGpus(*ranks, *processes); !status.ok())
    return status;
  if (!nccl)
    return processes;
  return std::shared_ptr<CommunicatorFactory>(std::make_shared<NcclFactory>(nccl, std::move(processes), gpus));
}

/// A line for each GPU, in the order of the ranks: its identity, then its name for people. None where it may be shared.
std::string CudaDevice::claims() const {
  if (const char *shares = std::getenv("SPMD_SHARE_GPUS"); shares && *shares && std::string(shares) != "0")
    return "";
  std::string text;
  for (const std::shared_ptr<const Gpu> &gpu : gpus)
    text += gpu->uuid() + " GPU " + std::to_string(gpu->ordinal()) + " (" + gpu->name() + ", " + gpu->uuid() + ")\n";
  return text;
}

Status CudaDevice::compareClaims(const std::vector<std::string> &ofProcesses) const {
  std::map<std::string, int64_t> owners; // by identity
  for (size_t process = 0; process < ofProcesses.size(); ++process) {
    std::istringstream lines(ofProcesses[process]);
    int64_t rank = static_cast<int64_t>(process) * here.count;
    for (std::string uuid, name; lines >> uuid && std::getline(lines.ignore(), name); ++rank)
      if (auto [owner, isNew] = owners.emplace(uuid, rank); !isNew)
        return Status::badInput(
            "rank " + std::to_string(rank) + " has the same GPU as rank " + std::to_string(owner->second) + ": " +
            name +
            "; let each process see others (CUDA_VISIBLE_DEVICES), or start no more ranks on a host "
            "than it has GPUs (--nproc-per-node); SPMD_SHARE_GPUS=1 lets ranks share one");
  }
  return Status::success();
}

Expected<std::unique_ptr<RankMemory>> CudaDevice::allocate(const RanksHere &ranks, int64_t bytes,
                                                           CommunicatorFactory &) {
  Expected<std::unique_ptr<CudaMemory>> memory = CudaMemory::allocate(ranks, gpus, bytes);
  if (!memory)
    return memory.error();
  return std::unique_ptr<RankMemory>(std::move(*memory));
}

Expected<std::unique_ptr<Stream>> CudaDevice::makeStream(int64_t rank) {
  const std::shared_ptr<const Gpu> &gpu = gpus[here.indexOf(rank)];
  if (Status status = gpu->use(); !status.ok())
    return status;
  Expected<StreamHandle> stream = gpu->makeStream(0);
  if (!stream)
    return stream.error();
  return std::unique_ptr<Stream>(std::make_unique<CudaStream>(gpu, *stream, /*owns=*/true));
}

Expected<std::unique_ptr<Executor>> CudaDevice::makeExecutor(RankMemory &memory, CommunicatorFactory &communicators,
                                                             AbortState &abort, const ExecutorOptions &executor) {
  return makeCudaExecutor({artifact, loaded, cublas, options.graph}, static_cast<CudaMemory &>(memory), communicators,
                          abort, executor);
}

/// What the runtime has no way to do on a GPU; see docs/cuda.md.
Status CudaBackend::checkPlan(const Artifact &artifact) const {
  const Plan &plan = artifact.plan;
  if (plan.priorityOf(0) != 0)
    return Status::badInput("stream '" + plan.streams[0] + "' has priority " + std::to_string(plan.priorityOf(0)) +
                            "; on GPUs nothing comes after the first stream");
  for (const Command &command : plan.commands) {
    std::string problem;
    if (const auto *collective = command.as<CollectiveCommand>()) {
      for (ReductionKind kind : collective->kinds)
        if (kind == ReductionKind::Norm2)
          problem = "adds up norms, which NCCL does not; compile the step again";
      if (collective->dtype == DType::I16 && combines(collective->kind))
        problem = "reduces i16, which NCCL does not";
    }
    if (const auto *gemm = command.as<GemmCommand>()) {
      if (gemm->shape.k == 0)
        problem = "sums over nothing, which cuBLASLt does not";
      if (gemm->shape.activation == Activation::Gelu)
        problem = "applies GELU by erf, which cuBLASLt does not";
      if (gemm->shape.workspace < 0)
        problem = "has no workspace for cuBLASLt; compile the step again";
    }
    if (problem.empty())
      continue;
    auto id = static_cast<int32_t>(&command - plan.commands.data());
    Status status =
        Status::badInput("command " + std::to_string(id) + " (" + command.describe() + ") " + problem);
    status.command = id;
    status.location = command.location;
    return status;
  }
  return Status::success();
}

Expected<std::unique_ptr<Device>> CudaBackend::open(const Artifact &artifact, const DeviceOptions &options) const {
  for (const auto &[value, name] : {std::pair(options.cpu, "cpu"), std::pair(options.emulation, "emulation")})
    if (!value.empty())
      return Status::badInput("'" + artifact.folder + "' was compiled for target 'cuda': " + name + " '" + value +
                              "' is for targets that run on CPUs");
  Expected<std::shared_ptr<const Driver>> driver = Driver::load();
  if (!driver)
    return driver.error();
  auto device = std::make_unique<CudaDevice>(artifact, options, *driver);
  if (Status status = device->open(); !status.ok())
    return status;
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace spmd::runtime::cuda

void spmd::runtime::registerCuda() { registerBackend(std::make_shared<cuda::CudaBackend>()); }
