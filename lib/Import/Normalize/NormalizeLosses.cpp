//===- NormalizeLosses.cpp - Losses per element, and their reduction ------===//
//
// Our losses are those of one element. A sum or a mean over everything is an op
// of its own, and the division of a mean's gradient too: under sharding the
// count is the global one because it is written in the program.
//
//===----------------------------------------------------------------------===//

#include "Normalize.h"

#include "dialects/Aten/AtenInterfaces.h"

using namespace mlir;
using namespace spmd;

/// PyTorch's numbers of the `reduction` argument.
enum Reduction { kNone = 0, kMean = 1, kSum = 2 };

/// The shape of self and target together.
static SmallVector<int64_t> elementShape(Call &call) {
  SmallVector<int64_t> shape;
  for (StringRef name : {"self", "target"}) {
    ArrayRef<int64_t> other = typeOf(call.value(name)).getShape();
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (auto [mine, theirs] : llvm::zip(llvm::reverse(shape), llvm::reverse(other)))
      mine = std::max(mine, theirs);
  }
  return shape;
}

static LogicalResult emitLoss(Emitter &emitter, Call &call, Results &results) {
  int64_t reduction = call.integer("reduction", kMean);
  RankedTensorType wanted = call.resultTypes[0];
  call.resultTypes[0] = wanted.clone(elementShape(call));
  LogicalResult emitted = emitSameOp(emitter, call, results);
  call.resultTypes[0] = wanted;
  if (failed(emitted) || reduction == kNone)
    return emitted;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(results.back()).getRank()));
  results.back() = emitter.createValue(reduction == kMean ? "mean.dim" : "sum.dim_IntList", results.back(),
                                       {emitter.named("dim", emitter.builder.getDenseI64ArrayAttr(dims)),
                                        emitter.named("keepdim", emitter.builder.getBoolAttr(false))},
                                       wanted);
  return success();
}

static LogicalResult emitLossBackward(Emitter &emitter, Call &call, Results &results) {
  if (failed(emitSameOp(emitter, call, results)))
    return failure();
  if (call.integer("reduction", kMean) != kMean)
    return success();
  int64_t count = ShapedType::getNumElements(elementShape(call));
  results.back() = emitter.createValue("div.Scalar", results.back(),
                                       emitter.named("other", emitter.builder.getI64IntegerAttr(count)),
                                       typeOf(results.back()));
  return success();
}

void spmd::normalizeLosses(NormalizerTable &table) {
  for (StringRef op : {"smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy",
                       "binary_cross_entropy_with_logits"})
    table[op] = {&emitLoss, {"self", "target"}};
  for (StringRef op :
       {"smooth_l1_loss_backward", "huber_loss_backward", "soft_margin_loss_backward", "binary_cross_entropy_backward"})
    table[op] = {&emitLossBackward, {"grad_output", "self", "target"}};
}
