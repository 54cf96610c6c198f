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
// Collectives and their starts
//===----------------------------------------------------------------------===//

Stream spmd::getNaturalStream(CollectiveKind kind, bool isOfUnit) {
  if (!combines(kind))
    return Stream::gather;
  return sendsWhole(kind) || isOfUnit ? Stream::reduce : Stream::scalar;
}

/// The start has the operands and attributes of the op, and the stream.
template <typename StartOp>
static Operation *createStartOp(OpBuilder &builder, CollectiveOpInterface op) {
  NamedAttrList attributes(cast<DictionaryAttr>(op->getPropertiesAsAttribute()));
  attributes.set("stream", StreamAttr::get(builder.getContext(), op.getStreamKind()));
  Type handle = HandleType::get(builder.getContext(), SmallVector<Type>(op->getResultTypes()));
  return StartOp::create(builder, op.getLoc(), TypeRange(handle), op->getOperands(), attributes.getAttrs());
}

Operation *spmd::createStart(OpBuilder &builder, CollectiveOpInterface op) {
  switch (op.getCollectiveKind()) {
#define SPMD_COLLECTIVE_KIND(NAME, TEXT, SENT, RECEIVED, VALUES)                                                       \
  case CollectiveKind::NAME:                                                                                           \
    return createStartOp<NAME##StartOp>(builder, op);
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown collective");
}

ValueRange spmd::getReceived(CollectiveOpInterface op) {
  if (!op.isStart())
    return op->getResults();
  for (Operation *user : op->getUsers())
    if (isa<WaitOp>(user))
      return user->getResults();
  return {};
}

/// C4 and C5 of a collective that gives one value: the whole, of which ranks sent pieces, or a piece.
template <typename OpTy>
static std::enable_if_t<std::is_base_of_v<RowCollectiveOpInterface::Trait<OpTy>, OpTy>, LogicalResult>
verifyValues(OpTy op, int64_t ranks) {
  SmallVector<Type> types = op.getReceivedTypes();
  if (types.size() != 1)
    return op.emitOpError() << "must give a handle of one value";
  Type sent = op.getInput().getType(), received = types.front();
  bool isWhole = receivesWhole(op.getCollectiveKind());
  return success(
      succeeded(verifyCut(op, isWhole ? received : sent, isWhole ? sent : received, op.getDim(), op.getPre(), ranks)) &&
      succeeded(verifyRows(op, op.getRowsName(), op.getRows(), received, op.getDim(), op.getPre())));
}

template <typename OpTy>
static LogicalResult verifyAllReduce(OpTy op) {
  SmallVector<Type> received = op.getReceivedTypes();
  return verifyKinds(op, op.getKinds(), op.getInputs().getTypes(), received);
}
static LogicalResult verifyValues(AllReduceOp op, int64_t) { return verifyAllReduce(op); }
static LogicalResult verifyValues(AllReduceStartOp op, int64_t) { return verifyAllReduce(op); }

template <typename OpTy>
static LogicalResult verifyCollective(OpTy op, SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = verifySymbols(op, tables);
  return success(succeeded(ranks) && succeeded(verifyValues(op, *ranks)));
}

/// What the two ops of one collective have in common.
#define SPMD_COLLECTIVE_KIND(NAME, TEXT, SENT, RECEIVED, VALUES)                                                       \
  CollectiveKind NAME##Op::getCollectiveKind() { return CollectiveKind::NAME; }                                        \
  CollectiveKind NAME##StartOp::getCollectiveKind() { return CollectiveKind::NAME; }                                   \
  Stream NAME##Op::getStreamKind() { return getNaturalStream(getCollectiveKind(), getUnitAttr() != nullptr); }         \
  Stream NAME##StartOp::getStreamKind() { return getStream(); }                                                        \
  SmallVector<Type> NAME##Op::getReceivedTypes() { return SmallVector<Type>(getOperation()->getResultTypes()); }       \
  SmallVector<Type> NAME##StartOp::getReceivedTypes() {                                                                \
    return SmallVector<Type>(getHandle().getType().getResults());                                                      \
  }                                                                                                                    \
  LogicalResult NAME##Op::verifySymbolUses(SymbolTableCollection &tables) { return verifyCollective(*this, tables); }  \
  LogicalResult NAME##StartOp::verifySymbolUses(SymbolTableCollection &tables) {                                       \
    return verifyCollective(*this, tables);                                                                            \
  }
#include "spmd/Runtime/Core/Kinds.def"

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
