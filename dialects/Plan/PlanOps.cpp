//===- PlanOps.cpp - verifiers and interface methods of the plan ops ------===//

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace spmd::plan;

#include "dialects/Plan/PlanInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// Refs of each command, in operand order
//===----------------------------------------------------------------------===//

SmallVector<RefAttr> KernelOp::getRefs() { return llvm::to_vector(getArgs().getAsRange<RefAttr>()); }
template <typename OpT>
static void appendForwardRefs(OpT op, SmallVector<RefAttr> &refs) {
  refs.append({op.getQ(), op.getK(), op.getV()});
  if (op.getMaskInputs())
    llvm::append_range(refs, op.getMaskInputsAttr().template getAsRange<RefAttr>());
  refs.append({op.getOut(), op.getLse()});
}
SmallVector<RefAttr> AttentionOp::getRefs() {
  SmallVector<RefAttr> refs;
  appendForwardRefs(*this, refs);
  return refs;
}
SmallVector<RefAttr> AttentionBackwardOp::getRefs() {
  SmallVector<RefAttr> refs{getDout()};
  appendForwardRefs(*this, refs);
  llvm::append_range(refs, getGradients().getAsRange<RefAttr>());
  if (getMaskGradient())
    refs.push_back(*getMaskGradient());
  return refs;
}
SmallVector<RefAttr> GemmOp::getRefs() {
  SmallVector<RefAttr> refs{getA(), getB(), getC()};
  for (std::optional<RefAttr> ref : {getBias(), getResidual(), getPreActivation(), getBiasGradient(), getWorkspace()})
    if (ref)
      refs.push_back(*ref);
  return refs;
}
SmallVector<RefAttr> AllReduceOp::getRefs() { return llvm::to_vector(getBuffers().getAsRange<RefAttr>()); }
SmallVector<RefAttr> CopyOp::getRefs() { return {getSrc(), getDst()}; }
SmallVector<RefAttr> CheckIndexOp::getRefs() { return {getIds()}; }
SmallVector<RefAttr> FillOp::getRefs() { return {getDst()}; }

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

#define SPMD_COLLECTIVE_KIND(NAME, TEXT, SENT, RECEIVED, VALUES)                                                       \
  CollectiveKind NAME##Op::getCollectiveKind() { return CollectiveKind::NAME; }
#include "spmd/Runtime/Core/Kinds.def"

Value spmd::plan::createCollective(OpBuilder &builder, Location loc, CollectiveKind kind, ArrayRef<RefAttr> refs,
                                   ArrayRef<int64_t> counts, ArrayRef<ReductionKind> kinds, Type dtype, StringRef unit,
                                   StringRef comm, Stream stream) {
  switch (kind) {
#define SPMD_COLLECTIVE_KIND(NAME, TEXT, SENT, RECEIVED, VALUES)                                                       \
  case CollectiveKind::NAME:                                                                                           \
    return NAME##Op::create(builder, loc, refs, counts, kinds, dtype, unit, comm, stream).getEvent();
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown collective");
}

SmallVector<ReductionKind> AllReduceOp::getReductions() {
  return llvm::map_to_vector(getKinds().getAsRange<ReductionKindAttr>(), [](auto kind) { return kind.getValue(); });
}

ArrayAttr AllReduceOp::getRefArray(OpBuilder &builder, ArrayRef<RefAttr> refs) {
  return builder.getArrayAttr(SmallVector<Attribute>(refs.begin(), refs.end()));
}

ArrayAttr AllReduceOp::getKindArray(OpBuilder &builder, ArrayRef<ReductionKind> kinds) {
  return builder.getArrayAttr(llvm::map_to_vector(
      kinds, [&](ReductionKind kind) -> Attribute { return ReductionKindAttr::get(builder.getContext(), kind); }));
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

BufferOp ProgramOp::lookupBuffer(StringRef name) {
  return dyn_cast_or_null<BufferOp>(
      mlir::SymbolTable::lookupSymbolIn(getOperation(), StringAttr::get(getContext(), name)));
}

LogicalResult CommunicatorOp::verify() {
  if (getAxes() && getAxes()->empty())
    return emitOpError("has no axes; leave them out where it connects all ranks");
  return success();
}

LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getOffset()) < 0 || static_cast<int64_t>(getBytes()) < 0)
    return emitOpError("has negative offset ") << getOffset() << " or size " << getBytes();
  return success();
}

/// What forward and backward check alike; the last `numResults` refs are written.
template <typename OpT>
static LogicalResult verifyAttention(OpT op, bool isBackward, size_t numResults) {
  if (op.getShape().isBackward() != isBackward)
    return op.emitOpError(isBackward ? "has a shape without views of gradients"
                                     : "has a shape with views of gradients");
  SmallVector<RefAttr> refs = op.getRefs();
  for (auto [i, ref] : llvm::enumerate(refs))
    if (Access access = i + numResults < refs.size() ? Access::Read : Access::Write; ref.getAccess() != access)
      return op.emitOpError("has access ")
             << stringifyAccess(ref.getAccess()) << " of argument " << i << ", expected " << stringifyAccess(access);
  if (op.getMaskInputs() && !op.getShape().getMask())
    return op.emitOpError("has operands of a mask, but no mask");
  if (op.getLibrary().has_value() != op.getLibraryPlan().has_value())
    return op.emitOpError("has one of library and library_plan without the other");
  return success();
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this, /*isBackward=*/false, /*numResults=*/2); }

LogicalResult AttentionBackwardOp::verify() {
  size_t gradients = getGradients().size();
  if (gradients != 1 && gradients != 3)
    return emitOpError("has ") << gradients << " gradients, expected 1 or 3";
  AttentionMaskAttr mask = getShape().getMask();
  if (getMaskGradient() && (!mask || mask.getValue() != AttentionMask::added))
    return emitOpError("has mask_gradient, but no mask that is added");
  return verifyAttention(*this, /*isBackward=*/true, gradients + (getMaskGradient() ? 1 : 0));
}

LogicalResult GemmOp::verify() {
  if (getPreActivation() && !getActivation())
    return emitOpError("has pre_activation, but no activation");
  bool isGradient = getActivation() == Activation::gelu_tanh_backward;
  if (isGradient && !getPreActivation())
    return emitOpError("has gelu_tanh_backward, but no pre_activation");
  if (isGradient && (getBias() || getResidual() || !getBeta().isZero()))
    return emitOpError("has gelu_tanh_backward, which is without bias, residual and beta");
  if (getPreActivation() && (getPreActivation()->getAccess() == Access::Read) != isGradient)
    return emitOpError("has a pre_activation that is ") << (isGradient ? "not read" : "read");
  if (getResidual() && !getBeta().isZero())
    return emitOpError("has a residual and beta ") << getBeta().convertToDouble();
  if (getBiasGradientOf().has_value() != getBiasGradient().has_value())
    return emitOpError("has one of bias_gradient and bias_gradient_of without the other");
  bool isOfResult = getBiasGradientOf() == GemmOperand::c;
  if (getBiasGradient() && (getBatch() != 1 || (isOfResult ? !isGradient : getBias() || getActivation())))
    return emitOpError("has a bias_gradient, which is for one GEMM, of a and b without bias and activation, of c with "
                       "gelu_tanh_backward");
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (getBuffers().size() != getCounts().size() || getBuffers().size() != getKinds().size())
    return emitOpError("has ") << getBuffers().size() << " buffers, " << getCounts().size() << " counts and "
                               << getKinds().size() << " kinds";
  return success();
}

LogicalResult CopyOp::verify() {
  if (getSrc().getBytes() != getDst().getBytes())
    return emitOpError("reads ") << getSrc().getBytes() << " bytes but writes " << getDst().getBytes();
  return success();
}

/// Constraint 1, for one ref: the buffer exists and holds the range at both ends of every mesh axis.
static LogicalResult verifyRef(Operation *op, RefAttr ref, const llvm::StringMap<BufferOp> &buffers, int64_t ranks) {
  auto it = buffers.find(ref.getBuffer().getValue());
  if (it == buffers.end())
    return op->emitOpError("refers to unknown buffer ") << ref.getBuffer();
  int64_t low = ref.getOffset(), high = ref.getOffset() + ref.getBytes();
  for (int64_t stride : ref.getCoord())
    (stride < 0 ? low : high) += stride * (ranks - 1);
  BufferOp buffer = it->second;
  if (low < 0 || high > static_cast<int64_t>(buffer.getBytes())) {
    InFlightDiagnostic diag = op->emitOpError("touches bytes [") << low << ", " << high << ") of " << ref.getBuffer()
                                                                 << ", which has " << buffer.getBytes();
    diag.attachNote(buffer.getLoc()) << "the buffer";
    return diag;
  }
  return success();
}

/// Constraint 3.
static LogicalResult verifyPlace(ProgramOp program, BufferOp buffer) {
  int64_t begin = buffer.getOffset(), end = begin + static_cast<int64_t>(buffer.getBytes());
  int64_t stateEnd = program.getStateBytes(), arenaEnd = stateEnd + static_cast<int64_t>(program.getTransientBytes());
  if (buffer.getState() ? end > stateEnd : (begin < stateEnd || end > arenaEnd))
    return buffer.emitOpError("lies at [") << begin << ", " << end << "), outside the "
                                           << (buffer.getState() ? "state" : "transient") << " part of the arena";
  return success();
}

/// Constraints 2 and 4.
static LogicalResult verifyCommand(ProgramOp program, CommandOpInterface command) {
  FlatSymbolRefAttr comm = command.getCommunicator();
  if (comm && !isa_and_nonnull<CommunicatorOp>(SymbolTable::lookupSymbolIn(program, comm)))
    return command->emitOpError("uses unknown communicator ") << comm;
  if (Value awaited = command.getAwaitedEvent()) {
    auto other = cast<CommandOpInterface>(awaited.getDefiningOp());
    if (other.getStream() == command.getStream()) {
      InFlightDiagnostic diag = command->emitOpError("waits for a command of its own stream ")
                                << stringifyStream(command.getStream());
      diag.attachNote(other.getLoc()) << "the command";
      return diag;
    }
  }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  llvm::StringMap<BufferOp> buffers;
  for (BufferOp buffer : getOps<BufferOp>()) {
    buffers[buffer.getSymName()] = buffer;
    if (failed(verifyPlace(*this, buffer)))
      return failure();
  }
  int64_t ranks = getRanks();
  llvm::SmallSet<Stream, 4> preferred;
  for (StreamOp stream : getOps<StreamOp>())
    if (!preferred.insert(stream.getStream()).second)
      return stream.emitOpError("says a second priority of stream ") << stringifyStream(stream.getStream());
  for (Operation &op : getBody().front()) {
    SmallVector<RefAttr> refs;
    if (auto command = dyn_cast<CommandOpInterface>(op)) {
      if (failed(verifyCommand(*this, command)))
        return failure();
      refs = command.getRefs();
    } else if (auto input = dyn_cast<InputOp>(op)) {
      refs.push_back(input.getRef());
    } else if (auto output = dyn_cast<OutputOp>(op)) {
      refs.push_back(output.getRef());
    } else if (!isa<BufferOp, CommunicatorOp, StreamOp>(op)) {
      return op.emitOpError("does not belong in a plan");
    }
    for (RefAttr ref : refs)
      if (failed(verifyRef(&op, ref, buffers, ranks)))
        return failure();
  }
  return success();
}
