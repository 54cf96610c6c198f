//===- AmongRanks.cpp - collectives of the user's own ---------------------===//
//
// With view=local a step may call functional collectives: what they give is what PyTorch gives a rank among as many.
// What all ranks get is the same on each, and varies no more; a part of it is a rank's own.
//
//===----------------------------------------------------------------------===//

#include "Partitioner.h"

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenRanks.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::partition {

/// What all ranks have, combined; on all of them.
Value Partitioner::reduceAmongRanks(Value value, StringRef kind) {
  bool varies = getState(value).isVarying();
  Value local = get(value, varies ? AxisState::varying() : AxisState::replicated());
  if (!varies) // the same on all
    return kind == "sum" ? create<aten::MulScalarOp>(local.getType(), local, builder.getI64IntegerAttr(step.ranks))
                         : local;
  auto reduce = llvm::StringSwitch<ReduceKind>(kind)
                    .Case("max", ReduceKind::max)
                    .Case("min", ReduceKind::min)
                    .Default(ReduceKind::sum);
  Value result = allReduce(local, typeOf(value), AxisState::partial(reduce), {});
  return kind == "avg" ? average(result) : result;
}

/// What all ranks have, one after the other; on all of them.
Value Partitioner::gatherAmongRanks(Value value, RankedTensorType type) {
  Type result = getLocalType(type, AxisState::replicated());
  if (!getState(value).isVarying()) {
    SmallVector<Value> copies(step.ranks, get(value, AxisState::replicated()));
    return create<aten::CatOp>(result, copies, builder.getI64IntegerAttr(0));
  }
  return create<AllGatherOp>(result, get(value, AxisState::varying()), step.meshRef(), step.axes(), FlatSymbolRefAttr(),
                             builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(1),
                             builder.getI64IntegerAttr(type.getDimSize(0)));
}

LogicalResult Partitioner::emitAmongRanks(Operation *op) {
  Value self = op->getOperand(0), result = op->getResult(0);
  int64_t ranks = op->getAttrOfType<IntegerAttr>("ranks").getInt();
  if (ranks != step.ranks)
    return op->emitError() << "this collective is among " << ranks << " ranks, and the step is compiled for "
                           << step.ranks << " (" << describeSource(loc) << "); capture it in a process group of "
                           << step.ranks << ", or compile it for " << ranks;
  if (ranks == 1) {
    setLocal(result, AxisState::replicated(), get(self, AxisState::replicated()));
    return success();
  }
  if (!step.isLocalView)
    return op->emitError()
           << "this collective combines values of ranks, but with view=global the step is that of one device with "
              "the whole batch ("
           << describeSource(loc) << "); use view=local, or remove the collective";
  // A gradient that an optimizer takes is an average already. Else this combines what the ranks have.
  if (domain.getWanted(self) && failed(reduceVaryingOperands(op)))
    return failure();
  RankedTensorType type = typeOf(result);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](aten::C10dAllReduceOp reduce) {
        setLocal(result, AxisState::replicated(), reduceAmongRanks(self, reduce.getKind()));
      })
      .Case([&](aten::C10dAllGatherOp) { setLocal(result, AxisState::replicated(), gatherAmongRanks(self, type)); })
      .Case([&](aten::C10dReduceScatterOp scatter) {
        Value whole = reduceAmongRanks(self, scatter.getKind());
        Value rows = create<SliceOp>(getLocalType(type, AxisState::varying()), whole, step.meshRef(), step.axes(),
                                     builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(1),
                                     builder.getI64IntegerAttr(type.getDimSize(0)));
        setLocal(result, AxisState::varying(), rows);
      });
  return success();
}

} // namespace spmd::partition
