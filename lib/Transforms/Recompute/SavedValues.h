//===- SavedValues.h - what forward keeps for backward ----------*- C++ -*-===//
//
// [Note: saved values]
// A forward value is *saved* if backward reads it from memory: the result of a heavy op (a matrix product, attention),
// or of a light op that a heavy op of backward reads, or of a light op whose inputs are larger than itself. All other
// values that backward reads are *derived*: their readers compute them from saved values, within their own kernels
// (lib/Conversion/AtenToKernel/Fusion/Recompute.h). This analysis is done on aten ops, before kernels exist; where
// fusion decides otherwise, an estimate of bytes is off, never a value.
//
// A saved value can be computed again if pure ops lead to it from other saved values, arguments and parameters that
// backward gathers anyway. The ops on the way are its *chain*. A chain with a collective of activations is not repeated.
//
// [Note: cuts]
// Where exactly one value of forward is needed by what follows, that value is a *cut*: the input of a layer, or the
// residual between attention and MLP. At least one of two neighbouring cuts is kept. Otherwise a chain could lead through
// several layers, and what it computes would be alive in the backward of all of them.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_RECOMPUTE_SAVEDVALUES_H
#define SPMD_LIB_TRANSFORMS_RECOMPUTE_SAVEDVALUES_H

#include "dialects/Aten/Views.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace spmd::recompute {

/// Whether an op computes something that is fused into loops, or moves elements: any aten op that is not heavy.
bool isLight(mlir::Operation *op);
/// Whether an op is a kernel of its own: a matrix product, attention, a gather of rows.
bool isHeavy(mlir::Operation *op);
using aten::getBase;
using aten::isView;

/// A value that backward could compute again.
struct Candidate {
  mlir::OpResult value;
  int64_t bytes;
  /// The heavy ops of its chain; none if a kernel of backward can write the value beside its own results.
  llvm::SmallVector<mlir::Operation *, 2> products;
  /// Bytes that light ops of its chain write.
  int64_t written;
};

/// The saved values of a step.
class SavedValues {
public:
  explicit SavedValues(mlir::func::FuncOp step);

  bool isSaved(mlir::Value base) const { return saved.contains(base); }
  /// Whether backward can read the value as it is at no cost: arguments, parameters, what follows from them alone, and
  /// values too small to matter.
  bool isSource(mlir::Value base) const;
  /// Whether a value is a gathered parameter.
  bool isParameter(mlir::Value base) const;
  /// What a reader in `segment` reads in place of a parameter of forward: null if nothing there has a view of it.
  mlir::Value findParameter(mlir::Value parameter, int64_t segment) const;
  /// The views of the parameter's unit in `segment`: null if nothing gathers the unit there.
  UnpackOp findUnpack(mlir::Value parameter, int64_t segment) const;
  bool isForward(mlir::Operation *op) const { return phaseOf(op) == StepPhase::forward; }
  bool isBackward(mlir::Operation *op) const { return phaseOf(op) == StepPhase::backward; }

  /// What can be computed again, in the order of the program.
  std::vector<Candidate> findCandidates() const;
  /// The number of a cut among the cuts of its segment; none for other values.
  std::optional<std::pair<int64_t, int64_t>> getCut(mlir::Value value) const;

private:
  std::optional<StepPhase> phaseOf(mlir::Operation *op) const;
  void findSources();
  void findSaved();
  void findCuts();
  using Leaves = llvm::SmallSetVector<mlir::Value, 4>;
  Leaves findLeaves(mlir::Value value);
  std::optional<Candidate> makeCandidate(mlir::OpResult value) const;
  bool isAlivePastHeavyOp(mlir::OpResult value) const;

  mlir::func::FuncOp step;
  /// By segment.
  llvm::SmallVector<std::optional<StepPhase>> phases;
  llvm::DenseMap<mlir::Operation *, int64_t> places;
  /// The number of heavy ops before a place.
  llvm::SmallVector<int64_t> heavyBefore;
  llvm::DenseSet<mlir::Value> sources;
  llvm::SetVector<mlir::Value> saved;
  llvm::DenseMap<mlir::Value, Leaves> leaves;
  /// The readers in backward of values of forward, through views and derived values.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Operation *, 2>> backwardReaders;
  /// The number of a cut among all cuts of its segment.
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>> cuts;
  /// By unit and segment.
  llvm::DenseMap<std::pair<mlir::Attribute, int64_t>, UnpackOp> unpacks;
};

} // namespace spmd::recompute

#endif // SPMD_LIB_TRANSFORMS_RECOMPUTE_SAVEDVALUES_H
