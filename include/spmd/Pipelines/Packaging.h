//===- Packaging.h - Writing an artifact ------------------------*- C++ -*-===//
#ifndef SPMD_PIPELINES_PACKAGING_H
#define SPMD_PIPELINES_PACKAGING_H

#include "mlir/IR/BuiltinOps.h"
#include "spmd/Pipelines/Target.h"
#include <string>
#include <vector>

namespace spmd {

struct PackagingOptions {
  /// The folder to write. An artifact that is there is replaced; anything else there is an error.
  std::string path;
  /// The step package whose weights and reference go into the artifact; empty for none.
  std::string step;
  std::shared_ptr<const Target> target;
  CodeOptions code;
  /// The module of a first step that differs, after phase `plan` too: another program on the same state. Null for none.
  mlir::ModuleOp firstStep = nullptr;
};

/// Writes the artifact of a module after phase `plan`: plan, manifest, kernels, weights and reference. The module gets
/// the kernels of the first step, and that one's get other names. Everything is written to a folder beside the target
/// that takes its name when it is complete, so nobody ever sees half an artifact. After a failure `isInternal` says
/// whether it is none of the module's or the options': the disk is full.
mlir::LogicalResult writeArtifact(mlir::ModuleOp module, const PackagingOptions &options, bool &isInternal);

} // namespace spmd

#endif // SPMD_PIPELINES_PACKAGING_H
