//===- Mesh.h - the ranks that the interpreter runs -------------*- C++ -*-===//
#ifndef SPMD_INTERPRETER_MESH_H
#define SPMD_INTERPRETER_MESH_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace spmd::interp {

/// Named axes; rank numbers are row-major in them. No axes: one rank.
struct Mesh {
  llvm::SmallVector<std::string> axes;
  llvm::SmallVector<int64_t> sizes;
  /// The last axis is one along which ranks have the same rows of the batch.
  bool hasTensorAxis = false;

  /// The module's only mesh, or one rank when it has none.
  static mlir::FailureOr<Mesh> of(mlir::ModuleOp module);

  int64_t numRanks() const;
  /// Axes over which the batch is cut.
  size_t numDataAxes() const { return sizes.size() - (hasTensorAxis ? 1 : 0); }
  /// Place of the rank on the data axes.
  int64_t dataRank(int64_t rank) const { return hasTensorAxis ? rank / sizes.back() : rank; }
  /// Place of the rank on the tensor axis; 0 without one.
  int64_t tensorRank(int64_t rank) const { return hasTensorAxis ? rank % sizes.back() : 0; }
  llvm::SmallVector<int64_t> coordinates(int64_t rank) const;

  /// The ranks in groups that differ in the coordinates of `over` (names of
  /// axes) only; within a group ordered row-major by these.
  llvm::SmallVector<llvm::SmallVector<int64_t>> groups(mlir::ArrayAttr over) const;
  /// The ranks among which state `index` of a value's `count` says how they have it: those along the axis of its
  /// number, and of the last state along all data axes that are left.
  llvm::SmallVector<llvm::SmallVector<int64_t>> groupsOfState(int64_t index, size_t count) const;
  /// The same for one axis, by number.
  llvm::SmallVector<llvm::SmallVector<int64_t>> groups(int64_t axis) const;

private:
  llvm::SmallVector<llvm::SmallVector<int64_t>> groups(llvm::ArrayRef<int64_t> over) const;
};

} // namespace spmd::interp

#endif // SPMD_INTERPRETER_MESH_H
