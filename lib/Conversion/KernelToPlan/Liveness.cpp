//===- Liveness.cpp - Until when a value can be read ----------------------===//

#include "Liveness.h"
#include "dialects/Spmd/Spmd.h"

using namespace mlir;
using namespace spmd;

Liveness::Liveness(Block &block) {
  for (Operation &op : block)
    positions[&op] = end++;
}

int64_t Liveness::getEndOfUse(Operation *user) const {
  int64_t last = positions.at(user);
  if (auto collective = dyn_cast<CollectiveOpInterface>(user); collective && collective.isStart()) {
    if (user->getResult(0).use_empty())
      return end;
    for (Operation *wait : user->getResult(0).getUsers())
      last = std::max(last, positions.at(wait));
  }
  return last;
}

bool Liveness::isDeadAfter(Value value, Operation *op) const {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == op || isa<ReleaseOp>(user) || getEndOfUse(user) < positions.at(op);
  });
}
