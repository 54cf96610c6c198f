//===- DimArguments.cpp - Ops with a dimension and an index ----------------===//

#include "DimArguments.h"
#include "Layouts.h"
#include "Normalize.h"

using namespace mlir;
using namespace spmd;

Value spmd::atLeastVector(Emitter &emitter, Value value) {
  return typeOf(value).getRank() == 0 ? emitter.view(value, {1}) : value;
}

FailureOr<DimArguments> spmd::readDimArguments(Emitter &emitter, Call &call) {
  DimArguments arguments{atLeastVector(emitter, call.value("self")), atLeastVector(emitter, call.value("index")), 0};
  int64_t rank = typeOf(arguments.self).getRank();
  arguments.dim = wrapDim(call.integer("dim", 0), rank);
  if (arguments.dim < 0 || arguments.dim >= rank)
    return emitter.error("'") << call.op << "' of dimension " << arguments.dim << " of a tensor of rank " << rank;
  return arguments;
}

LogicalResult spmd::checkCorner(Emitter &emitter, Call &call, Value value, ArrayRef<int64_t> shape, int64_t dim) {
  RankedTensorType type = typeOf(value);
  bool fits = type.getRank() == static_cast<int64_t>(shape.size());
  for (int64_t other = 0; fits && other < type.getRank(); ++other)
    fits = other == dim || shape[other] <= type.getDimSize(other);
  if (fits)
    return success();
  return emitter.error("'") << call.op << "' has an index of shape [" << shape << "] for " << type;
}

Value spmd::sliceCorner(Emitter &emitter, Value value, ArrayRef<int64_t> shape, int64_t dim) {
  for (auto [other, size] : llvm::enumerate(shape))
    if (static_cast<int64_t>(other) != dim)
      value = emitSlice(emitter, value, other, 0, size);
  return value;
}
