//===- Spmd.h - the spmd dialect --------------------------------*- C++ -*-===//
//
// Roles, shard units, sharding states and collectives of a training step.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_SPMD_SPMD_H
#define SPMD_DIALECTS_SPMD_SPMD_H

#include "dialects/Spmd/AxisState.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "spmd/Runtime/Core/CollectiveKind.h"

namespace spmd {
using runtime::CollectiveKind;

/// Starts, waits and releases read and write it, so that their order stands.
struct ScheduleResource : mlir::SideEffects::Resource::Base<ScheduleResource> {
  llvm::StringRef getName() final { return "schedule"; }
};
} // namespace spmd

#include "dialects/Spmd/SpmdDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Spmd/SpmdAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Spmd/SpmdTypes.h.inc"

namespace spmd {
/// The stream on which a collective belongs; `isOfUnit`: it moves a unit's flat buffer.
Stream getNaturalStream(CollectiveKind kind, bool isOfUnit);
} // namespace spmd

#include "dialects/Spmd/SpmdInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Spmd/SpmdOps.h.inc"

namespace spmd {
/// The start of a synchronous collective, on the stream that it belongs on.
mlir::Operation *createStart(mlir::OpBuilder &builder, CollectiveOpInterface op);

/// The values that a collective gives: of a start, those of its wait; none when nobody waits.
mlir::ValueRange getReceived(CollectiveOpInterface op);
} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_SPMD_H
