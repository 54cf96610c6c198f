//===- Ranks.cpp - collectives of the user's own --------------------------===//

#include "spmd/Interpreter/Evaluator.h"

using namespace mlir;

namespace spmd::interp {

/// Before partition there is one rank.
static LogicalResult evaluateAmongRanks(OpCall &call) {
  if (call.integer("ranks") != 1)
    return call.error() << "gets what " << call.integer("ranks") << " ranks have; partition the program first";
  call.result(call.tensor("self"));
  return success();
}

void registerRanks(EvaluatorRegistry &r) {
  for (const char *op : {"aten.c10d_all_reduce", "aten.c10d_all_gather", "aten.c10d_reduce_scatter"})
    r.add(op, evaluateAmongRanks);
}

} // namespace spmd::interp
