//===- NormalizeReductions.cpp - Reductions with their dims spelled out ---===//

#include "Normalize.h"

using namespace mlir;
using namespace spmd;

/// The reduced dimensions, counted from the front and ascending; none and an
/// empty list mean all.
static LogicalResult emitReduction(Emitter &emitter, Call &call, Results &results) {
  int64_t rank = cast<RankedTensorType>(call.value("self").getType()).getRank();
  SmallVector<int64_t> dims;
  if (BoundArg *dim = call.find("dim")) {
    if (dim->literal.kind == step::Arg::Kind::integer)
      dims.push_back(dim->literal.integer);
    else
      dims.append(dim->literal.integers.begin(), dim->literal.integers.end());
  }
  for (int64_t &dim : dims)
    dim = wrapDim(dim, rank);
  if (dims.empty())
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  llvm::sort(dims);
  setIntegers(call, "dim", dims);
  if (call.op == "sum")
    call.op = "sum.dim_IntList";
  if (call.op == "mean")
    call.op = "mean.dim";
  return emitSameOp(emitter, call, results);
}

void spmd::addReductionNormalizers(NormalizerTable &table) {
  for (StringRef op :
       {"sum", "sum.dim_IntList", "mean", "mean.dim", "amax", "linalg_vector_norm", "var_mean.correction"})
    table[op] = {&emitReduction, {"self"}};
}
