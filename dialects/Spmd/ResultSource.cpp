//===- ResultSource.cpp - where results of kernels come from --------------===//

#include "dialects/Spmd/ResultSource.h"
#include "mlir/IR/Operation.h"

using namespace mlir;

namespace spmd {

Location getResultLoc(StringRef op, unsigned result, Location loc) {
  return NameLoc::get(StringAttr::get(loc.getContext(), op + "#" + Twine(result)), loc);
}

std::pair<StringRef, Location> getResultSource(OpResult result) {
  Operation *op = result.getOwner();
  std::pair<StringRef, Location> source(op->getName().stripDialect(), op->getLoc());
  std::string suffix = "#" + std::to_string(result.getResultNumber());
  op->getLoc()->walk([&](Location nested) {
    auto named = dyn_cast<NameLoc>(nested);
    StringRef name = named ? named.getName().getValue() : "";
    if (!name.consume_back(suffix))
      return WalkResult::advance();
    source = {name, named.getChildLoc()};
    return WalkResult::interrupt();
  });
  return source;
}

} // namespace spmd
