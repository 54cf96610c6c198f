//===- ArtifactFolder.h - files of an artifact ------------------*- C++ -*-===//
#ifndef SPMD_PIPELINES_ARTIFACTFOLDER_H
#define SPMD_PIPELINES_ARTIFACTFOLDER_H

#include "mlir/IR/Operation.h"
#include <string>
#include <system_error>

namespace spmd {

/// A folder whose files are written one by one; errors are at `op`.
class ArtifactFolder {
public:
  ArtifactFolder(llvm::StringRef folder, mlir::Operation *op) : folder(folder), op(op) {}

  std::string pathOf(llvm::StringRef name) const;
  mlir::LogicalResult writeText(llvm::StringRef name, llvm::StringRef text) const;
  /// Also gives the hash of what it writes, as manifests have it.
  mlir::LogicalResult writeCode(llvm::StringRef name, llvm::StringRef code, std::string &hash) const;
  /// Copies the file `from` into the folder `below` of this one, as `name`.
  std::error_code copyInto(llvm::StringRef below, llvm::StringRef from, llvm::StringRef name) const;
  mlir::LogicalResult fail(const llvm::Twine &message) const { return op->emitError(message); }

private:
  llvm::StringRef folder;
  mlir::Operation *op;
};

} // namespace spmd

#endif // SPMD_PIPELINES_ARTIFACTFOLDER_H
