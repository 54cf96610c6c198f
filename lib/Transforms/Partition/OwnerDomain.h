//===- OwnerDomain.h - which values live in flat buffers --------*- C++ -*-===//
//
// [Note: owner domain]
// Parameters, gradients and optimizer state live in flat buffers because of their
// role, never because of their shape. Roles say it of arguments and of their new
// values; between them it spreads backward from the optimizer by votes: a result
// that is at home with a parameter votes for its operands over the same elements,
// any other use votes against. A value is at home only if all votes agree. What the
// optimizer's lists name belongs to the parameter of its position; an operand of other
// arithmetic does if it is a function of the batch, of parameters or of their state: a
// mask made from positions, noise or a buffer is as cheap to compute whole, and so is what
// is made from learning rates and step counters, which for a parameter without dims has
// the parameter's shape.
// Reductions to one number (norms for clipping) accept any layout and do not vote, nor
// do functions of one value that only such norms use (|g|^1.5, for a norm of order 3).
//
// Being at home is about cost. Whatever else an op on chunks reads is brought to the
// place where it runs ([Note: gradients]), and what no chunk has a form for is computed
// on whole values.
//
// A value is *gradient-bound* when all its uses are linear and end in the owner
// domain. Such a value stays partial until its unit's one reduce_scatter; any other
// partial value is reduced where it first must be whole.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_OWNERDOMAIN_H
#define SPMD_LIB_TRANSFORMS_PARTITION_OWNERDOMAIN_H

#include "Step.h"

namespace spmd::partition {

class OwnerDomain {
public:
  explicit OwnerDomain(const Step &step);

  /// The parameter all uses want the value with.
  std::optional<Place> getHome(mlir::Value value) const { return lookup(home, value); }
  /// The parameter some use wants the value with.
  std::optional<Place> getWanted(mlir::Value value) const { return lookup(wanted, value); }
  bool isGradientBound(mlir::Value value) const { return gradientBound.contains(value); }
  /// A norm of the value is taken.
  bool isNormed(mlir::Value value) const { return normed.contains(value); }

  /// A norm for clipping, or what only such norms use, element by element.
  static bool isNeutral(mlir::Operation *op);

  /// A norm over everything: a single number, of whatever rank.
  static bool isFullNorm(mlir::Operation *op);

private:
  using Map = llvm::DenseMap<mlir::Value, Place>;
  static std::optional<Place> lookup(const Map &map, mlir::Value value) {
    auto found = map.find(value);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  }
  void findDerived(const Step &step);
  void findKept(const Step &step);
  void readReturn(const Step &step);
  void voteOf(mlir::Operation *op);
  void settle(mlir::Value value);
  void vote(mlir::Value value, std::optional<Place> place);
  void findGradientBound(const Step &step);
  bool keepsGradientBound(mlir::Operation *user, mlir::Value value) const;

  Map home, wanted;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::optional<Place>>> votes;
  /// Functions of the batch, of parameters or of their state, but for that which is one number for each parameter.
  llvm::DenseSet<mlir::Value> derived;
  llvm::DenseSet<mlir::Value> gradientBound, normed;
  /// Operands of the terminator that stay what ranks have summands of.
  llvm::DenseSet<mlir::OpOperand *> kept;
};

/// True when the op is pointwise with one result, and every operand has the
/// result's shape or one element: it can run on chunks.
bool runsOnChunks(mlir::Operation *op);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_OWNERDOMAIN_H
