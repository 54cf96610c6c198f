//===- CudaKernels.h - The kernels of an artifact, on a device ----*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_CUDAKERNELS_H
#define SPMD_LIB_RUNTIME_CUDA_CUDAKERNELS_H

#include "Gpu.h"
#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/MappedFile.h"

#include <map>
#include <string>
#include <vector>

namespace spmd::runtime::cuda {

/// The machine code of an artifact that is for one chip.
class KernelArchive {
public:
  /// The code for a device of compute capability `chip` (90): that of the chip, or of an earlier one of its generation,
  /// whose code it runs, or PTX of any earlier one, which the driver compiles. An error says what there is.
  static Expected<KernelArchive> open(const Artifact &artifact, int chip);

  /// "sm_90": whose launches apply.
  const std::string &chip() const { return name; }

private:
  friend class CudaKernels;
  std::string name, path, table;
  MappedFile code;
  bool isPtx = false;
};

struct CudaKernel {
  Function function = nullptr;
  const KernelLaunch *launch = nullptr;
};

/// Loaded on one device.
class CudaKernels {
public:
  /// `artifact` and `gpu` outlive it.
  static Expected<std::unique_ptr<CudaKernels>> load(const Artifact &artifact, const KernelArchive &archive,
                                                     std::shared_ptr<const Gpu> gpu);
  ~CudaKernels();

  /// Null when there is none.
  const CudaKernel *find(const std::string &kernel) const;
  /// What kernels take: KernelTable.h.
  const std::string &table() const { return tableText; }

private:
  explicit CudaKernels(std::shared_ptr<const Gpu> gpu) : gpu(std::move(gpu)) {}
  std::shared_ptr<const Gpu> gpu;
  std::vector<Module> modules;
  std::map<std::string, CudaKernel> kernels;
  std::string tableText;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_CUDAKERNELS_H
