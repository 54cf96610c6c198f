//===- ShardingRule.h - How an op's dimensions correspond -------*- C++ -*-===//
//
// A sharding rule names the loops ("factors") of an op, as an einsum does, and
// says for each dimension of each operand and result which loop runs over it.
// The partitioner derives from it where an op may run on shards, which result
// is then a partial one, and how partial operands pass through.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_ATEN_SHARDINGRULE_H
#define SPMD_DIALECTS_ATEN_SHARDINGRULE_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace spmd::aten {

/// How the values that ranks hold of one tensor combine into the tensor.
/// norm2 is sqrt(sum of squares).
enum class ReductionKind { sum, max, min, norm2 };

/// How an op treats operands that are partial sums.
enum class Linearity {
  /// A partial operand has to be reduced first.
  none,
  /// Linear in all tensor operands taken together: if all of them are partial
  /// with one kind, so is the result (add, cat, view).
  additive,
  /// Linear in each of `multilinearOperands` alone, the others being
  /// replicated (mul, mm).
  multilinear
};

struct ShardingRule {
  /// A dimension of size 1 that is broadcast: it carries no factor.
  static constexpr int64_t kNone = -1;
  /// A dimension that every rank needs whole.
  static constexpr int64_t kWhole = -2;

  struct Value {
    /// Factor of each dimension, or kNone or kWhole.
    llvm::SmallVector<int64_t> dims;
    /// Elements of each dimension that go together in one step of its factor, as query heads that share a head of keys;
    /// empty where each is a step of its own.
    llvm::SmallVector<int64_t> steps;

    int64_t getStep(int64_t dim) const { return steps.empty() ? 1 : steps[dim]; }
  };

  /// One entry per MLIR operand and result, in order; an absent optional
  /// operand or result has none.
  llvm::SmallVector<Value> operands, results;
  /// Global size of each factor.
  llvm::SmallVector<int64_t> factorSizes;
  /// Per result: how it combines over the factors that it lacks.
  llvm::SmallVector<ReductionKind> resultReduction;
  Linearity linearity = Linearity::none;
  llvm::SmallVector<unsigned> multilinearOperands;
  /// Per operand: what padded rows of a contracted factor are filled with.
  /// Absent: the neutral element of the reduction (0, -inf, +inf, 0).
  llvm::SmallVector<std::optional<double>> neutral;
  /// Padded rows are filled with `neutral` (0 when absent) even where nothing
  /// is contracted: the op would do something about what they hold by chance.
  bool fillsPadding = false;
  /// Nothing is neutral: a factor is contracted only where no rank has padding.
  bool contractsNoPadding = false;
  /// Per operand: its value has no influence on the results.
  llvm::SmallVector<bool> dontCare;
};

} // namespace spmd::aten

#endif // SPMD_DIALECTS_ATEN_SHARDINGRULE_H
