//===- Communicators.cpp - Which ranks a collective connects --------------===//

#include "Communicators.h"

using namespace mlir;

namespace spmd {

static MeshOp getMesh(CollectiveOpInterface op) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, op.getMeshAttr());
}

std::vector<std::string> getPartialAxes(CollectiveOpInterface op) {
  std::vector<std::string> axes;
  if (op.getAxesAttr() != getMesh(op).getAxisNames())
    for (StringRef axis : op.getAxesAttr().getAsValueRange<StringAttr>())
      axes.push_back(axis.str());
  return axes;
}

int64_t getGroupSize(CollectiveOpInterface op) { return getMesh(op).getNumRanks(op.getAxesAttr()); }

std::string getCommunicatorName(CollectiveOpInterface op) {
  std::string name = stringifyStream(op.getStreamKind()).str();
  for (const std::string &axis : getPartialAxes(op))
    name += "." + axis;
  return name;
}

} // namespace spmd
