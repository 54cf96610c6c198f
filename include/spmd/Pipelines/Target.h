//===- Target.h - what code is generated for ---------------------*- C++ -*-===//
#ifndef SPMD_PIPELINES_TARGET_H
#define SPMD_PIPELINES_TARGET_H

#include "dialects/Kernel/Kernel.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Kernels/Cubin.h"
#include "spmd/Pipelines/ArtifactFolder.h"
#include <memory>
#include <string>
#include <vector>

namespace spmd {

struct PipelineOptions;

/// What may be chosen for the code of a target.
struct CodeOptions {
  /// CPUs to generate kernels for; empty for all. Of targets host and emulate.
  std::vector<std::string> cpus;
  /// What SPMD_CPU names: the CPUs to generate kernels for when `cpus` is empty. Empty means all. Targets without kernels
  /// for CPUs ignore it.
  std::vector<std::string> usualCpus;
  /// Of target cuda.
  kernel::CudaOptions cuda;
  /// Of target cuda: also the same kernels emulated, for checks on machines without a GPU.
  bool emulation = false;
  /// Where the libraries and cubins are that kernels of the user's are in.
  std::string libraries;
};

/// Kernels of the user's, by chip, as their files have them.
using UserKernelFiles = llvm::StringMap<kernel::UserKernels>;

/// The value of `--target`:
///
///   host                       kernels for this machine's kind of CPU
///   cuda:CHIP[,CHIP...]        cubin and PTX of GPU kernels, for each chip
///   emulate:CHIP               the GPU kernels of that chip, built for the CPU
class Target {
public:
  virtual ~Target() = default;

  /// What manifests call it: "host".
  virtual llvm::StringRef getName() const = 0;

  /// Sets what the pipeline does for it: which epilogues its GEMM library has, into how many blocks reductions are cut,
  /// and what its commands cannot do.
  virtual void configure(PipelineOptions &options) const = 0;
  /// What of the options it does not have, as "--cpu chooses …"; empty when nothing. `text`: the target as it was
  /// given.
  virtual std::string findBadOption(const CodeOptions &options, llvm::StringRef text) const;
  /// What keeps this machine from making its kernels; empty when nothing does.
  virtual std::string findMissingTool(const CodeOptions &) const { return ""; }

  /// Checks that the kernels that the user declared run here and are at hand; an error at the op where one does not.
  /// `files` gets what is to be put into the artifact.
  virtual mlir::LogicalResult readUserKernels(mlir::ModuleOp module, const CodeOptions &options,
                                              UserKernelFiles &files) const;
  /// Writes the kernels of `module`, those in `files` and what they need into the artifact.
  virtual mlir::LogicalResult writeKernels(mlir::ModuleOp module, const CodeOptions &options, UserKernelFiles &files,
                                           ArtifactFolder &folder, ArtifactKernels &kernels) const = 0;
  /// Adds to the plan what only the target knows: how it launches kernels, where that is another unit than the
  /// dialect's parallel iterations.
  virtual void adjustPlan(runtime::Plan &, const ArtifactKernels &) const {}
  /// What a run of `plan` needs beside its arenas. The sizes of what libraries allocate for themselves are theirs to
  /// decide. By default the workspaces of the CPU's GEMMs.
  virtual std::vector<runtime::OutsideArena> findOutsideArena(const runtime::Plan &plan) const;
  /// The libraries that a run of `plan` loads, if the target loads any.
  virtual std::optional<runtime::NeededLibraries> findNeeds(const runtime::Plan &) const { return std::nullopt; }

protected:
  /// Checks one kernel of the user's, but for what is in its file.
  virtual mlir::LogicalResult checkUserKernel(kernel::CustomCallOp op, const CodeOptions &options) const = 0;
};

/// Reads a target. Null when it is none; `error` then says what is allowed.
std::shared_ptr<const Target> parseTarget(llvm::StringRef text, std::string &error);

} // namespace spmd

#endif // SPMD_PIPELINES_TARGET_H
