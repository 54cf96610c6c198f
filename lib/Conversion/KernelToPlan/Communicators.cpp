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

SmallVector<int64_t> getElementCounts(CollectiveOpInterface op) {
  CollectiveKind kind = op.getCollectiveKind();
  auto count = [](Type type) { return cast<RankedTensorType>(type).getNumElements(); };
  if (isInPlace(kind))
    return llvm::map_to_vector(op->getOperandTypes(), count);
  int64_t sent = count(op->getOperand(0).getType());
  if (!sendsWhole(kind))
    return {sent};
  return {receivesWhole(kind) ? sent / getGroupSize(op) : count(op.getReceivedTypes().front())};
}

std::string getCommunicatorName(CollectiveOpInterface op) {
  std::string name = stringifyStream(op.getStreamKind()).str();
  for (const std::string &axis : getPartialAxes(op))
    name += "." + axis;
  return name;
}

} // namespace spmd
