//===- CheckUnitOptions.cpp - options that have code ----------------------===//

#include "spmd/Transforms/Units/CheckUnitOptions.h"
#include "dialects/Spmd/Spmd.h"

using namespace mlir;
using namespace spmd;

static LogicalResult check(ShardUnitOp unit) {
  auto fail = [&] {
    StringRef name = unit.getModules().empty() ? "" : cast<StringAttr>(unit.getModules()[0]).getValue();
    return emitError(unit.getLoc()) << "shard unit '" << (name.empty() ? "(root)" : name) << "' (@"
                                    << unit.getSymName() << ") ";
  };
  if (std::optional<int64_t> group = unit.getReshardGroup())
    return fail() << "reshards after forward to groups of " << *group
                  << " ranks, for which no code can be generated yet; use true or false";
  return success();
}

LogicalResult spmd::checkUnitOptions(ModuleOp module) {
  for (ShardUnitOp unit : module.getOps<ShardUnitOp>())
    if (failed(check(unit)))
      return failure();
  return success();
}
