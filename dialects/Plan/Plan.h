//===- Plan.h - the plan dialect ------------------------------------------===//
//
// The command list of a rank as IR; see README.md for what it is and why.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_DIALECTS_PLAN_PLAN_H
#define SPMD_DIALECTS_PLAN_PLAN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "spmd/Runtime/Core/CollectiveKind.h"

#include "dialects/Plan/PlanDialect.h.inc"
#include "dialects/Plan/PlanEnums.h.inc"

namespace spmd::plan {
using runtime::CollectiveKind;

/// The name of a collective (Kinds.def).
mlir::FailureOr<CollectiveKind> parseCollective(mlir::AsmParser &parser);
} // namespace spmd::plan

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.h.inc"

#include "dialects/Plan/PlanInterfaces.h.inc"

namespace spmd::plan {
class BufferOp;

/// How reports and the artifact spell a class: "optimizer state" for optimizer_state.
llvm::StringRef getClassName(BufferClass bufferClass);
} // namespace spmd::plan

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

namespace spmd::plan {
/// Creates the command of a collective and returns its event. `counts` are elements of a rank's part, or in place of
/// each buffer; `kinds` has one for each count where values are combined.
mlir::Value createCollective(mlir::OpBuilder &builder, mlir::Location loc, CollectiveKind kind,
                             llvm::ArrayRef<RefAttr> refs, llvm::ArrayRef<int64_t> counts,
                             llvm::ArrayRef<ReductionKind> kinds, mlir::Type dtype, llvm::StringRef unit,
                             llvm::StringRef comm, Stream stream);
} // namespace spmd::plan

#endif // SPMD_DIALECTS_PLAN_PLAN_H
