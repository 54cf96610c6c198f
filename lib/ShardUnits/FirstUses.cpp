//===- FirstUses.cpp ------------------------------------------------------===//

#include "spmd/ShardUnits/FirstUses.h"

using namespace spmd::units;

void FirstUses::addOp(const std::vector<uint64_t> &operands, const std::vector<uint64_t> &results) {
  int64_t number = next++;
  for (uint64_t operand : operands) {
    auto parameter = parameters.find(operand);
    if (parameter == parameters.end())
      continue;
    size_t used = parameter->second;
    if (operands.size() == 1)
      for (uint64_t result : results)
        parameters[result] = used;
    else if (uses[used] == kNone)
      uses[used] = number;
  }
}
