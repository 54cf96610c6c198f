//===- Random.cpp - random numbers ----------------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include "spmd/Runtime/Core/Philox.h"

using namespace mlir;

namespace spmd::interp {

static LogicalResult evaluatePhiloxUniform(OpCall &call) {
  const Tensor &index = call.tensor("index");
  uint64_t seed = call.tensor("seed").integers()[0], step = call.tensor("step").integers()[0];
  Tensor result(call.resultType(), index.shape());
  for (int64_t i = 0, e = index.numel(); i < e; ++i)
    result.set(i, runtime::philoxUniform(runtime::philox(seed, step, index.integers()[i],
                                                         call.integer("stream"))[call.integer("word")]));
  call.result(std::move(result));
  return success();
}

void registerRandom(EvaluatorRegistry &r) { r.add("aten.philox_uniform", evaluatePhiloxUniform); }

} // namespace spmd::interp
