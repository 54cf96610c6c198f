//===- AtenVerifyRandom.cpp - Verifier of random numbers ------------------===//

#include "dialects/Aten/AtenRandom.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd::aten;

LogicalResult spmd::aten::verifyPhiloxUniform(Operation *op) {
  auto uniform = cast<PhiloxUniformOp>(op);
  auto isI64 = [](Value value) { return typeOf(value).getElementType().isInteger(64); };
  RankedTensorType seed = typeOf(uniform.getSeed()), step = typeOf(uniform.getStep());
  if (!isI64(uniform.getSeed()) || !isI64(uniform.getStep()) || seed.getRank() != 0 || step.getRank() != 0) // C1
    return op->emitOpError() << "has seed " << seed << " and step " << step << ", expected i64 scalars";
  RankedTensorType index = typeOf(uniform.getIndex()), result = typeOf(uniform.getResult());
  if (!isI64(uniform.getIndex()) || !result.getElementType().isF32() || index.getShape() != result.getShape()) // C2
    return op->emitOpError() << "has index " << index << " and result " << result
                             << ", expected i64 and f32 of one shape";
  auto word = static_cast<int64_t>(uniform.getWord());
  if (word < 0 || word > 3) // C3
    return op->emitOpError() << "has word " << word << ", expected 0 to 3";
  return success();
}
