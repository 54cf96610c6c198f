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
  if ((!getFunction() && !getLaunch()) || getFunction().has_value() != getLibrary().has_value() ||
      getFunction().has_value() != getHash().has_value() || getLaunch().has_value() != getCubins().has_value()) // C4
    return emitOpError("has neither a function of a library with a hash nor a launch of cubins");
  LaunchAttr launch = getLaunchAttr();
  if (!launch)
    return success();
  auto tensors = static_cast<int64_t>(getInputs().size() + getNumResults());
  if (launch.getGrid().size() != 3 || launch.getBlock().size() != 3) // C5
    return emitOpError("has a launch whose grid and block have not three sizes each");
  for (Attribute parameter : launch.getParameters()) {
    auto number = dyn_cast<IntegerAttr>(parameter);
    bool isTensor = number && isa<IndexType>(number.getType());
    if (!number && !isa<FloatAttr>(parameter))
      return emitOpError("has a launch with the parameter ") << parameter << ", expected a tensor's number or a number";
    if (isTensor && (number.getInt() < 0 || number.getInt() >= tensors))
      return emitOpError("has a launch with tensor ") << number.getInt() << " of " << tensors;
  }
  return success();
}

int64_t CustomCallOp::getParallelIterations() { return 1; }
int64_t CustomCallOp::getGrain() { return 1; }
double CustomCallOp::getFlops() {
  double elements = 0;
  for (Type type : getResultTypes())
    elements += getNumElements(type);
  return elements;
}
int64_t CustomCallOp::getBytesMoved() { return getTensorBytes(*this); }
bool CustomCallOp::canAlias(unsigned, unsigned) { return false; }
