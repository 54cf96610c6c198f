//===- LowerIndexing.cpp - rows by number, sorting ------------------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenIndexing.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::fusion {

namespace {

/// The numbers 0, 1, 2, … in order.
bool isCounting(const Ref &ids) {
  return ids.node->kind == NodeKind::Iota && ids.node->start == 0 && ids.node->step == 1 && ids.layout.isIdentity();
}

int64_t countBatches(RankedTensorType table, int64_t batchDims) {
  return numElements(table.getShape().take_front(batchDims));
}

LogicalResult lowerGatherRows(GraphBuilder &g, aten::GatherRowsOp op) {
  RankedTensorType tableType = typeOf(op.getSelf()), type = typeOf(op.getResult());
  int64_t batchDims = op.getBatchDims(), rows = tableType.getDimSize(batchDims);
  int64_t batch = countBatches(tableType, batchDims);
  Ref table = g.get(op.getSelf()), ids = g.get(op.getIndex());
  if (batch == 1 && isCounting(ids) && ids.getNumElements() <= rows) {
    g.set(op.getResult(), g.reshape(g.slice(table, batchDims, 0, 1, ids.getNumElements()), type.getShape()));
    return success();
  }
  Node *anchor = g.addAnchor(
      {g.contiguous(table), g.contiguous(ids)},
      [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
        return {kernel::GatherRowsOp::create(b, loc, results[0], operands[0], operands[1], batch,
                                             b.getI64IntegerAttr(rows), /*symbol=*/StringAttr())};
      });
  g.set(op.getResult(), g.addResult(anchor, type.getShape(), type.getElementType()));
  return success();
}

LogicalResult lowerScatterRows(GraphBuilder &g, aten::ScatterRowsOp op) {
  RankedTensorType resultType = typeOf(op.getResult());
  int64_t rows = op.getRows(), batch = countBatches(resultType, op.getBatchDims());
  auto kind = llvm::StringSwitch<kernel::ScatterKind>(op.getReduce())
                  .Case("sum", kernel::ScatterKind::Add)
                  .Case("prod", kernel::ScatterKind::Mul)
                  .Case("amax", kernel::ScatterKind::Max)
                  .Case("amin", kernel::ScatterKind::Min)
                  .Default(kernel::ScatterKind::Set);
  // What combines rows compares and adds values.
  Type type = resultType.getElementType(), inside = kind == kernel::ScatterKind::Set ? type : getValueType(type);
  SmallVector<Ref> inputs = {g.contiguous(g.cast(g.get(op.getSrc()), inside)), g.contiguous(g.get(op.getIndex()))};
  if (op.getSelf())
    inputs.push_back(g.contiguous(g.cast(g.get(op.getSelf()), inside)));
  Node *anchor = g.addAnchor(
      inputs, [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
        Value into = operands.size() > 2 ? operands[2] : Value();
        return {kernel::ScatterRowsOp::create(b, loc, results[0], kind, operands[0], operands[1], into, batch, rows,
                                              /*padding_idx=*/-1, /*symbol=*/StringAttr())};
      });
  g.set(op.getResult(), g.cast(g.addResult(anchor, resultType.getShape(), inside), type));
  return success();
}

LogicalResult lowerSort(GraphBuilder &g, aten::SortStableOp op) {
  RankedTensorType type = typeOf(op.getSelf());
  int64_t rank = type.getRank(), dim = op.getDim(), size = type.getDimSize(dim);
  // The sorted dimension innermost.
  SmallVector<int64_t> permutation = allDims(rank), inverse(rank);
  permutation.erase(permutation.begin() + dim);
  permutation.push_back(dim);
  SmallVector<int64_t> shape;
  for (auto [to, from] : llvm::enumerate(permutation)) {
    inverse[from] = to;
    shape.push_back(type.getDimSize(from));
  }
  bool descending = op.getDescending();
  Type valueType = getValueType(type.getElementType());
  Node *anchor = g.addAnchor(
      {g.contiguous(g.permute(g.cast(g.get(op.getSelf()), valueType), permutation))},
      [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange results) -> SmallVector<Value> {
        auto sort = kernel::SortOp::create(b, loc, results[0], results[1], operands[0], size, descending,
                                           /*symbol=*/StringAttr());
        return {sort.getValues(), sort.getIndices()};
      });
  Ref values = g.permute(g.addResult(anchor, shape, valueType), inverse);
  g.set(op.getValues(), g.cast(values, type.getElementType()));
  Type i64 = IntegerType::get(op.getContext(), 64);
  g.set(op.getIndices(), g.permute(g.addResult(anchor, shape, i64), inverse));
  return success();
}

LogicalResult lowerCheckIndex(GraphBuilder &g, aten::CheckIndexOp op) {
  Ref ids = g.contiguous(g.get(op.getSelf()));
  int64_t low = op.getLow(), high = op.getHigh();
  std::optional<int64_t> ignored = op.getIgnoreIndex();
  StringAttr use = op.getUseAttr();
  g.addAnchor({ids}, [=](OpBuilder &b, Location loc, ValueRange operands, TypeRange) -> SmallVector<Value> {
    kernel::CheckIndexOp::create(b, loc, operands[0], b.getI64IntegerAttr(low), b.getI64IntegerAttr(high),
                                 ignored ? b.getI64IntegerAttr(*ignored) : IntegerAttr(), use);
    return {};
  });
  // What reads rows by these numbers comes after the check: anchors keep their order.
  Ref checked = g.reshape(ids, typeOf(op.getResult()).getShape());
  Type type = typeOf(op.getResult()).getElementType();
  if (g.clampsIndices() && !type.isInteger(1))
    checked = g.pointwise({checked}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
      Value id = args[0]; // of an unsigned type in a wider signed one
      unsigned width = id.getType().getIntOrFloatBitWidth();
      auto number = [&](int64_t value) -> Value {
        int64_t within = std::clamp(value, llvm::minIntN(width), llvm::maxIntN(width));
        return arith::ConstantOp::create(b, b.getIntegerAttr(id.getType(), within));
      };
      Value above = arith::MaxSIOp::create(b, id, number(low));
      Value inside = arith::MinSIOp::create(b, above, number(high - 1));
      if (!ignored)
        return inside;
      Value isIgnored = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, id, number(*ignored));
      return arith::SelectOp::create(b, isIgnored, id, inside);
    });
  g.set(op.getResult(), checked);
  return success();
}

} // namespace

Lowered lowerIndexingOp(GraphBuilder &g, Operation *op) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::GatherRowsOp gather) -> Lowered { return lowerGatherRows(g, gather); })
      .Case([&](aten::ScatterRowsOp scatter) -> Lowered { return lowerScatterRows(g, scatter); })
      .Case([&](aten::SortStableOp sort) -> Lowered { return lowerSort(g, sort); })
      .Case([&](aten::CheckIndexOp check) -> Lowered { return lowerCheckIndex(g, check); })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
