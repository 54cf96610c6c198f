//===- PlanToJson.h - The files of an artifact from its plan ----*- C++ -*-===//
//
// Writes what the runtime reads; docs/artifact-format.md describes every field. The same module gives the same bytes.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_CONVERSION_PLANTOJSON_PLANTOJSON_H
#define SPMD_CONVERSION_PLANTOJSON_PLANTOJSON_H

#include "dialects/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "spmd/Kernels/Cubin.h"
#include "spmd/Kernels/SharedObject.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace spmd {

/// A file with the kernels of an artifact: a shared object for a CPU, or cubins for a GPU.
struct KernelFile {
  std::string cpu, chip; ///< one of them; both when the kernels of a chip are emulated
  std::string file;
  std::string hash; ///< of its content, as manifests write it
  /// For a GPU: the same kernels as PTX.
  std::string ptx = "", ptxHash = "";
};

/// The kernels of an artifact.
struct ArtifactKernels {
  std::vector<KernelFile> files;
  /// What is known of each, as the last file has it; for target host.
  std::vector<kernel::HostKernel> hostKernels;
  /// How each runs on each chip; none for target host.
  std::vector<std::pair<std::string, kernel::GpuKernel>> launches;
};

/// The artifact's name of an element type: f32, i64, u8, i1.
std::string getDTypeName(mlir::Type elementType);

/// The one program of `module`; emits an error and returns null when there is none or more than one.
plan::ProgramOp getProgram(mlir::ModuleOp module);

/// Writes `train_step.plan.json`.
void writePlanJson(plan::ProgramOp program, llvm::raw_ostream &os);

/// Writes `manifest.json`. Fails, with an error at the op, where the format cannot say what the plan says.
mlir::LogicalResult writeManifestJson(mlir::ModuleOp module, plan::ProgramOp program,
                                      const ArtifactKernels &kernels, llvm::raw_ostream &os);

} // namespace spmd

#endif // SPMD_CONVERSION_PLANTOJSON_PLANTOJSON_H
