//===- Roles.h - arguments and results by role ------------------*- C++ -*-===//
//
// Arguments and results of @step are found by role and name, never by position.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_SPMD_ROLES_H
#define SPMD_DIALECTS_SPMD_ROLES_H

#include "dialects/Spmd/Spmd.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace spmd {

constexpr llvm::StringLiteral kArgAttr = "spmd.arg";
constexpr llvm::StringLiteral kResultAttr = "spmd.result";
/// After the encodings are stripped: the #spmd.sharding an argument or result had.
constexpr llvm::StringLiteral kLayoutAttr = "spmd.layout";
/// The values of a batch input are row numbers below this, apart from the ignored one.
constexpr llvm::StringLiteral kIndexBoundAttr = "spmd.index_bound";
constexpr llvm::StringLiteral kIgnoreIndexAttr = "spmd.ignore_index";
/// On a shard unit: every rank computes its gradients in full, nothing reduces them.
constexpr llvm::StringLiteral kWholeGradientAttr = "spmd.whole_gradient";
/// On an argument that is cut over the tensor axis: the #spmd.sharding that says how.
constexpr llvm::StringLiteral kTensorCutAttr = "spmd.tensor_cut";
constexpr llvm::StringLiteral kSegmentAttr = "spmd.segment";
constexpr llvm::StringLiteral kPhasesAttr = "spmd.phases";
/// On an op of forward: backward is to compute its results again (spmd-recompute-values).
constexpr llvm::StringLiteral kRecomputeAttr = "spmd.recompute";
/// On an op of backward: it is a copy of an op of forward, and runs as late as its readers allow.
constexpr llvm::StringLiteral kRecomputedAttr = "spmd.recomputed";

/// True for the attributes an argument may have as `spmd.arg`.
bool isArgRole(mlir::Attribute attr);

/// The public function @step; emits an error on the module and returns null
/// when there is none with a body.
mlir::func::FuncOp getStep(mlir::ModuleOp module);

/// Role of an argument or result; null when it has none or, with T, another.
mlir::Attribute getArgRole(mlir::func::FuncOp func, unsigned arg);
mlir::Attribute getResultRole(mlir::func::FuncOp func, unsigned result);
template <typename T>
T getArgRole(mlir::func::FuncOp func, unsigned arg) {
  return llvm::dyn_cast_or_null<T>(getArgRole(func, arg));
}

/// Number of the argument with exactly this role.
std::optional<unsigned> findArg(mlir::func::FuncOp func, mlir::Attribute role);
/// Number of the argument that is this parameter.
std::optional<unsigned> findParam(mlir::func::FuncOp func, llvm::StringRef name);
/// Number of the argument that is state `state` of parameter `of`.
std::optional<unsigned> findState(mlir::func::FuncOp func, llvm::StringRef state, llvm::StringRef of);
/// Number of the result that is the new value of argument `arg`.
std::optional<unsigned> findUpdate(mlir::func::FuncOp func, unsigned arg);

/// How the global batch of `ranks` ranks is cut when each has a batch input of its own, as with view=local: they are
/// together in rank order in the batch dimension. Null for a type that is not varying.
ShardingAttr getVaryingBatchLayout(BatchAttr batch, mlir::RankedTensorType type, int64_t ranks);

/// The op's segment (see `spmd.segment`), if it has one.
std::optional<int64_t> getSegment(mlir::Operation *op);
/// What a run of ops of the step is for.
enum class StepPhase { forward, backward, optimizer };
/// The phase of a segment (see `spmd.phases`), or of an op's; none where that isn't known.
std::optional<StepPhase> getPhase(mlir::ModuleOp module, int64_t segment);
std::optional<StepPhase> getPhase(mlir::Operation *op);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_ROLES_H
