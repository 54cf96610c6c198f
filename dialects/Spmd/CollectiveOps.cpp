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

//===----------------------------------------------------------------------===//
// all_gather, reduce_scatter, all_reduce, and their starts
//===----------------------------------------------------------------------===//

Stream spmd::getNaturalStream(CollectiveKind kind, bool isOfUnit) {
  if (kind == CollectiveKind::all_gather)
    return Stream::gather;
  return kind == CollectiveKind::reduce_scatter || isOfUnit ? Stream::reduce : Stream::scalar;
}

/// C1 to C5 of a collective that gives one value: the whole, of which ranks sent pieces, or a piece. `rows` is what its
/// attribute `name` says of what is received.
template <typename OpTy>
static LogicalResult verifyRowsMoved(OpTy op, SymbolTableCollection &tables, StringRef name, int64_t rows) {
  FailureOr<int64_t> ranks = verifySymbols(op, tables);
  if (failed(ranks))
    return failure();
  SmallVector<Type> types = op.getReceivedTypes();
  if (types.size() != 1)
    return op.emitOpError() << "must give a handle of one value";
  Type whole = types.front(), piece = op.getInput().getType();
  if (op.getCollectiveKind() == CollectiveKind::reduce_scatter)
    std::swap(whole, piece);
  return success(succeeded(verifyCut(op, whole, piece, op.getDim(), op.getPre(), *ranks)) &&
                 succeeded(verifyRows(op, name, rows, types.front(), op.getDim(), op.getPre())));
}

template <typename OpTy>
static LogicalResult verifyAllGather(OpTy op, SymbolTableCollection &tables) {
  return verifyRowsMoved(op, tables, "total", op.getTotal());
}

template <typename OpTy>
static LogicalResult verifyReduceScatter(OpTy op, SymbolTableCollection &tables) {
  return verifyRowsMoved(op, tables, "chunk", op.getChunk());
}

template <typename OpTy>
static LogicalResult verifyAllReduce(OpTy op, SymbolTableCollection &tables) {
  SmallVector<Type> received = op.getReceivedTypes();
  return success(succeeded(verifySymbols(op, tables)) &&
                 succeeded(verifyKinds(op, op.getKinds(), op.getInputs().getTypes(), received)));
}

/// What the two ops of one collective have in common.
#define SPMD_COLLECTIVE(NAME, KIND)                                                                                    \
  CollectiveKind NAME##Op::getCollectiveKind() { return CollectiveKind::KIND; }                                        \
  CollectiveKind NAME##StartOp::getCollectiveKind() { return CollectiveKind::KIND; }                                   \
  Stream NAME##Op::getStreamKind() { return getNaturalStream(getCollectiveKind(), getUnitAttr() != nullptr); }         \
  Stream NAME##StartOp::getStreamKind() { return getStream(); }                                                        \
  SmallVector<Type> NAME##Op::getReceivedTypes() { return SmallVector<Type>(getOperation()->getResultTypes()); }       \
  SmallVector<Type> NAME##StartOp::getReceivedTypes() {                                                                \
    return SmallVector<Type>(getHandle().getType().getResults());                                                      \
  }                                                                                                                    \
  LogicalResult NAME##Op::verifySymbolUses(SymbolTableCollection &tables) { return verify##NAME(*this, tables); }      \
  LogicalResult NAME##StartOp::verifySymbolUses(SymbolTableCollection &tables) { return verify##NAME(*this, tables); }
SPMD_COLLECTIVE(AllGather, all_gather)
SPMD_COLLECTIVE(ReduceScatter, reduce_scatter)
SPMD_COLLECTIVE(AllReduce, all_reduce)
#undef SPMD_COLLECTIVE

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
// wait
//===----------------------------------------------------------------------===//

LogicalResult WaitOp::verify() {
  // C1
  if (getResultTypes() != TypeRange(getHandle().getType().getResults()))
    return emitOpError() << "gives other types than its handle " << getHandle().getType();
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Spmd/SpmdOps.cpp.inc"
