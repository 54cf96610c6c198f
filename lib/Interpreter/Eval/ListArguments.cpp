//===- ListArguments.cpp - list ops in list form and chunk form -----------===//

#include "ListArguments.h"

using namespace mlir;

namespace spmd::interp {

FailureOr<ListForm> ListForm::of(OpCall &call) {
  ListForm form;
  auto symbol = call.op->getAttrOfType<FlatSymbolRefAttr>("unit");
  if (!symbol)
    return form;
  FailureOr<ShardUnitOp> unit = lookupUnit(call.op, symbol);
  if (failed(unit))
    return failure();
  FailureOr<UnitChunk> chunk = getUnitChunk(*unit, call.context.coordinates);
  if (failed(chunk))
    return failure();
  form.chunk = std::move(*chunk);
  return form;
}

Tensor ListForm::perPosition(ArrayRef<double> values, int64_t position) const {
  if (!chunk)
    return Tensor::scalar(DType::f64, values[position]);
  return Tensor(DType::f64, {static_cast<int64_t>(values.size())}, std::vector<double>(values.begin(), values.end()));
}

Tensor ListForm::keepPadding(Tensor result, const Tensor &otherwise) const {
  if (!isChunk(result))
    return result;
  Tensor kept(result.dtype(), result.shape());
  if (otherwise)
    for (int64_t i = 0; i < chunk->size; ++i)
      kept.set(i, otherwise.at(i));
  for (const SegmentRun &run : chunk->runs)
    for (int64_t i = run.begin; i < run.end; ++i)
      kept.set(i, result.at(i));
  return kept;
}

} // namespace spmd::interp
