//===- Dialect.cpp - registration and discardable attributes --------------===//

#include "dialects/Spmd/Spmd.h"

#include "dialects/Spmd/AsmFormat.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;

#include "dialects/Spmd/SpmdDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Spmd/SpmdTypes.cpp.inc"

#include "dialects/Spmd/SpmdInterfaces.cpp.inc"

void SpmdDialect::initialize() {
  registerAttributes();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Spmd/SpmdTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Spmd/SpmdOps.cpp.inc"
      >();
}

LogicalResult SpmdDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == kSegmentAttr && !isa<IntegerAttr>(attr.getValue()))
    return op->emitOpError() << "'" << kSegmentAttr << "' must be an integer, got " << attr.getValue();
  return success();
}

static LogicalResult verifyLayout(Operation *op, StringRef what, unsigned index, NamedAttribute attr) {
  if (isa<ShardingAttr>(attr.getValue()))
    return success();
  return op->emitOpError() << what << " " << index << ": '" << attr.getName().getValue()
                           << "' must be a #spmd.sharding, got " << attr.getValue();
}

LogicalResult SpmdDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned arg, NamedAttribute attr) {
  if (attr.getName() == kLayoutAttr || attr.getName() == kTensorCutAttr)
    return verifyLayout(op, "argument", arg, attr);
  if (attr.getName() == kIndexBoundAttr || attr.getName() == kIgnoreIndexAttr) {
    if (!isa<IntegerAttr>(attr.getValue()))
      return op->emitOpError() << "argument " << arg << ": '" << attr.getName().getValue()
                               << "' must be an integer, got " << attr.getValue();
    return success();
  }
  if (attr.getName() != kArgAttr)
    return op->emitOpError() << "argument " << arg << " has unknown attribute '" << attr.getName().getValue() << "'";
  if (!isArgRole(attr.getValue()))
    return op->emitOpError() << "argument " << arg << ": '" << kArgAttr << "' must be the role of an "
                             << "argument (param, buffer, constant, state, hyper, batch, shard or "
                             << "table), got " << attr.getValue();
  return success();
}

LogicalResult SpmdDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned result, NamedAttribute attr) {
  if (attr.getName() == kLayoutAttr)
    return verifyLayout(op, "result", result, attr);
  if (attr.getName() != kResultAttr)
    return op->emitOpError() << "result " << result << " has unknown attribute '" << attr.getName().getValue() << "'";
  if (!isa<LossAttr, OutputAttr, UpdateAttr>(attr.getValue()))
    return op->emitOpError() << "result " << result << ": '" << kResultAttr << "' must be loss, output or update, got "
                             << attr.getValue();
  return success();
}
