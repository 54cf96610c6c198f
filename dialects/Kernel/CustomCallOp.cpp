//===- CustomCallOp.cpp - kernel.custom_call ------------------------------===//

#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;
using namespace spmd::kernel;

LogicalResult CustomCallOp::verify() {
  auto units = llvm::count_if(getArguments(), [](Attribute argument) { return isa<UnitAttr>(argument); });
  if (static_cast<size_t>(units) != getInputs().size() || getShapes().size() != getInputs().size()) // C1
    return emitOpError("has ") << getInputs().size() << " inputs, " << units << " places for them and "
                               << getShapes().size() << " shapes";
  for (auto [input, attr] : llvm::zip_equal(getInputs(), getShapes())) { // C2
    auto shape = dyn_cast<DenseI64ArrayAttr>(attr);
    if (!shape || ShapedType::getNumElements(shape.asArrayRef()) != getNumElements(input.getType()))
      return emitOpError("has the shape ") << attr << " for an input of type " << input.getType();
  }
  if (getResults().empty()) // C3
    return emitOpError("has no result");
  return success();
}

int64_t CustomCallOp::getParallelTrips() { return 1; }
int64_t CustomCallOp::getGrain() { return 1; }
double CustomCallOp::getFlops() {
  double elements = 0;
  for (Type type : getResultTypes())
    elements += getNumElements(type);
  return elements;
}
int64_t CustomCallOp::getBytesMoved() { return getTensorBytes(*this); }
bool CustomCallOp::canAlias(unsigned, unsigned) { return false; }
