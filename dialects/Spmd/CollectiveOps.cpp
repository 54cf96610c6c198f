//===- CollectiveOps.cpp - verifiers of collectives -----------------------===//
//
// Constraints of every op with a mesh: C1 the mesh exists, C2 it has the axes,
// C3 the unit, if any, exists. The numbers go on from there.
//
//===----------------------------------------------------------------------===//

#include "dialects/Spmd/AsmFormat.h"
#include "dialects/Spmd/GroupSize.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace spmd;

//===----------------------------------------------------------------------===//
// Shared constraints
//===----------------------------------------------------------------------===//

/// C1 to C3; the size of the group.
template <typename OpTy>
static FailureOr<int64_t> verifySymbols(OpTy op, SymbolTableCollection &tables) {
  if constexpr (std::is_base_of_v<CollectiveOpInterface::Trait<OpTy>, OpTy>)
    if (op.getUnitAttr() && failed(spmd::getUnit(tables, op, op.getUnitAttr())))
      return failure();
  return getGroupSize(tables, op, op.getMeshAttr(), op.getAxesAttr());
}

/// C4: `whole` and `piece` differ only in `dim`, which is [pre][total] in the
/// one and [pre][chunk] in the other, with chunk × ranks >= total.
static LogicalResult verifyCut(Operation *op, Type wholeType, Type pieceType, int64_t dim, int64_t pre, int64_t ranks) {
  auto whole = cast<RankedTensorType>(wholeType);
  auto piece = cast<RankedTensorType>(pieceType);
  if (whole.getElementType() != piece.getElementType())
    return op->emitOpError() << "changes the element type from " << whole.getElementType() << " to "
                             << piece.getElementType();
  if (dim < 0 || dim >= whole.getRank() || whole.getRank() != piece.getRank())
    return op->emitOpError() << "has dim " << dim << ", which is not a dimension of " << whole << " and " << piece;
  for (int64_t i = 0; i < whole.getRank(); ++i)
    if (i != dim && whole.getDimSize(i) != piece.getDimSize(i))
      return op->emitOpError() << "changes dimension " << i << " from " << whole.getDimSize(i) << " to "
                               << piece.getDimSize(i) << ", but cuts dimension " << dim;
  int64_t total = whole.getDimSize(dim), chunk = piece.getDimSize(dim);
  if (pre < 1 || total % pre != 0 || chunk % pre != 0)
    return op->emitOpError() << "has pre " << pre << ", which does not divide " << total << " and " << chunk;
  if (chunk * ranks < total)
    return op->emitOpError() << "has chunks of " << chunk / pre << " rows on " << ranks << " ranks, too few for "
                             << total / pre << " rows";
  return success();
}

/// C5: one attribute says what a type says too.
static LogicalResult verifyRows(Operation *op, StringRef name, int64_t rows, Type type, int64_t dim, int64_t pre) {
  int64_t inType = cast<RankedTensorType>(type).getDimSize(dim);
  if (rows * pre != inType)
    return op->emitOpError() << "has " << name << " " << rows << " and pre " << pre << ", but dimension " << dim
                             << " of " << type << " has size " << inType;
  return success();
}

/// C4 of all_reduce: as many kinds as values; the shapes stay.
static LogicalResult verifyKinds(Operation *op, ArrayAttr kinds, TypeRange inputs, TypeRange results) {
  if (kinds.size() != inputs.size() || inputs.size() != results.size())
    return op->emitOpError() << "has " << kinds.size() << " kinds, " << inputs.size() << " operands and "
                             << results.size() << " results";
  for (auto [input, result] : llvm::zip(inputs, results)) {
    auto from = cast<RankedTensorType>(input), to = cast<RankedTensorType>(result);
    if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
      return op->emitOpError() << "changes " << from << " to " << to;
  }
  return success();
}

static Type getOnlyResult(HandleType handle) {
  return handle.getResults().size() == 1 ? handle.getResults().front() : Type();
}

/// C6 of starts: streams are named.
static LogicalResult verifyStream(Operation *op, StringRef stream) {
  if (stream != "gather" && stream != "reduce" && stream != "scalar")
    return op->emitOpError() << "has stream \"" << stream << "\", expected gather, reduce or scalar";
  return success();
}

//===----------------------------------------------------------------------===//
// all_gather, reduce_scatter, all_reduce
//===----------------------------------------------------------------------===//

/// The methods of CollectiveOpInterface that are not accessors.
#define SPMD_COLLECTIVE(OP, NAME, RECEIVED)                                                                            \
  StringRef OP::getCollectiveName() { return NAME; }                                                                   \
  SmallVector<Type> OP::getReceivedTypes() { return SmallVector<Type>(RECEIVED); }

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = verifySymbols(*this, tables);
  return success(succeeded(ranks) &&
                 succeeded(verifyCut(*this, getType(), getInput().getType(), getDim(), getPre(), *ranks)) &&
                 succeeded(verifyRows(*this, "total", getTotal(), getType(), getDim(), getPre())));
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = verifySymbols(*this, tables);
  return success(succeeded(ranks) &&
                 succeeded(verifyCut(*this, getInput().getType(), getType(), getDim(), getPre(), *ranks)) &&
                 succeeded(verifyRows(*this, "chunk", getChunk(), getType(), getDim(), getPre())));
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &tables) {
  return success(succeeded(verifySymbols(*this, tables)) &&
                 succeeded(verifyKinds(*this, getKinds(), getInputs().getTypes(), getResultTypes())));
}

//===----------------------------------------------------------------------===//
// slice, mask
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = verifySymbols(*this, tables);
  return success(succeeded(ranks) &&
                 succeeded(verifyCut(*this, getInput().getType(), getType(), getDim(), getPre(), *ranks)) &&
                 succeeded(verifyRows(*this, "chunk", getChunk(), getType(), getDim(), getPre())));
}

LogicalResult MaskOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = verifySymbols(*this, tables);
  if (failed(ranks))
    return failure();
  // C4
  if (getInput().getType() != getType())
    return emitOpError() << "changes the type from " << getInput().getType() << " to " << getType();
  int64_t rank = cast<RankedTensorType>(getType()).getRank();
  if (getDim() >= static_cast<uint64_t>(rank))
    return emitOpError() << "has dim " << getDim() << ", which is not a dimension of " << getType();
  if (getChunk() * *ranks < getTotal())
    return emitOpError() << "has chunks of " << getChunk() << " rows on " << *ranks << " ranks, too few for "
                         << getTotal() << " rows";
  // C5
  return verifyRows(*this, "chunk", getChunk(), getType(), getDim(), getPre());
}

//===----------------------------------------------------------------------===//
// Starts and waits
//===----------------------------------------------------------------------===//

LogicalResult AllGatherStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = verifySymbols(*this, tables);
  Type result = getOnlyResult(getHandle().getType());
  if (succeeded(ranks) && !result)
    return emitOpError() << "must give a handle of one value";
  return success(succeeded(ranks) &&
                 succeeded(verifyCut(*this, result, getInput().getType(), getDim(), getPre(), *ranks)) &&
                 succeeded(verifyRows(*this, "total", getTotal(), result, getDim(), getPre())) &&
                 succeeded(verifyStream(*this, getStream())));
}

LogicalResult ReduceScatterStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = verifySymbols(*this, tables);
  Type result = getOnlyResult(getHandle().getType());
  if (succeeded(ranks) && !result)
    return emitOpError() << "must give a handle of one value";
  return success(succeeded(ranks) &&
                 succeeded(verifyCut(*this, getInput().getType(), result, getDim(), getPre(), *ranks)) &&
                 succeeded(verifyRows(*this, "chunk", getChunk(), result, getDim(), getPre())) &&
                 succeeded(verifyStream(*this, getStream())));
}

LogicalResult AllReduceStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  return success(
      succeeded(verifySymbols(*this, tables)) &&
      succeeded(verifyKinds(*this, getKinds(), getInputs().getTypes(), getHandle().getType().getResults())) &&
      succeeded(verifyStream(*this, getStream())));
}

LogicalResult WaitOp::verify() {
  // C1
  if (getResultTypes() != TypeRange(getHandle().getType().getResults()))
    return emitOpError() << "gives other types than its handle " << getHandle().getType();
  return success();
}

SPMD_COLLECTIVE(AllGatherOp, "all_gather", getOperation()->getResultTypes())
SPMD_COLLECTIVE(ReduceScatterOp, "reduce_scatter", getOperation()->getResultTypes())
SPMD_COLLECTIVE(AllReduceOp, "all_reduce", getOperation()->getResultTypes())
SPMD_COLLECTIVE(AllGatherStartOp, "all_gather", getHandle().getType().getResults())
SPMD_COLLECTIVE(ReduceScatterStartOp, "reduce_scatter", getHandle().getType().getResults())
SPMD_COLLECTIVE(AllReduceStartOp, "all_reduce", getHandle().getType().getResults())

#define GET_OP_CLASSES
#include "dialects/Spmd/SpmdOps.cpp.inc"
