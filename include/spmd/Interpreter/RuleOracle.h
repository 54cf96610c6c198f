//===- RuleOracle.h - sharding rules against what ops compute ---*- C++ -*-===//
#ifndef SPMD_INTERPRETER_RULEORACLE_H
#define SPMD_INTERPRETER_RULEORACLE_H

#include "dialects/Aten/AtenInterfaces.h"
#include "mlir/IR/BuiltinOps.h"

namespace spmd::interp {

/// What was checked of one op.
struct RuleCheck {
  std::string op;
  /// False: the op has no rule with these operands, or is view-like.
  bool hasRule = false;
  int64_t factors = 0;
  /// Runs on shards, and splits into summands, that were compared.
  int64_t comparisons = 0;
};

/// Checks by execution on random operands that `rule` is true of `op`.
///
/// For every factor and 2 and 3 ranks: the operands that carry the factor are cut
/// along it, padded rows are filled with the rule's neutral element if some
/// result contracts the factor and with NaN otherwise, operands declared
/// don't-care are replaced, the op is localized and run on every rank, and the
/// ranks' results are put together as the rule says. For every claim of
/// linearity: operands are split into random summands, and the results must add
/// up. Each must equal what the op computes on the whole operands to 1e-12.
///
/// A wrong rule is an error at the op that names the factor, the result and the
/// difference.
mlir::FailureOr<RuleCheck> checkShardingRule(aten::AtenOpInterface op, const aten::ShardingRule &rule, uint64_t seed);

/// The same for every aten op in the module under its own rule. Ops in chunk form
/// are skipped.
mlir::FailureOr<llvm::SmallVector<RuleCheck>> checkShardingRules(mlir::ModuleOp module, uint64_t seed);

} // namespace spmd::interp

#endif // SPMD_INTERPRETER_RULEORACLE_H
