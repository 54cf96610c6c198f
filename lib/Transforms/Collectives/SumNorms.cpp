//===- SumNorms.cpp - spmd-sum-norms --------------------------------------===//

#include "dialects/Aten/AtenDialect.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/FunctionPass.h"

namespace spmd {
#define GEN_PASS_DEF_SUMNORMS
#include "spmd/Transforms/Collectives/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {
struct SumNormsPass : FunctionPass<spmd::impl::SumNormsBase<SumNormsPass>> {
  using FunctionPass::FunctionPass;
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &rewriter, SegmentListener &listener) override;

private:
  LogicalResult rewrite(AllReduceStartOp start, IRRewriter &rewriter, SegmentListener &listener);
};
} // namespace

static Value cast(OpBuilder &builder, Location loc, Value value, Type type) {
  if (typeOf(value).getElementType() == type)
    return value;
  return aten::ToCopyOp::create(builder, loc, typeOf(value).clone(type), value, TypeAttr::get(type));
}

LogicalResult SumNormsPass::rewrite(AllReduceStartOp start, IRRewriter &rewriter, SegmentListener &listener) {
  auto kinds = start.getKinds();
  auto isNorm = [&](size_t i) { return llvm::cast<ReduceKindAttr>(kinds[i]).getValue() == ReduceKind::norm2; };
  if (llvm::none_of(llvm::seq<size_t>(0, kinds.size()), isNorm))
    return success();
  WaitOp wait;
  for (Operation *user : start.getHandle().getUsers())
    wait = dyn_cast<WaitOp>(user);
  if (!wait)
    return start.emitOpError("is waited for by nothing");
  Location loc = start.getLoc();
  listener.setSource(start);
  rewriter.setInsertionPoint(start);
  SmallVector<Value> inputs;
  SmallVector<Attribute> newKinds;
  SmallVector<Type> types;
  for (auto [i, input] : llvm::enumerate(start.getInputs())) {
    newKinds.push_back(isNorm(i) ? ReduceKindAttr::get(&getContext(), ReduceKind::sum) : kinds[i]);
    // Squares of 16 bits would lose half of what the norm has. A message has one type, and a communicator adds up in
    // f32, too: a sum beside the norm, rounded afterwards, keeps its bits.
    Type element = typeOf(input).getElementType();
    Value wide = cast(rewriter, loc, input, element.getIntOrFloatBitWidth() < 32 ? rewriter.getF32Type() : element);
    input = isNorm(i) ? aten::MulTensorOp::create(rewriter, loc, wide.getType(), wide, wide) : wide;
    inputs.push_back(input);
    types.push_back(input.getType());
  }
  auto handle = HandleType::get(&getContext(), types);
  auto newStart = AllReduceStartOp::create(rewriter, loc, handle, inputs, start.getMeshAttr(), start.getAxesAttr(),
                                           start.getUnitAttr(), rewriter.getArrayAttr(newKinds), start.getStreamAttr());
  newStart->setDiscardableAttrs(start->getDiscardableAttrDictionary());
  listener.setSource(wait);
  rewriter.setInsertionPoint(wait);
  auto newWait = WaitOp::create(rewriter, wait.getLoc(), types, newStart.getHandle());
  newWait->setDiscardableAttrs(wait->getDiscardableAttrDictionary());
  SmallVector<Value> results;
  for (auto [i, result] : llvm::enumerate(newWait.getResults())) {
    Value value = result;
    if (isNorm(i))
      value = aten::SqrtOp::create(rewriter, wait.getLoc(), value.getType(), value);
    results.push_back(cast(rewriter, wait.getLoc(), value, typeOf(wait.getResult(i)).getElementType()));
  }
  rewriter.replaceOp(wait, results);
  rewriter.eraseOp(start);
  return success();
}

LogicalResult SumNormsPass::runOnFunction(func::FuncOp func, IRRewriter &rewriter, SegmentListener &listener) {
  if (!enable)
    return success();
  SmallVector<AllReduceStartOp> starts;
  func.walk([&](AllReduceStartOp op) { starts.push_back(op); });
  for (AllReduceStartOp op : starts)
    if (failed(rewrite(op, rewriter, listener)))
      return failure();
  return success();
}
