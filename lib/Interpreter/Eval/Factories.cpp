//===- Factories.cpp - tensors made from attributes alone -----------------===//

#include "Map.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {

static LogicalResult evaluateFull(OpCall &call) {
  Tensor value = scalarArgument(call, "fill_value").converted(call.resultType());
  call.result(broadcastTo(value, call.integers("size")));
  return success();
}

static LogicalResult evaluateArange(OpCall &call) {
  Tensor start = scalarArgument(call, "start"), end = scalarArgument(call, "end"),
         step = call.has("step") ? scalarArgument(call, "step") : Tensor::scalar(DType::i64, 1);
  double span = (end.at(0) - start.at(0)) / step.at(0);
  int64_t count = std::max<int64_t>(static_cast<int64_t>(std::ceil(span)), 0);
  Tensor result(call.resultType(), {count});
  for (int64_t i = 0; i < count; ++i)
    result.set(i, start.at(0) + i * step.at(0));
  call.result(std::move(result));
  return success();
}

static LogicalResult evaluateConstant(OpCall &call) {
  auto elements = dyn_cast<DenseElementsAttr>(call.op->getAttr("value"));
  if (!elements)
    return call.error() << "only dense constants are supported";
  Tensor result(call.resultType(), cast<ShapedType>(elements.getType()).getShape());
  int64_t i = 0;
  if (result.isFloating()) {
    for (const APFloat &value : elements.getValues<APFloat>()) {
      APFloat wide = value;
      bool inexact;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
      result.set(i++, wide.convertToDouble());
    }
  } else {
    bool isSigned = result.dtype() != DType::u8 && result.dtype() != DType::i1;
    for (const APInt &value : elements.getValues<APInt>())
      result.integerData()[i++] = isSigned ? value.getSExtValue() : value.getZExtValue();
  }
  call.result(std::move(result));
  return success();
}

void registerFactories(EvaluatorRegistry &r) {
  r.add("aten.full", evaluateFull);
  r.add("aten.arange.start_step", evaluateArange);
  r.add("aten.scalar_tensor", [](OpCall &call) {
    call.result(scalarArgument(call, "s").converted(call.resultType()));
    return success();
  });
  r.add("aten.constant", evaluateConstant);
}

} // namespace spmd::interp
