//===- NormalizeIndexing.cpp - Reading by number ---------------------------===//

#include "DimArguments.h"
#include "Normalize.h"
#include "RowAccess.h"

using namespace mlir;
using namespace spmd;

static LogicalResult emitGather(Emitter &emitter, Call &call, Results &results) {
  FailureOr<DimArguments> arguments = readDimArguments(emitter, call);
  if (failed(arguments))
    return failure();
  auto [self, index, dim] = *arguments;
  if (failed(checkCorner(emitter, call, self, typeOf(index).getShape(), dim)))
    return failure();
  self = sliceCorner(emitter, self, typeOf(index).getShape(), dim);
  RowAccess access = getAccessAlongDim(emitter, typeOf(self).getShape(), dim, index, call.op);
  results.push_back(emitter.view(access.gather(emitter, self), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitIndexSelect(Emitter &emitter, Call &call, Results &results) {
  FailureOr<DimArguments> arguments = readDimArguments(emitter, call);
  if (failed(arguments))
    return failure();
  auto [self, index, dim] = *arguments;
  RowAccess access = getAccessOfRows(emitter, typeOf(self).getShape(), dim, index, call.op);
  results.push_back(emitter.view(access.gather(emitter, self), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitTake(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self"), index = call.value("index");
  int64_t elements = typeOf(self).getNumElements();
  RowAccess access = getFlatAccess(emitter, index, elements, call.op);
  results.push_back(access.gather(emitter, emitter.view(self, {elements})));
  return success();
}

static LogicalResult emitIndex(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  BoundArg *indices = call.find("indices");
  if (!indices)
    return emitter.error("'index' has no index");
  FailureOr<IndexAccess> access = getIndexAccess(emitter, typeOf(self).getShape(), indices->values, "index");
  if (failed(access))
    return failure();
  if (!access->isView) {
    results.push_back(access->rows.gather(emitter, self));
    return success();
  }
  Value value = emitter.view(emitter.permute(self, access->rows.tablePermutation), access->viewed);
  results.push_back(emitter.permute(emitter.expand(value, access->expanded), access->permutation));
  return success();
}

void spmd::normalizeIndexing(NormalizerTable &table) {
  table["gather"] = {&emitGather, {"self", "index"}};
  table["index_select"] = {&emitIndexSelect, {"self", "index"}};
  table["take"] = {&emitTake, {"self", "index"}};
  for (StringRef op : {"index.Tensor", "_unsafe_index.Tensor"})
    table[op] = {&emitIndex, {"self"}};
}
