//===- PlanToRuntime.h - A plan in MLIR as the runtime's --------*- C++ -*-===//
//
// From `plan.program` to runtime::Plan and runtime::Manifest, which lib/Runtime/Core writes as JSON and reads. Nothing
// else knows both. The same module gives the same structs.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_CONVERSION_PLANTORUNTIME_PLANTORUNTIME_H
#define SPMD_CONVERSION_PLANTORUNTIME_PLANTORUNTIME_H

#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "spmd/Kernels/Cubin.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"
#include <string>
#include <vector>

namespace spmd {

/// The kernels of an artifact.
struct ArtifactKernels {
  /// A shared object for each kind of CPU, or an archive of cubins for each GPU.
  std::vector<runtime::KernelFile> files;
  /// What is known of each, as the last file has it; for target host.
  std::vector<kernel::HostKernel> hostKernels;
  /// How each runs on each chip; none for target host.
  std::vector<std::pair<std::string, kernel::GpuKernel>> launches;
};

/// The one program of `module`; emits an error and returns null when there is none or more than one.
plan::ProgramOp getProgram(mlir::ModuleOp module);

/// `program` as an artifact's file has it. Fails, with an error at the op, where the runtime has no word for what the
/// plan says.
mlir::FailureOr<runtime::PlanFile> translatePlanFile(plan::ProgramOp program);

/// The same with all iterations.
mlir::FailureOr<runtime::Plan> translatePlan(plan::ProgramOp program);

/// Whether all iterations of a loop are in `program` and its plan.dataflow, or one of them stands for those that are
/// not: a plan of a few, with the values of a few, would pass the certificate. Emits an error if not.
llvm::LogicalResult checkIterations(plan::ProgramOp program);

/// What `module` says of `program`, which has become `plan`, and of its kernels; what a run needs beside its arenas is
/// the target's to say (Target::findOutsideArena), and the hash of the plan's file is for who writes it. Fails as
/// translatePlan does.
mlir::FailureOr<runtime::Manifest> translateManifest(mlir::ModuleOp module, plan::ProgramOp program,
                                                     const runtime::Plan &plan, const ArtifactKernels &kernels);

/// The line of a kernel's table ([Note: tables of GPU code]) for how the manifest has it launched on `chip`.
std::string formatLaunch(llvm::StringRef chip, const kernel::GpuKernel &kernel);

} // namespace spmd

#endif // SPMD_CONVERSION_PLANTORUNTIME_PLANTORUNTIME_H
